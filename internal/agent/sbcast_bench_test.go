package agent_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// sbcastScript copies a file several times: arguments are the directory of the commands, the
// file, the name by which sbcast opens it, and how often.
const sbcastScript = `#!/bin/bash
PATH=%s:$PATH
ln -s %s source; exec 3<source
sbcast -f %[3]s copy
a=${EPOCHREALTIME/./}
for ((i=0; i<%[4]d; i++)); do sbcast -f %[3]s copy || echo failed $?; done
echo took $((${EPOCHREALTIME/./}-a))
cmp source copy
`

// BenchmarkSbcast measures sbcast of 256 MB from a shell inside a job to four nodes of one machine,
// and the processor time of all its processes: of a file that the nodes see, and of one that they
// do not see, which one of them writes for all. AGENT_TEST_BIN has to have sbcast.
func BenchmarkSbcast(b *testing.B) {
	if _, err := os.Stat(filepath.Join(binDir, "sbcast")); err != nil {
		b.Skip("AGENT_TEST_BIN has no sbcast")
	}
	large := filepath.Join(b.TempDir(), "large")
	contents := make([]byte, 256_000_000)
	rand.Read(contents) //nolint:errcheck // it never fails
	if err := os.WriteFile(large, contents, 0o600); err != nil {
		b.Fatal(err)
	}
	for _, source := range []string{"source", "/proc/self/fd/3"} {
		b.Run(filepath.Base(source), func(b *testing.B) {
			g := start(b, shape{
				cpus: []int32{1, 1, 1, 1}, script: fmt.Sprintf(sbcastScript, filepath.Clean(binDir), large, source, b.N),
			})
			_, out := g.finish()
			m := regexp.MustCompile(`^took (\d+)\n$`).FindStringSubmatch(out)
			if m == nil {
				b.Fatal(out)
			}
			us, _ := strconv.ParseFloat(m[1], 64)
			b.ReportMetric(us/1000/float64(b.N), "ms/sbcast")
			g.stop()
			var used time.Duration
			for _, n := range g.nodes {
				used += n.ProcessState.UserTime() + n.ProcessState.SystemTime()
			}
			b.ReportMetric(float64(used.Milliseconds())/float64(b.N+1), "cpu-ms/sbcast")
		})
	}
}
