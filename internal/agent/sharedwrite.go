package agent

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/bcast"
)

// errOtherNode is the error of a node that waited for another one. That one reports the cause.
var errOtherNode = errors.New("another node of this machine could not write the file")

// writeShared writes the file, unless another node of the same machine writes it in the same
// directory. Then it waits for that node, and closes in, because it does not need the contents.
func writeShared(r *step.FileSpec, in io.ReadCloser) error {
	lock := openLock(r)
	if lock == nil {
		return writeTemporary(r, in)
	}
	defer lock.Close()
	err := flock(lock, unix.LOCK_EX|unix.LOCK_NB)
	waited := errors.Is(err, unix.EWOULDBLOCK)
	if waited {
		in.Close()
		err = flock(lock, unix.LOCK_SH)
	}
	switch {
	case isWritten(lock):
		return nil
	case waited:
		os.Remove(lock.Name())
		return errors.Join(errOtherNode, err)
	case err != nil: // the file system has no locks
		os.Remove(lock.Name())
		return writeTemporary(r, in)
	}
	if err = writeTemporary(r, in); err == nil {
		// Nodes that opened the lock wait for it, and nodes that start later find none.
		err = lock.Truncate(writtenSize)
	}
	os.Remove(lock.Name())
	return err
}

// writtenSize is the size of a lock file after the file was written. Unlike contents of the lock
// file, it needs no space.
const writtenSize = 1

// openLock opens the file that the writer of r's file locks. It returns nil if this node must
// write the file whatever others do.
func openLock(r *step.FileSpec) *os.File {
	name := bcast.LockPath(r)
	if name == "" || !r.Force { // without Force only one of them may succeed
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil
	}
	var st unix.Stat_t
	// A file that somebody else made or linked says nothing. One that was removed just now does.
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG ||
		int(st.Uid) != os.Geteuid() || st.Nlink > 1 {
		f.Close()
		return nil
	}
	return f
}

// isWritten reports whether the file of which lock is the lock was written.
func isWritten(lock *os.File) bool {
	st, err := lock.Stat()
	return err == nil && st.Size() == writtenSize
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
