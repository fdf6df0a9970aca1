package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// makeHome creates a user's home with mode 700 from a skeleton, unless it exists. It
// appears complete, so that a concurrent login never sees a part of it.
func makeHome(u *auth.User, skeleton string) error {
	missing := false
	err := asuser.Wait(u.Rights(), func() error {
		_, err := os.Stat(u.Home)
		if missing = errors.Is(err, fs.ErrNotExist); missing {
			return nil
		}
		return err
	})
	if err != nil || !missing {
		return err
	}
	if !filepath.IsAbs(u.Home) || filepath.Clean(u.Home) == "/" {
		return fmt.Errorf("home of %s: %q is not a directory that can be created", u.Name, u.Home)
	}
	home := filepath.Clean(u.Home)
	if err := makeParents(filepath.Dir(home)); err != nil {
		return fmt.Errorf("home of %s: %w", u.Name, err)
	}
	if skeleton == "" {
		skeleton = "/etc/skel"
	}
	if err := createHome(u, home, skeleton); err != nil {
		return fmt.Errorf("home of %s: %w", u.Name, err)
	}
	return nil
}

// createHome creates the home under another name beside it, and renames it.
func createHome(u *auth.User, home, skeleton string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(home), "."+filepath.Base(home)+".new-")
	if err != nil {
		return err
	}
	err = chownNew(tmp, u)
	if err == nil {
		err = asuser.Do(u.Rights(), func() error { return copyTree(tmp, skeleton) })
	}
	if err == nil {
		err = rename(tmp, home)
	}
	if err == nil {
		return nil
	}
	_ = asuser.Do(u.Rights(), func() error { return os.RemoveAll(tmp) }) // all but itself
	_ = os.Remove(tmp)
	if errors.Is(err, fs.ErrExist) { // another login was faster
		return nil
	}
	return err
}

// chownNew changes the owner of a directory that was just created. A user who may write to
// its parent may have replaced it by a link or by a directory of another owner.
func chownNew(dir string, u *auth.User) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return changeOwn(dir, func(fd int) error { return unix.Fchown(fd, u.UID, u.GID) })
}

// changeOwn opens a directory that the server owns and calls change with it.
func changeOwn(dir string, change func(fd int) error) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s was replaced by a directory of uid %d", dir, st.Uid)
	}
	return change(fd)
}

// rename renames a directory, and fails if the new name exists.
func rename(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not on every file system
		if _, err := os.Lstat(to); err == nil {
			return fs.ErrExist
		}
		return os.Rename(from, to)
	}
	return err
}

// makeParents creates the directories above a home with mode 755, whatever the server's
// umask is.
func makeParents(dir string) error {
	if _, err := os.Stat(dir); err == nil || dir == "/" {
		return err
	}
	if err := makeParents(filepath.Dir(dir)); err != nil {
		return err
	}
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) { // another login was faster
		return nil
	}
	if err != nil {
		return err
	}
	return changeOwn(dir, func(fd int) error { return unix.Fchmod(fd, 0o755) })
}

// copyTree copies regular files and directories, as the user.
func copyTree(to, from string) error {
	err := filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil || rel == "." {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return errors.Join(os.Mkdir(target, 0o755), os.Chmod(target, 0o755))
		}
		if !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(target, data, 0o644), os.Chmod(target, 0o644))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no skeleton
	}
	return err
}
