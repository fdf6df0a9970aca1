package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// unwritable: the file system for a job's output is read-only or full. The job's end is what
// really happened, and says why.
func (s *shared) unwritable(t *testing.T) {
	dir := t.TempDir()
	readOnly, full := filepath.Join(dir, "ro"), filepath.Join(dir, "full")
	mount(t, readOnly, "ro")
	mount(t, full, "mode=777,size=64k")
	if err := exec.Command("dd", "if=/dev/zero", "of="+filepath.Join(full, "ballast"), "bs=4k", "count=16").Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); strings.HasPrefix(parent, os.TempDir()+"/"); parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, out, script string
		state, text       string // parts of scontrol show job
	}{
		{"read-only", readOnly, "true", "JobState=FAILED Reason=JobLaunchFailure",
			"SystemComment=output: open " + readOnly + "/out: read-only file system"},
		{"full", full, "echo text", "JobState=FAILED Reason=NonZeroExitCode", "ExitCode=1:0"},
		{"full, and the script goes on", full, "echo text; exit 0", "JobState=COMPLETED", "ExitCode=0:0"},
	} {
		id := s.asBob(t, "sbatch", "--parsable", "-o", filepath.Join(c.out, "out"), "--wrap", c.script)
		eventually.Holds(t, "job "+id+" ends", func() bool {
			return slices.Contains(final, s.asBob(t, "squeue", "-h", "-t", "all", "-j", id, "-o", "%T"))
		})
		if shown := s.asBob(t, "scontrol", "show", "job", id); !strings.Contains(shown, c.state) || !strings.Contains(shown, c.text) {
			t.Errorf("%s: %s", c.name, shown)
		}
		eventually.Holds(t, c.name+": sacct shows the same state", func() bool {
			state := s.asBob(t, "sacct", "-X", "-n", "-P", "-o", "state", "-j", id)
			return state != "" && strings.HasPrefix(c.state, "JobState="+state)
		})
	}
	line := s.bob.command(s.bin, "srun", "-n1", "-Q", "-o", filepath.Join(full, "step"), "echo", "text")
	out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
	want := "is lost: cannot write to " + full + "/step: No space left on device\n"
	if err != nil || strings.Count(string(out), "\n") != 1 || !strings.HasSuffix(string(out), want) {
		t.Errorf("srun prints %q, %v; want one line that ends in %q", out, err, want)
	}
}

// mount mounts a tmpfs with the options until the end of the test.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
}

// asBob returns what a command of bob prints; it must succeed.
func (s *shared) asBob(t *testing.T, args ...string) string {
	t.Helper()
	line := s.bob.command(s.bin, args...)
	out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
