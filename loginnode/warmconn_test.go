package loginnode_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
)

// One spare connection to a pod is kept for the next login, not one for each earlier login.
func TestOneSpareConnectionToAPod(t *testing.T) {
	n, p := withPods(t)
	for range 10 {
		c, err := n.dial("ann", n.ann().key)
		n.must(err)
		if got := run(t, c, "echo in"); got != "in" {
			t.Fatal(got)
		}
		c.Close()
	}
	p.mu.Lock()
	pid := p.running["ann"].Process.Pid
	p.mu.Unlock()
	eventually.Holds(t, "the pod has only the listener, the control and the spare connection", func() bool {
		sockets := 0
		files, err := filepath.Glob("/proc/" + itoa(pid) + "/fd/*")
		n.must(err)
		for _, f := range files {
			if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:") {
				sockets++
			}
		}
		return sockets == 3
	})
}
