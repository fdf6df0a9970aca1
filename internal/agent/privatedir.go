package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/wire"
)

// privateDir creates a directory that only this uid can enter, in the first location that
// permits it. The directory is locked while the returned file is open, so that other agents
// see that it is in use. The file is nil if the directory cannot be locked.
func privateDir(base string) (string, *os.File, error) {
	locations := []string{base}
	if base == "" {
		locations = []string{os.TempDir(), wire.RunDir, "/dev/shm", "/run"}
	}
	// The script is executed from the directory, which container runtimes forbid in
	// /dev/shm.
	slices.SortStableFunc(locations, func(a, b string) int { return noExec(a) - noExec(b) })
	prefix := "berth-" + strconv.Itoa(os.Getuid()) + "-"
	var errs []error
	for _, p := range locations {
		dir, err := os.MkdirTemp(p, prefix)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// If this agent cannot lock it, other agents cannot lock and remove it either.
		lock, _ := lockDir(dir)
		removeStale(filepath.Join(p, prefix), time.Now().Add(-staleAge))
		return dir, lock, os.Chmod(dir, 0o700)
	}
	return "", nil, fmt.Errorf("private directory: %w", errors.Join(errs...))
}

// noExec returns 1 for a directory on a file system that is mounted noexec, else 0.
func noExec(dir string) int {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0 {
		return 1
	}
	return 0
}

// lockDir locks a directory. The error is EWOULDBLOCK while another process has
// the lock.
func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// staleAge is longer than an agent needs from creating its directory to locking it.
const staleAge = time.Minute

// removeStale removes the directories of killed agents of this user, which can
// remain on process nodes: those last changed before the given time that are not
// locked.
func removeStale(prefix string, before time.Time) {
	dirs, err := filepath.Glob(prefix + "*")
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.ModTime().After(before) {
			continue
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() {
			continue
		}
		lock, err := lockDir(dir)
		if err != nil {
			continue
		}
		os.RemoveAll(dir) //nolint:errcheck // the next agent tries again
		lock.Close()
	}
}
