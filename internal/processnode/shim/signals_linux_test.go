package shim

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

// A shim neither ignores nor catches the signals that end a program before it executes the
// container's command, because a caught signal could get lost.
func TestShimResetsSignals(t *testing.T) {
	if os.Getenv("BERTH_TEST_CHILD") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "BERTH_TEST_CHILD=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGHUP, syscall.SIGTTOU) // as nohup and shells do
	if masks(t, "SigCgt")&(1<<(uint(syscall.SIGTERM)-1)) == 0 || masks(t, "SigIgn")&(1<<(uint(syscall.SIGTTOU)-1)) == 0 {
		t.Fatal("the signals are neither caught nor ignored")
	}
	if err := finishSetup(&Spec{}); err != nil {
		t.Fatal(err)
	}
	ignored, caught := masks(t, "SigIgn"), masks(t, "SigCgt")
	for _, sig := range sigaction.Terminating {
		if caught&(1<<(uint(sig)-1)) != 0 {
			t.Errorf("%v is caught: %x", sig, caught)
		}
	}
	if ignored != 0 {
		t.Errorf("ignored: %x", ignored)
	}
}

func masks(t *testing.T, name string) uint64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			mask, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return mask
		}
	}
	t.Fatalf("no %s", name)
	return 0
}
