package localcluster

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Sweep removes what a run of the cluster of dir left on the machine when it
// was killed. It tells whether there was such a run. Nothing happens while a
// cluster runs there, or where none ever did.
func Sweep(dir string, parts Parts) (bool, error) {
	// A run that ends by itself takes its record with it.
	if _, err := os.Stat(filepath.Join(dir, fileProcess)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	st, err := openState(dir) // nobody starts one meanwhile
	var running *RunningError
	if errors.As(err, &running) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if parts.Sweep != nil {
		if err := parts.Sweep(dir, nodesDir(dir)); err != nil {
			_ = st.lock.Close() // the record stays: there is still something to sweep
			return false, err
		}
	}
	st.close()
	return true, nil
}

// nodesDir is the process nodes' folder.
func nodesDir(state string) string { return filepath.Join(state, "nodes") }
