package realnode

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// prefix is the prefix of the names of sites: of their directories and control groups.
const prefix = "berth-real-"

// lockName is a file in a site's directory that is locked while the site is in
// use. The kernel unlocks it, whatever ends the program.
const lockName = "lock"

// claim creates a directory for a new site and locks it. The lock is held until the file
// is closed.
func claim() (dir string, lock *os.File, err error) {
	if dir, err = os.MkdirTemp("", prefix); err != nil {
		return "", nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", nil, err
	}
	// Locked before it has its name, so that no other run can lock it in between.
	if lock, err = os.Create(filepath.Join(dir, lockName+".new")); err != nil {
		return "", nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return "", nil, err
	}
	return dir, lock, os.Rename(lock.Name(), filepath.Join(dir, lockName))
}

// sweep removes what earlier runs left because they were killed.
func sweep() error {
	locks, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*", lockName))
	if err != nil {
		return err
	}
	var errs []error
	for _, l := range locks {
		f, err := os.Open(l)
		if err != nil {
			continue // gone in the meantime
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			progress("removing what an earlier run left: %s", filepath.Dir(l))
			errs = append(errs, cleanUp(filepath.Dir(l), false))
		}
		_ = f.Close()
	}
	return errors.Join(errs...)
}
