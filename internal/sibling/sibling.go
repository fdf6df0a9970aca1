// Package sibling finds the other programs of Berth, which are installed in the
// same directory as the running one.
package sibling

import (
	"os"
	"path/filepath"
)

// executable is os.Executable, except in tests.
var executable = os.Executable

// Path returns the path at which the program called name is installed. Links to
// the running program are resolved, so that a link to it in another directory of
// PATH works. The program need not exist.
func Path(name string) (string, error) {
	self, err := executable()
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	return filepath.Join(filepath.Dir(self), name), nil
}
