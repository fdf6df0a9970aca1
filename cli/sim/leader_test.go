package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// fullPlanner decides with a plan of the whole queue at every event, as the
// leader of a small cluster does.
type fullPlanner struct{ s backfill.Snapshot }

func (p *fullPlanner) Submit(jobs ...*backfill.Job) {
	for _, j := range jobs {
		p.s.Pending = append(p.s.Pending, *j)
	}
}

func (p *fullPlanner) Withdraw(id int64) {
	p.s.Pending = slices.DeleteFunc(p.s.Pending, func(j backfill.Job) bool { return j.ID == id })
}

func (p *fullPlanner) Start(r *backfill.Running) { p.s.Running = append(p.s.Running, *r) }

func (p *fullPlanner) End(id int64) {
	p.s.Running = slices.DeleteFunc(p.s.Running, func(r backfill.Running) bool { return r.ID == id })
}

func (p *fullPlanner) Decide(now int64) []backfill.Decision {
	p.s.Now = now
	return slices.DeleteFunc(p.s.Plan().Decisions, func(d backfill.Decision) bool { return !d.StartNow })
}

// A replay starts the jobs that the leader's full plan would start, on the same
// nodes, at the same second, under every policy.
func TestReplayStartsWhatTheLeaderWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		machine := make([]backfill.Node, rapid.IntRange(1, 4).Draw(t, "nodes"))
		processors := 0
		for i := range machine {
			machine[i] = backfill.Node{CPUs: rapid.IntRange(1, 8).Draw(t, "CPUs"), Memory: 1000}
			processors += machine[i].CPUs
		}
		jobs := drawTrace(t, processors)
		o := &options{estimates: rapid.SampledFrom([]string{"user", "actual"}).Draw(t, "estimates"), machine: "slurm.conf"}
		for name, pol := range policies {
			ask := o.asker(pol, machine)
			got := replay(machine, pol, jobs, ask, nil)
			leader := &fullPlanner{backfill.Snapshot{Nodes: machine, Policy: pol.planning}}
			want := newReplayer(leader, pol, slices.Clone(jobs), ask, nil).replay()
			if a, b := schedule(got), schedule(want); a != b {
				t.Fatalf("%s: the replay starts\n%s\nthe leader\n%s", name, a, b)
			}
		}
	})
}

// drawTrace draws jobs in the order of their submission.
func drawTrace(t *rapid.T, processors int) []traceJob {
	var jobs []traceJob
	at := int64(0)
	for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
		at += rapid.Int64Range(0, 20).Draw(t, "pause")
		run := rapid.Int64Range(1, 60).Draw(t, "run")
		jobs = append(jobs, traceJob{
			id:         int64(i),
			submit:     at,
			run:        run,
			estimate:   run + rapid.SampledFrom([]int64{0, 1, 10, 60}).Draw(t, "more"),
			processors: rapid.IntRange(1, processors).Draw(t, "size"),
			memory:     rapid.Int64Range(0, 200).Draw(t, "memory") * 1024,
			user:       rapid.Int64Range(1, 3).Draw(t, "user"),
		})
	}
	return jobs
}

// schedule returns one line for each job: when and where it ran.
func schedule(done []*ran) string {
	var b strings.Builder
	for _, r := range done {
		fmt.Fprintln(&b, r.id, r.start, r.end, r.nodes)
	}
	return b.String()
}
