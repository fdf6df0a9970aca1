package agent

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/bcast"
	"github.com/berth-hpc/berth/internal/strerror"
)

// receiveFile runs a task of sbcast: it writes its input to a file. The file gets
// its name when it is complete. The exit code is the errno of an error, or 1.
func receiveFile(description string, in io.ReadCloser, errs io.Writer) int {
	var r step.FileSpec
	if err := json.Unmarshal([]byte(description), &r); err != nil {
		fmt.Fprintln(errs, err)
		return 125
	}
	if err := writeReceived(&r, in); err != nil {
		fmt.Fprintln(errs, strerror.Text(err))
		return exitCodeOf(err)
	}
	return 0
}

// copySize is the size of the buffer, in bytes. Its contents stay in a processor's cache from the
// read to the write.
const copySize = 256 << 10

var errChecksum = errors.New("the received file is damaged")

// writeReceived writes the file that r describes, from the client's file if that is on this
// machine, or else from in. In the first case it closes in, so that the client sends nothing.
func writeReceived(r *step.FileSpec, in io.ReadCloser) error {
	if err := checkTarget(r); err != nil {
		return err
	}
	if r.Parents {
		if err := os.MkdirAll(filepath.Dir(r.Path), 0o700); err != nil {
			return err
		}
	}
	if source := bcast.OpenSource(r); source != nil {
		in.Close()
		defer source.Close()
		plain := *r
		plain.Compressed = false
		r, in = &plain, source
	}
	return writeShared(r, in)
}

// writeTemporary writes a temporary file and then renames it.
func writeTemporary(r *step.FileSpec, in io.Reader) (err error) {
	f, err := os.CreateTemp(filepath.Dir(r.Path), ".sbcast-")
	if r.Force && errors.Is(err, unix.EACCES) {
		return overwrite(r, in)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if clone(f, in) {
		err = fillAndClose(cloned{f}, r, f)
	} else {
		err = fillAndClose(f, r, in)
	}
	if err != nil {
		return err
	}
	if r.Force {
		return os.Rename(f.Name(), r.Path)
	}
	if err := os.Link(f.Name(), r.Path); err != nil {
		return err
	}
	return os.Remove(f.Name())
}

// clone makes f share the blocks of in, if in is a file of the same file system and the file
// system can do that (XFS, Btrfs).
func clone(f *os.File, in io.Reader) bool {
	from, ok := in.(*os.File)
	return ok && unix.IoctlFileClone(int(f.Fd()), int(from.Fd())) == nil
}

// cloned is a file that has its contents already.
type cloned struct{ *os.File }

// Write writes nothing.
func (cloned) Write(b []byte) (int, error) { return len(b), nil }

// checkTarget returns an error if the file may not be written: it exists and Force
// is not set, or its permissions forbid it.
func checkTarget(r *step.FileSpec) error {
	switch st, err := os.Lstat(r.Path); {
	case err == nil && !r.Force:
		return unix.EEXIST
	case err == nil && st.IsDir():
		return unix.EISDIR
	}
	// Other errors do not matter: a running program and a dangling link may be
	// replaced.
	err := unix.Access(r.Path, unix.W_OK)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
		return err
	}
	return nil
}

// overwrite writes to an existing file whose directory is not writable.
func overwrite(r *step.FileSpec, in io.Reader) error {
	f, err := os.OpenFile(r.Path, os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return unix.EACCES // the directory is not writable
	case err != nil:
		return err
	}
	return fillAndClose(f, r, in)
}

// output is the file that is written; *os.File implements it.
type output interface {
	io.WriteCloser
	Name() string
	Chmod(os.FileMode) error
}

// fillAndClose writes the file that r describes to f and closes it. Some file systems (NFS,
// quotas) report only at the close that there is no space left.
func fillAndClose(f output, r *step.FileSpec, in io.Reader) error {
	return errors.Join(fill(f, r, in), f.Close())
}

// fill writes the file that r describes to f.
func fill(f output, r *step.FileSpec, in io.Reader) error {
	if r.Compressed {
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(16<<20))
		if err != nil {
			return err
		}
		defer d.Close()
		in = d
	}
	sum := bcast.NewChecksum()
	// Reading one byte more than expected detects a file that is too long.
	n, err := io.CopyBuffer(io.MultiWriter(f, sum), io.LimitReader(in, r.Size+1), make([]byte, copySize))
	if errors.Is(err, zstd.ErrMagicMismatch) || errors.Is(err, zstd.ErrCRCMismatch) {
		return errChecksum
	}
	if err != nil {
		return err
	}
	if n != r.Size || hex.EncodeToString(sum.Sum(nil)) != r.Checksum {
		return errChecksum
	}
	if err := f.Chmod(os.FileMode(r.Mode) & os.ModePerm); err != nil {
		return err
	}
	if r.Modified != 0 {
		at := time.Unix(0, r.Modified)
		if err := os.Chtimes(f.Name(), at, at); err != nil {
			return err
		}
	}
	return nil
}

// exitCodeOf returns the exit code for an error.
func exitCodeOf(err error) int {
	if errno, ok := errors.AsType[unix.Errno](err); ok && errno > 0 && errno < 125 {
		return int(errno)
	}
	return 1
}
