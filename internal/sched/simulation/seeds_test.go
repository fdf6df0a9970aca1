package simulation

import (
	"os"
	"strconv"
	"testing"
	"time"
)

func TestSeeds(t *testing.T) {
	start := time.Now()
	from, _ := strconv.Atoi(os.Getenv("FROM"))
	n, _ := strconv.Atoi(os.Getenv("N"))
	p := parameters{jobs: 100, nodes: 3}
	p.faults, _ = strconv.Atoi(os.Getenv("FAULTS"))
	p.answers, _ = strconv.Atoi(os.Getenv("ANSWERS"))
	p.clock, _ = time.ParseDuration(os.Getenv("CLOCK"))
	jobs := 0
	for seed := uint64(from); seed < uint64(from+n); seed++ {
		r := simulate(t, seed, p)
		jobs += r.jobs
		t.Logf("seed %d: %d jobs %d runs %d steps %v %v %v", seed, r.jobs, r.runs, r.steps, r.states, r.virtual, r.faults)
		if len(r.violations) > 0 {
			t.Fatalf("seed %d: %v\n%s", seed, r.violations, r.tail(80))
		}
	}
	t.Log(jobs, time.Since(start))
}
