package realnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// heavy are the binaries that neither users nor jobs have.
var heavy = []string{"scheduler", "berth-local"}

// copyCommands copies the light commands, and the links between them, to a
// directory that every user can read.
func copyCommands(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("the binaries (make build): %w", err)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if slices.Contains(heavy, e.Name()) || e.IsDir() {
			continue
		}
		if err := copyCommand(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyCommand(from, to string) error {
	if target, err := os.Readlink(from); err == nil {
		return os.Symlink(target, to)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(to, b, 0o755), os.Chmod(to, 0o755))
}
