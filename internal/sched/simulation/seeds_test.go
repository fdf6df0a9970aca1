package simulation

import (
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain uses one processor: only then does a seed decide everything.
func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(1)
	os.Exit(m.Run())
}

// faulty returns the parameters of a seed: of each four, one has faults, one has many, one
// also has machines with different clocks, which jump, and one has faults of processes and requests only. One in
// eight has an accounting database, which takes time.
func faulty(seed uint64) parameters {
	p := parameters{jobs: 100, nodes: 3, faults: 10, answers: 20}
	p.preemptType = preemptByQOS
	if seed/4%2 == 1 {
		p.preemptType = preemptByPartition
	}
	p.accounting = seed%8 == 5
	if seed/8%2 == 1 {
		p.nodes, p.pool = 5, 3
	}
	switch seed % 4 {
	case 1:
		p.faults, p.answers = 60, 200
	case 2:
		p.nodes, p.faults, p.clock = 5, 20, 2*time.Minute
	case 3:
		p.faults, p.answers, p.quiet = 30, 100, true
	}
	return p
}

// seeds returns the seeds to simulate: SIMULATION_SEEDS=FIRST-LAST, or a few.
func seeds(t *testing.T) (first, last uint64) {
	t.Helper()
	from, to, ok := strings.Cut(os.Getenv("SIMULATION_SEEDS"), "-")
	if !ok {
		if raceDetector {
			return 0, 2
		}
		return 0, 29
	}
	first, err := strconv.ParseUint(from, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if last, err = strconv.ParseUint(to, 10, 64); err != nil {
		t.Fatal(err)
	}
	return first, last
}

// For every seed: no two jobs share CPUs, no attempt runs twice, no job runs before its
// begin time or dependency or again without a cause, every job gets one final state that
// is true, and nothing is left.
func TestNothingIsLost(t *testing.T) {
	first, last := seeds(t)
	begin := time.Now()
	var jobs, runs, steps int
	var virtual time.Duration
	states, faults, seen := map[string]int{}, map[string]int{}, map[string]int{}
	for seed := first; seed <= last; seed++ {
		r := simulate(t, seed, faulty(seed))
		jobs, runs, steps, virtual = jobs+r.jobs, runs+r.runs, steps+r.steps, virtual+r.virtual
		for k, n := range r.states {
			states[k] += n
		}
		for k, n := range r.seen {
			seen[k] += n
		}
		for k, n := range r.faults {
			faults[k] += n
		}
		if len(r.violations) > 0 {
			t.Errorf("seed %d (repeat it with SIMULATION_SEEDS=%[1]d-%[1]d): %s\n%s", seed,
				strings.Join(r.violations, "; "), r.tail(100))
		}
	}
	t.Logf("%d seeds: %d jobs, %d runs of scripts, %d steps, %v of virtual time in %v; jobs by state %v, faults %v, %v",
		last-first+1, jobs, runs, steps, virtual.Round(time.Hour), time.Since(begin).Round(time.Second), states, faults,
		seen)
	for _, state := range []string{"CANCELLED", "COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"} {
		if states[state] == 0 && last-first >= 29 {
			t.Errorf("no job was ever %s", state)
		}
	}
	for _, what := range mustBeSeen {
		if seen[what] == 0 && last-first >= 29 {
			t.Errorf("%s: never", what)
		}
	}
}

// mustBeSeen is what happens in any 30 seeds.
var mustBeSeen = []string{
	"further components started", "jobs started in a reservation", "preempted jobs ran again",
	"jobs with records", "jobs ran in reused pods",
	"nodes of the pool came and went", "machines that never registered", "machines that registered too late",
	"machines with fewer CPUs", "nodes that rebooted", "nodes that did not come back", "clocks of nodes jumped", "clocks of leaders jumped",
	"jobs preempted with CANCEL", "jobs preempted with REQUEUE",
}

// A seed can be repeated: the same things happen in the same order.
func TestSeedsRepeat(t *testing.T) {
	if raceDetector {
		t.Skip("it takes long, and the other test has run these goroutines")
	}
	for seed := range uint64(6) {
		a, b := simulate(t, seed, faulty(seed)), simulate(t, seed, faulty(seed))
		if a.digest == b.digest {
			continue
		}
		for i := range a.trace {
			if i >= len(b.trace) || a.trace[i] != b.trace[i] {
				t.Errorf("seed %d differs at step %d: %q, then %q", seed, i, a.trace[i],
					b.trace[min(i, len(b.trace)-1)])
				break
			}
		}
	}
}

// Each wrong history is reported.
func TestWrongHistories(t *testing.T) {
	for name, wrong := range wrongHistories {
		t.Run(name, func(t *testing.T) {
			s := newSimulation(t, 0, parameters{nodes: 2})
			wrong.happens(s)
			isWanted := func(v string) bool { return strings.Contains(v, wrong.want) }
			if !slices.ContainsFunc(s.truth.violations, isWanted) {
				t.Errorf("reported %q, want one with %q", s.truth.violations, wrong.want)
			}
		})
	}
}
