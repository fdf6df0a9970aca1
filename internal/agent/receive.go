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

// receive is a task of sbcast: it makes a file of what comes. The file gets
// its name when it is whole, so nobody sees a part of it. It ends with the number
// of the system's error, as sbcast is to, or with 1.
func receive(description string, in io.Reader, errs io.Writer) int {
	var r step.FileSpec
	if err := json.Unmarshal([]byte(description), &r); err != nil {
		fmt.Fprintln(errs, err)
		return 125
	}
	if err := write(&r, in); err != nil {
		fmt.Fprintln(errs, strerror.Text(err))
		return codeOf(err)
	}
	return 0
}

const copySize = 1 << 20

var errSum = errors.New("the file arrived damaged")

// write writes the file beside its place and then moves it there.
func write(r *step.FileSpec, in io.Reader) (err error) {
	if err := mayWrite(r); err != nil {
		return err
	}
	if r.Parents {
		if err := os.MkdirAll(filepath.Dir(r.Path), 0o700); err != nil {
			return err
		}
	}
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
	if err := fillAndClose(f, r, in); err != nil {
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

// mayWrite refuses what would be written over without leave, and what may not
// be.
func mayWrite(r *step.FileSpec) error {
	switch st, err := os.Lstat(r.Path); {
	case err == nil && !r.Force:
		return unix.EEXIST
	case err == nil && st.IsDir():
		return unix.EISDIR
	}
	// A program that runs may be replaced, and a link that leads nowhere.
	if err := unix.Access(r.Path, unix.W_OK); errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
		return err
	}
	return nil
}

// overwrite writes into a file whose folder takes no other.
func overwrite(r *step.FileSpec, in io.Reader) error {
	f, err := os.OpenFile(r.Path, os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return unix.EACCES // it is the folder that may not be written
	case err != nil:
		return err
	}
	return fillAndClose(f, r, in)
}

// output is the file that is written. (*os.File is one.)
type output interface {
	io.WriteCloser
	Name() string
	Chmod(os.FileMode) error
}

// fillAndClose makes f what r describes and closes it. A file system may report
// only then that there is no room (NFS, a quota).
func fillAndClose(f output, r *step.FileSpec, in io.Reader) error {
	return errors.Join(fill(f, r, in), f.Close())
}

// fill makes f what r describes.
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
	// One byte more than there is to be tells that it is too long.
	n, err := io.CopyBuffer(io.MultiWriter(f, sum), io.LimitReader(in, r.Size+1), make([]byte, copySize))
	if errors.Is(err, zstd.ErrMagicMismatch) || errors.Is(err, zstd.ErrCRCMismatch) {
		return errSum
	}
	if err != nil {
		return err
	}
	if n != r.Size || hex.EncodeToString(sum.Sum(nil)) != r.Checksum {
		return errSum
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

// codeOf is the exit code for an error.
func codeOf(err error) int {
	if errno, ok := errors.AsType[unix.Errno](err); ok && errno > 0 && errno < 125 {
		return int(errno)
	}
	return 1
}
