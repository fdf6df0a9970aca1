package agent

import (
	"crypto/sha256"
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

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
)

// receive is a task of sbcast: it makes a file of what comes. The file gets
// its name when it is whole, so nobody sees a part of it.
func receive(description string, in io.Reader, errs io.Writer) int {
	var r step.Receive
	if err := json.Unmarshal([]byte(description), &r); err != nil {
		fmt.Fprintln(errs, err)
		return 125
	}
	if err := write(&r, in); err != nil {
		fmt.Fprintln(errs, reasonOf(err))
		return 1
	}
	return 0
}

const copySize = 256 << 10

var errSum = errors.New("the file arrived damaged")

// write writes the file beside its place and then moves it there.
func write(r *step.Receive, in io.Reader) (err error) {
	if _, err := os.Lstat(r.Path); err == nil && !r.Force {
		return unix.EEXIST
	}
	f, err := os.CreateTemp(filepath.Dir(r.Path), ".sbcast-")
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if r.Compressed {
		d, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(16<<20))
		if err != nil {
			return err
		}
		defer d.Close()
		in = d
	}
	sum := sha256.New()
	// One byte more than there is to be tells that it is too long.
	n, err := io.CopyBuffer(io.MultiWriter(f, sum), io.LimitReader(in, r.Size+1), make([]byte, copySize))
	if errors.Is(err, zstd.ErrMagicMismatch) || errors.Is(err, zstd.ErrCRCMismatch) {
		return errSum
	}
	if err != nil {
		return err
	}
	if n != r.Size || hex.EncodeToString(sum.Sum(nil)) != r.Sum {
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
	if r.Force {
		return os.Rename(f.Name(), r.Path)
	}
	if err := os.Link(f.Name(), r.Path); err != nil {
		return err
	}
	return os.Remove(f.Name())
}

// reasonOf is the system's word for an error.
func reasonOf(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return spawn.Text(errno)
	}
	return err.Error()
}
