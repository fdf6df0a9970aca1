package sim

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// promising is a planner that records the reservation of the job at the head of the queue
// and fails if it is ever delayed.
type promising struct {
	fullPlanner
	t        *rapid.T
	promised map[int64]int64 // by job
}

func (p *promising) Decide(now int64) []backfill.Decision {
	p.s.Now = now
	decisions := p.s.Plan().Decisions
	// The decisions of backfilled jobs come last, so the first job that waits is the head.
	if i := slices.IndexFunc(decisions, func(d backfill.Decision) bool { return !d.StartNow }); i >= 0 {
		head := &decisions[i]
		if at, known := p.promised[head.ID]; known && head.Start > at {
			p.t.Fatalf("at %d the start of job %d is delayed from %d to %d", now, head.ID, at, head.Start)
		}
		p.promised[head.ID] = head.Start
	}
	return slices.DeleteFunc(decisions, func(d backfill.Decision) bool { return !d.StartNow })
}

// Under every order of backfill the reservation of the first job is never delayed, and no job
// starves: each job ahead of it keeps it from starting for at most the longest time limit.
func TestNoBackfillOrderStarvesAJob(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		machine := []backfill.Node{{CPUs: rapid.IntRange(1, 8).Draw(t, "processors")}}
		jobs := drawTrace(t, machine[0].CPUs)
		o := &options{estimates: "user"}
		for _, name := range []string{"easy", "easy-sjbf", "easy-lxbf"} {
			pol := policies[name]
			q := &promising{
				fullPlanner: fullPlanner{backfill.Snapshot{Nodes: machine, Policy: pol.planning}},
				t:           t, promised: map[int64]int64{},
			}
			done := newReplayer(q, pol, slices.Clone(jobs), o.asker(pol, machine), nil).replay()
			if len(done) != len(jobs) {
				t.Fatalf("%s: %d of %d jobs ran", name, len(done), len(jobs))
			}
			checkStarvationBound(t, name, done)
		}
	})
}

// checkStarvationBound fails if a job waits longer than the longest time limit for itself and
// for each job that was ahead of it when it was submitted.
func checkStarvationBound(t *rapid.T, policy string, done []*ran) {
	longest := int64(0)
	for _, r := range done {
		longest = max(longest, r.estimate)
	}
	for _, r := range done {
		ahead := int64(0)
		for _, o := range done {
			if o.place < r.place && o.start >= r.submit {
				ahead++
			}
		}
		if r.wait() > (ahead+1)*longest {
			t.Fatalf("%s: job %d waits %d s behind %d jobs of at most %d s", policy, r.id, r.wait(), ahead, longest)
		}
	}
}

// On the published traces, easy-lxbf lets jobs wait no longer on average than easy-sjbf does, and
// the longest wait is shorter.
func TestSlowdownOrderOnPublishedTraces(t *testing.T) {
	for _, name := range []string{"KTH-SP2-1996-2.swf.gz", "lublin_256.swf.gz"} {
		trace := published(t, name)
		shortest, slowdown := simReport(t, trace, "--policy", "easy-sjbf"), simReport(t, trace, "--policy", "easy-lxbf")
		if slowdown.MeanWait > shortest.MeanWait || slowdown.MaxWait > shortest.MaxWait ||
			slowdown.Slowdown > 1.01*shortest.Slowdown {
			t.Errorf("%s: %+v, with easy-sjbf %+v", name, slowdown.figures, shortest.figures)
		}
	}
}
