package localcluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// userFile is a user's kubeconfig, below the home directory.
const userFile = ".local/state/berth/user.kubeconfig"

// LookUp returns the account of a user of the machine.
func LookUp(name string) (Account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return Account{}, err
	}
	return account(u)
}

// Current returns the user that this process runs as.
func Current() (Account, error) {
	u, err := user.Current()
	if err != nil {
		return Account{}, err
	}
	return account(u)
}

func account(u *user.User) (Account, error) {
	a := Account{Name: u.Username, Home: u.HomeDir, Shell: shell(u.Username)}
	var err error
	if a.UID, err = strconv.ParseInt(u.Uid, 10, 64); err != nil {
		return a, err
	}
	if a.GID, err = strconv.ParseInt(u.Gid, 10, 64); err != nil {
		return a, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return a, fmt.Errorf("groups of %s: %w", u.Username, err)
	}
	for _, id := range ids {
		gid, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return a, err
		}
		g := v1alpha1.Group{GID: gid}
		if known, err := user.LookupGroupId(id); err == nil {
			g.Name = known.Name
		}
		a.Groups = append(a.Groups, g)
	}
	return a, a.Check()
}

// shell returns the last field of the user's line in passwd(5), which os/user does not
// have; "" if the user is not in the file.
func shell(name string) string {
	data, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) == 7 && f[0] == name {
			return f[6]
		}
	}
	return ""
}

// writeHome writes a user's kubeconfig into the user's home, readable only by the user.
// It runs as root in directories that the user controls. Therefore it accesses files with
// the user's own permissions, follows no symbolic link, and opens no file that exists
// already.
func writeHome(u Account, data []byte) error {
	return inHome(u, func(dir int) error { return replaceAt(dir, filepath.Base(userFile), data) })
}

// removeHome removes a user's kubeconfig if it is still the given one.
func removeHome(u Account, data []byte) error {
	return inHome(u, func(dir int) error {
		name := filepath.Base(userFile)
		if same, err := hasContent(dir, name, data); err != nil || !same {
			return err
		}
		return unix.Unlinkat(dir, name, 0)
	})
}

// renewHome replaces a user's kubeconfig, unless it is not the previous one any more.
func renewHome(u Account, previous, data []byte) error {
	return inHome(u, func(dir int) error {
		name := filepath.Base(userFile)
		same, err := hasContent(dir, name, previous)
		if errors.Is(err, unix.ENOENT) || err == nil && !same {
			return nil
		}
		if err != nil {
			return err
		}
		return replaceAt(dir, name, data)
	})
}

// hasContent reports whether the file in the directory has that content.
func hasContent(dir int, name string, data []byte) (bool, error) {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	f := os.NewFile(uintptr(fd), name)
	now, err := io.ReadAll(io.LimitReader(f, int64(len(data))+1))
	_ = f.Close()
	return bytes.Equal(now, data), err
}

// inHome calls f, with the user's permissions on files, for the directory of users'
// kubeconfigs, which it creates if there is none.
func inHome(u Account, f func(dir int) error) error {
	result := make(chan error, 1)
	go func() { // on a thread of its own, which exits with the changed identity
		runtime.LockOSThread()
		result <- asUser(u, f)
	}()
	return <-result
}

func asUser(u Account, f func(dir int) error) error {
	if err := become(u); err != nil {
		return err
	}
	dir, err := unix.Open(u.Home, unix.O_DIRECTORY|unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("home %s: %w", u.Home, err)
	}
	defer func() { _ = unix.Close(dir) }()
	for _, name := range strings.Split(filepath.Dir(userFile), "/") {
		next, err := subdirectory(dir, name, u)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", u.Home, userFile, err)
		}
		_ = unix.Close(dir)
		dir = next
	}
	return f(dir)
}

// become makes this thread access files with the user's permissions, without supplementary
// groups (setfsuid(2)), until the thread exits.
func become(u Account) error {
	if os.Getuid() == int(u.UID) {
		return nil
	}
	if err := errors.Join(unix.Setfsgid(int(u.GID)), unix.Setfsuid(int(u.UID))); err != nil {
		return err
	}
	// The calls report no errors; a call with an impossible id returns the current one.
	if now, err := unix.SetfsuidRetUid(-1); err != nil || now != int(u.UID) {
		return fmt.Errorf("cannot act on files as uid %d", u.UID)
	}
	return nil
}

// subdirectory opens the directory name in dir and creates it if there is none. It refuses a
// link, or a directory of another user.
func subdirectory(dir int, name string, u Account) (int, error) {
	const flags = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_RDONLY | unix.O_CLOEXEC
	err := unix.Mkdirat(dir, name, 0o700)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	fd, err := unix.Openat(dir, name, flags, 0)
	if err != nil {
		return -1, err
	}
	if err := ownedBy(fd, u); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func ownedBy(fd int, u Account) error {
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return err
	}
	if int64(s.Uid) != u.UID {
		return fmt.Errorf("a directory of the path belongs to uid %d", s.Uid)
	}
	return nil
}

// replaceAt writes a file next to the old one and renames it.
func replaceAt(dir int, name string, data []byte) error {
	tmp := name + ".new"
	_ = unix.Unlinkat(dir, tmp, 0)
	fd, err := unix.Openat(dir, tmp, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), tmp)
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err != nil {
		return err
	}
	return unix.Renameat(dir, tmp, dir, name)
}
