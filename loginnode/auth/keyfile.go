package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/asuser"
)

// maxKeyFile bounds the size of a key file. A larger one is rejected as a whole, because
// half of it may lack a line that revokes or restricts.
const maxKeyFile = 1 << 20

// readTimeout bounds the time of reading a key file. A home on a dead file server must
// not block other logins.
const readTimeout = 10 * time.Second

// readKeyFile reads an authorized_keys file with the user's own rights. name
// is relative to the home, or absolute. With strict, the home and everything
// below it on the way to the file must belong to the user or root and be
// writable by nobody else, and nothing on the way below the home may be a
// symbolic link (sshd_config(5), StrictModes).
func readKeyFile(ctx context.Context, u *User, name string, strict bool) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	own := func(f func() error) error { return asuser.Do(u.Rights(), f) }
	data, err := within(ctx, own, func() ([]byte, error) { return readBelow(u, name, strict) })
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return data, err
}

func readBelow(u *User, name string, strict bool) ([]byte, error) {
	base := u.Home
	if filepath.IsAbs(name) {
		base, name = filepath.Dir(name), filepath.Base(name)
	}
	dir, err := unix.Open(base, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) { // a directory may be searchable but not readable
		dir, err = unix.Open(base, unix.O_DIRECTORY|unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: base, Err: err}
	}
	defer func() { unix.Close(dir) }()
	if err := checkModes(dir, base, u.UID, strict); err != nil {
		return nil, err
	}
	parts := strings.Split(filepath.Clean(name), "/")
	for _, part := range parts[:len(parts)-1] {
		base = filepath.Join(base, part)
		next, err := unix.Openat(dir, part, unix.O_DIRECTORY|unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: base, Err: err}
		}
		unix.Close(dir)
		dir = next
		if err := checkModes(dir, base, u.UID, strict); err != nil {
			return nil, err
		}
	}
	return readRegular(dir, parts[len(parts)-1], base, u.UID, strict)
}

// readRegular reads a regular file in a directory. It does not block on a FIFO, and does
// not read devices or follow links.
func readRegular(dir int, name, base string, uid int, strict bool) ([]byte, error) {
	path := filepath.Join(base, name)
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	if err := checkModes(fd, path, uid, strict); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err == nil && len(data) > maxKeyFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxKeyFile)
	}
	return data, err
}

func checkModes(fd int, path string, uid int, strict bool) error {
	if !strict {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Uid != 0 && int(st.Uid) != uid {
		return fmt.Errorf("bad ownership of %s: it belongs to uid %d", path, st.Uid)
	}
	if st.Mode&0o022 != 0 {
		return fmt.Errorf("bad modes of %s: group or others may write (%04o)", path, st.Mode&0o7777)
	}
	return nil
}
