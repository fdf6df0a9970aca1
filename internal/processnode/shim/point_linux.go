package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// maxLinks is the maximum number of symbolic links in a path.
const maxLinks = 40

// point returns the mount point for target: a file or directory, with links resolved inside
// the container's root. It creates a mount point that does not exist.
func (r *root) point(target string, isDir bool) (string, error) {
	at, rest, err := r.walk(target)
	if err != nil {
		return "", err
	}
	if len(rest) == 0 {
		info, err := os.Lstat(r.at + at)
		if err != nil {
			return "", err
		}
		if info.IsDir() != isDir {
			return "", fmt.Errorf("%s: a directory and a file cannot be mounted on each other", target)
		}
		return at, nil
	}
	if !r.own[at] {
		if err := r.rebuild(at, func(os.DirEntry) bool { return true }); err != nil {
			return "", err
		}
	}
	for i, name := range rest {
		at = path.Join(at, name)
		if i == len(rest)-1 && !isDir {
			return at, touch(r.at + at)
		}
		if err := os.Mkdir(r.at+at, 0o755); err != nil {
			return "", err
		}
		r.own[at] = true
	}
	return at, nil
}

// walk resolves target from the container's root as far as it exists. It returns the path of
// the existing part, and the names of the rest.
func (r *root) walk(target string) (at string, rest []string, err error) {
	at = "/"
	rest = split(target)
	for links := 0; len(rest) > 0; {
		next := path.Join(at, rest[0])
		info, err := os.Lstat(r.at + next)
		if errors.Is(err, fs.ErrNotExist) {
			return at, rest, nil
		}
		if err != nil {
			return "", nil, err
		}
		rest = rest[1:]
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", nil, fmt.Errorf("%s: too many levels of symbolic links", target)
			}
			link, err := os.Readlink(r.at + next)
			if err != nil {
				return "", nil, err
			}
			if path.IsAbs(link) {
				at = "/"
			} else {
				link = path.Join(at, link)
				at = "/"
			}
			rest = append(split(link), rest...)
		case info.IsDir() || len(rest) == 0:
			at = next
		default:
			return "", nil, fmt.Errorf("%s: %s is not a directory", target, next)
		}
	}
	return at, rest, nil
}

func split(p string) []string {
	p = strings.Trim(path.Clean("/"+p), "/")
	if p == "" {
		return nil
	}
	return strings.Split(p, "/")
}
