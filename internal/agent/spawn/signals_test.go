package spawn

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/internal/sigaction"
)

// caught returns the mask of signals that this process catches.
func caught(t *testing.T) (mask uint64) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, found := strings.CutPrefix(line, "SigCgt:"); found {
			mask, err = strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return mask
}

// TestHelperResetsSignals checks that the helper stops catching the signals that end a
// program before it executes the task, because a caught signal may get lost.
func TestHelperResetsSignals(t *testing.T) {
	if os.Getenv("BERTH_TEST_CHILD") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "BERTH_TEST_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	if caught(t)&(1<<(uint(syscall.SIGTERM)-1)) == 0 {
		t.Fatal("Go's runtime does not catch SIGTERM any more")
	}
	// The program does not exist, so Exec returns after it has reset the signals.
	var errors strings.Builder
	if code := Exec([]string{"-1", "", "/nonexistent", "x"}, &errors); code != int(syscall.ENOENT) {
		t.Fatalf("%d: %s", code, &errors)
	}
	mask := caught(t)
	for _, sig := range sigaction.Terminating {
		if mask&(1<<(uint(sig)-1)) != 0 {
			t.Errorf("%v is caught: %x", sig, mask)
		}
	}
}
