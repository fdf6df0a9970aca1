package realnode

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSweepRemovesOnlyUnusedFiles(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	held, lock, err := claim()
	must(t, err)
	defer lock.Close()
	left, released, err := claim()
	must(t, err)
	must(t, released.Close()) // as the kernel does for a killed program
	kept := filepath.Join(tmp, prefix+"kept")
	must(t, os.Mkdir(kept, 0o755))
	must(t, sweep())
	for dir, want := range map[string]bool{held: true, left: false, kept: true} {
		if exists(dir) != want {
			t.Errorf("%s is there: %v, want %v", dir, !want, want)
		}
	}
}
