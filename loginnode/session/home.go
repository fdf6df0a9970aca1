package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// makeHome makes a user's home, mode 700, from a skeleton, unless it exists.
func makeHome(u *auth.User, skeleton string) error {
	if _, err := os.Stat(u.Home); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !filepath.IsAbs(u.Home) || filepath.Clean(u.Home) == "/" {
		return fmt.Errorf("home of %s: %q is not a folder to make", u.Name, u.Home)
	}
	if err := makeParents(filepath.Dir(u.Home)); err != nil {
		return fmt.Errorf("home of %s: %w", u.Name, err)
	}
	if err := os.Mkdir(u.Home, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) { // another login was faster
			return nil
		}
		return fmt.Errorf("home of %s: %w", u.Name, err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(u.Home, u.UID, u.GID); err != nil {
			_ = os.Remove(u.Home)
			return fmt.Errorf("home of %s: %w", u.Name, err)
		}
	}
	if skeleton == "" {
		skeleton = "/etc/skel"
	}
	return asuser.Do(u.Rights(), func() error { return copyTree(u.Home, skeleton) })
}

// makeParents makes the folders above a home, which everybody gets through
// whatever the server's umask is.
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
	return os.Chmod(dir, 0o755)
}

// copyTree copies regular files and folders, as the user.
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
