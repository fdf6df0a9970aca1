package daemon

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Signals that a server ignores because it was started with nohup, or by a shell with
// &, are not ignored by the processes of its sessions, not even in their first moments.
func TestIgnoredSignalsAreReset(t *testing.T) {
	const ignored = "grep SigIgn /proc/self/status"
	if os.Getenv("BERTH_TEST_CHILD") != "" {
		catchIgnored()
		out, err := exec.Command("sh", "-c", ignored).CombinedOutput()
		mask, bad := strconv.ParseUint(strings.TrimSpace(strings.TrimPrefix(string(out), "SigIgn:")), 16, 64)
		// The C library may ignore signals that it uses itself, which have numbers from 32 on.
		if err != nil || bad != nil || mask&(1<<(syscall.SIGHUP-1)|1<<(syscall.SIGINT-1)) != 0 {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `trap "" HUP INT; `+ignored+`; exec "$0" "$@"`, exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "BERTH_TEST_CHILD=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "3\n") || !strings.Contains(string(out), "PASS: "+t.Name()) {
		t.Errorf("%v: %s", err, out)
	}
}
