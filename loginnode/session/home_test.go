package session

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// newUser returns a user who may access dir.
func newUser(t *testing.T) (u *auth.User, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	u = &auth.User{Name: "ann", UID: os.Geteuid(), GID: os.Getegid()}
	if u.UID == 0 {
		u.UID, u.GID = 61001, 61002
	}
	return u, dir
}

// During several first logins at the same time, each session finds a complete home directory.
func TestHomesAppearComplete(t *testing.T) {
	u, dir := newUser(t)
	skeleton := filepath.Join(dir, "skel")
	for _, name := range []string{"a", "b/c"} {
		if err := os.MkdirAll(filepath.Join(skeleton, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(skeleton, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	u.Home = filepath.Join(dir, "new", "homes", "ann")
	var all sync.WaitGroup
	for range 20 {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := makeHome(u, skeleton); err != nil {
				t.Error(err)
			}
			var st unix.Stat_t
			if err := unix.Lstat(u.Home, &st); err != nil || int(st.Uid) != u.UID || st.Mode&0o7777 != 0o700 {
				t.Errorf("uid %d, mode %o, %v", st.Uid, st.Mode, err)
			}
			if data, err := os.ReadFile(filepath.Join(u.Home, "b", "c")); err != nil || string(data) != "b/c" {
				t.Errorf("%q, %v", data, err)
			}
		}()
	}
	all.Wait()
	left, err := os.ReadDir(filepath.Dir(u.Home))
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// If another user has created a link or a directory in place of the home, the link is not
// followed, and the directory does not get another owner.
func TestHomesReplaceNothing(t *testing.T) {
	u, dir := newUser(t)
	elsewhere := filepath.Join(dir, "elsewhere")
	u.Home = filepath.Join(dir, "ann")
	if err := os.Symlink(elsewhere, u.Home); err != nil { // leads nowhere yet
		t.Fatal(err)
	}
	if err := makeHome(u, ""); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(elsewhere); err == nil {
		t.Error("a link was followed")
	}
	if os.Geteuid() != 0 {
		return
	}
	link, theirs := filepath.Join(dir, "link"), filepath.Join(dir, "theirs")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(theirs, u.UID+1, u.GID+1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{link, theirs} {
		if err := chownNew(name, u); err == nil {
			t.Errorf("the owner of %s was changed", name)
		}
	}
}
