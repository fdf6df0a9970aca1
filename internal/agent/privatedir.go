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

// privateDir makes a folder that only this uid can enter, in the first place
// that lets it. The folder is locked as long as the file (nil where that
// is impossible) is open, which tells others that its agent lives.
func privateDir(base string) (string, *os.File, error) {
	places := []string{base}
	if base == "" {
		places = []string{os.TempDir(), wire.RunDir, "/dev/shm", "/run"}
	}
	// The script is run from there; container runtimes forbid that in /dev/shm.
	slices.SortStableFunc(places, func(a, b string) int { return noExec(a) - noExec(b) })
	prefix := "berth-" + strconv.Itoa(os.Getuid()) + "-"
	var errs []error
	for _, p := range places {
		dir, err := os.MkdirTemp(p, prefix)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		// Where nothing can be locked, nobody removes anything.
		lock, _ := lockDir(dir)
		removeStale(filepath.Join(p, prefix), time.Now().Add(-staleAge))
		return dir, lock, os.Chmod(dir, 0o700)
	}
	return "", nil, fmt.Errorf("private folder: %w", errors.Join(errs...))
}

// noExec is 1 for a folder whose file system runs no programs, else 0.
func noExec(dir string) int {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil && fs.Flags&unix.ST_NOEXEC != 0 {
		return 1
	}
	return 0
}

// lockDir locks a folder; the error is EWOULDBLOCK while somebody else has.
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

// staleAge is longer than an agent takes from making its folder to locking it.
const staleAge = time.Minute

// removeStale removes what killed agents of this user left where a process
// node shares its machine's folders: folders last changed before then that
// nobody has locked.
func removeStale(prefix string, then time.Time) {
	dirs, err := filepath.Glob(prefix + "*")
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.ModTime().After(then) {
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
