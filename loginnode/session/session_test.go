package session

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/auth"
)

func FuzzSetModes(f *testing.F) {
	f.Add([]byte{53, 0, 0, 0, 0, 0})
	f.Add([]byte{129, 0, 0, 0x96, 0, 91, 0, 0, 0, 1, 255})
	f.Fuzz(func(_ *testing.T, data []byte) {
		var t unix.Termios
		setModes(&t, data)
	})
}

func FuzzRequests(f *testing.F) {
	f.Add("pty-req", []byte("\xff\xff\xff\xff"))
	f.Add("env", []byte("\x00\x00\x00\x01A\x00\x00\x00\x01b"))
	f.Add("signal", []byte("\x00\x00\x00\x04TERM"))
	f.Add("window-change", make([]byte, 16))
	f.Fuzz(func(_ *testing.T, kind string, payload []byte) {
		if kind == "shell" || kind == "exec" || kind == "subsystem" {
			return // would start processes
		}
		s := &Session{cfg: &Config{}, Conn: &Conn{Login: &auth.Login{User: &auth.User{UID: os.Geteuid()}}}}
		s.request(&ssh.Request{Type: kind, Payload: payload})
		if s.tty != nil {
			s.tty.close()
		}
	})
}

// A folder of an ordinary file system has no cgroup files, and they must not
// be made there.
func TestCgroupsDoNotPretend(t *testing.T) {
	dir := t.TempDir()
	c := Cgroups{Parent: dir, Memory: "1G"}
	if _, _, err := c.Place(&auth.User{Name: "ann", UID: 7}); err == nil {
		t.Error("a limit that nobody enforces passed unnoticed")
	}
	c = Cgroups{Parent: dir}
	fd, done, err := c.Place(&auth.User{Name: "ann", UID: 8})
	if err != nil || fd < 0 {
		t.Fatal(err)
	}
	done()
	if _, err := os.Stat(filepath.Join(dir, "user-8")); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
}

func TestSystemEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "environment")
	if err := os.WriteFile(file, []byte("# c\nexport A=1\nB=\"two words\"\nbad name=x\n\nC='q'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := systemEnvironment(file)
	if len(got) != 3 || got[0] != "A=1" || got[1] != "B=two words" || got[2] != "C=q" {
		t.Errorf("%q", got)
	}
}
