package filelimit_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/filelimit"
)

// TestAtStart runs this test again in shells that set the limit and then replace themselves
// by it, so that only that process is started with the limit.
func TestAtStart(t *testing.T) {
	if os.Getenv("FILELIMIT_CHILD") != "" {
		soft, ok := filelimit.AtStart()
		t.Logf("started with %d %t", soft, ok)
		return
	}
	for _, want := range []int{300, 321} {
		cmd := exec.Command(
			"sh",
			"-c",
			`ulimit -S -n "$1"; exec "$0" -test.v -test.run='^TestAtStart$'`,
			os.Args[0],
			strconv.Itoa(want),
		)
		cmd.Env = append(os.Environ(), "FILELIMIT_CHILD=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "started with "+strconv.Itoa(want)+" true\n") {
			t.Errorf("%d: %v\n%s", want, err, out)
		}
	}
}
