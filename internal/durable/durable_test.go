package durable_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/durable"
)

func TestWriteReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, text := range []string{"first", "second"} {
		if err := durable.Write(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := durable.Write(filepath.Join(path, "x"), nil, 0o600); err == nil {
		t.Error("no error below a file")
	}
}

// TestFileSurvivesBrokenFileSystem writes a file into a file system that fails at once.
func TestFileSurvivesBrokenFileSystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	dir := t.TempDir()
	image, mounted := filepath.Join(dir, "image"), filepath.Join(dir, "mounted")
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Skipf("%s: %v: %s", name, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if err := os.Mkdir(mounted, 0o700); err != nil {
		t.Fatal(err)
	}
	run("truncate", "-s", "16M", image)
	run("mkfs.ext4", "-q", image)
	run("mount", "-o", "loop,errors=remount-ro", image, mounted)
	defer func() { _ = exec.Command("umount", mounted).Run() }()
	device := filepath.Base(run("findmnt", "-n", "-o", "SOURCE", mounted))
	path := filepath.Join(mounted, "f")
	if err := durable.Write(path, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("/sys/fs/ext4", device, "trigger_fs_error"), []byte("1"), 0); err != nil {
		t.Skip(err)
	}
	if err := durable.Write(path, []byte("later"), 0o600); err == nil {
		t.Error("no error of a read-only file system")
	}
	run("umount", mounted)
	_ = exec.Command("fsck.ext4", "-f", "-y", image).Run() // 1: it has repaired something
	run("mount", "-o", "loop", image, mounted)
	if got, err := os.ReadFile(path); err != nil || string(got) != "text" {
		t.Errorf("after the repair: %q, %v", got, err)
	}
}
