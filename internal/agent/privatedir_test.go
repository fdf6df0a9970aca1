package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An agent takes away what killed ones left, and nothing of those that live.
func TestPrivateDirIsCleared(t *testing.T) {
	base := t.TempDir()
	live, lock, err := privateDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	dead, left, err := privateDir(base)
	if err != nil {
		t.Fatal(err)
	}
	left.Close() // as the kernel does when its agent is killed
	if err := os.WriteFile(filepath.Join(dead, "slurm_script"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	for _, dir := range []string{live, dead} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v", dir, info.Mode(), err)
		}
		if err := os.Chtimes(dir, long, long); err != nil {
			t.Fatal(err)
		}
	}
	next, lock2, err := privateDir(base)
	if err != nil {
		t.Fatal(err)
	}
	defer lock2.Close()
	for dir, want := range map[string]bool{live: true, dead: false, next: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v", dir, err == nil)
		}
	}
}

// TestNoExec: a script cannot be run from where container runtimes mount shared
// memory.
func TestNoExec(t *testing.T) {
	if got := noExec("/proc"); got != 1 {
		t.Skip("this machine runs programs from /proc")
	}
	if noExec(t.TempDir()) != 0 || noExec("/nowhere") != 0 {
		t.Error("a plain folder, or none, is taken for one without programs")
	}
}
