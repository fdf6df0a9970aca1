package localcluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Sweep removes what a killed run of the cluster of dir left on the machine, and
// reports whether there was such a run. It does nothing while a cluster runs there, or
// if none ever did.
func Sweep(dir string, parts Parts) (bool, error) {
	// A run that ends normally removes its record.
	if _, err := os.Stat(filepath.Join(dir, fileProcess)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	st, err := openState(dir) // prevents a start in the meantime
	var running *RunningError
	if errors.As(err, &running) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if parts.Sweep != nil {
		if err := parts.Sweep(dir, nodesDir(dir)); err != nil {
			_ = st.lock.Close() // the record stays: there is more to remove
			return false, err
		}
	}
	st.close()
	return true, nil
}

// nodesDir returns the process nodes' directory.
func nodesDir(state string) string { return filepath.Join(state, "nodes") }
