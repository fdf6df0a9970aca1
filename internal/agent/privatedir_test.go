package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestRemoveStale checks that an agent removes the directories of killed agents, and none
// of running ones.
func TestRemoveStale(t *testing.T) {
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
	left.Close() // as when the kernel kills its agent
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

// TestNoExec checks that a file system that is mounted noexec, as container runtimes mount
// /dev/shm, is detected.
func TestNoExec(t *testing.T) {
	if got := noExec("/proc"); got != 1 {
		t.Skip("this machine runs programs from /proc")
	}
	if noExec(t.TempDir()) != 0 || noExec("/nowhere") != 0 {
		t.Error("a directory that permits programs, or a missing one, is reported as noexec")
	}
}
