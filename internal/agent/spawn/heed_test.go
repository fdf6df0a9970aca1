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

// caught are the signals that this process catches.
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

// The helper does not catch what ends a program, before it becomes the task:
// what it catches may be lost on the way.
func TestTheHelperHeedsSignals(t *testing.T) {
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
	// A program that is not there: Exec returns, having done all that comes before.
	var said strings.Builder
	if code := Exec([]string{"-1", "", "/nonexistent", "x"}, &said); code != int(syscall.ENOENT) {
		t.Fatalf("%d: %s", code, &said)
	}
	mask := caught(t)
	for _, sig := range sigaction.Deadly {
		if mask&(1<<(uint(sig)-1)) != 0 {
			t.Errorf("%v is caught: %x", sig, mask)
		}
	}
}
