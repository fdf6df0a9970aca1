package agent_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
)

// BenchmarkSrun measures `srun hostname` from a shell inside a job, over one node and over
// ten. All iterations run in one job.
func BenchmarkSrun(b *testing.B) {
	for _, nodes := range []int{1, 10} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			cpus := make([]int32, nodes)
			for i := range cpus {
				cpus[i] = 1
			}
			g := start(b, shape{cpus: cpus, script: fmt.Sprintf("#!/bin/bash\nsrun true\na=${EPOCHREALTIME/./}\n"+
				"for ((i=0; i<%d; i++)); do srun -N%d -n%d hostname; done >/dev/null\necho took $((${EPOCHREALTIME/./}-a))\n", b.N, nodes, nodes)})
			_, out := g.finish()
			m := regexp.MustCompile(`took (\d+)`).FindStringSubmatch(out)
			if m == nil {
				b.Fatal(out)
			}
			us, _ := strconv.ParseFloat(m[1], 64)
			b.ReportMetric(us/1000/float64(b.N), "ms/srun")
		})
	}
}
