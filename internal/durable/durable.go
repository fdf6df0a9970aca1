// Package durable replaces files so that they survive a crash of the machine or of the file
// system. Without it, a file that was written seconds before the
// crash may be empty.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Suffix is that of the name of a file that is being written. A crash can leave such a file.
const Suffix = ".new"

// Write replaces the file at path.
func Write(path string, data []byte, perm fs.FileMode) error {
	tmp := path + Suffix
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync() // before the new name refers to it
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close()) // the new name
}
