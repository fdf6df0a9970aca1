package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExchangedMountIsRefused replaces a directory by a link between the record and the
// mount, as an attacker does who wants to mount the directory of another user.
func TestExchangedMountIsRefused(t *testing.T) {
	dir := t.TempDir()
	mine, secret, target, file := filepath.Join(dir, "mine"), filepath.Join(dir, "secret"), filepath.Join(
		dir,
		"target",
	), filepath.Join(dir, "mounts")
	for _, d := range []string{mine, secret} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := recordMounts(file, []string{mine + ":" + target}); err != nil {
		t.Fatal(err)
	}
	// A kubelet mounts the directory that the source is at that moment.
	mount := func() {
		t.Helper()
		_ = os.Remove(target)
		real, err := filepath.EvalSymlinks(mine)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, target); err != nil {
			t.Fatal(err)
		}
	}
	mount()
	if err := checkMounts(file); err != nil {
		t.Errorf("nothing was replaced: %v", err)
	}
	if err := os.Rename(mine, mine+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, mine); err != nil {
		t.Fatal(err)
	}
	mount()
	if err := checkMounts(file); err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("a directory was replaced by a link: %v", err)
	}
	if err := checkMounts(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a job without mounts: %v", err)
	}
}
