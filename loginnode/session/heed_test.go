package session

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/internal/sigaction"
)

// masks are the signals that this process ignores, and that it catches.
func masks(t *testing.T) (ignored, caught uint64) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		switch name {
		case "SigIgn":
			ignored = n
		case "SigCgt":
			caught = n
		}
	}
	return ignored, caught
}

// The child of a session neither ignores nor catches signals that end a program, before
// it becomes the user's shell: a caught signal could be lost in between.
func TestChildHandlesSignals(t *testing.T) {
	if os.Getenv("BERTH_TEST_CHILD") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "BERTH_TEST_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGHUP) // as nohup does
	if _, caught := masks(t); caught&(1<<(uint(syscall.SIGTERM)-1)) == 0 {
		t.Fatal("Go's runtime does not catch SIGTERM any more")
	}
	sigaction.ResetAll()
	ignored, caught := masks(t)
	for _, sig := range sigaction.Terminating {
		if bit := uint64(1) << (uint(sig) - 1); (ignored|caught)&bit != 0 {
			t.Errorf("%v: ignored %x, caught %x", sig, ignored, caught)
		}
	}
	if ignored&^(1<<(32-1)) != 0 {
		t.Errorf("ignored: %x", ignored)
	}
}
