package backfill

import (
	"fmt"
	"testing"
)

// A Queue resumes its last cycle only where that decides what a full plan decides.
func TestQueueResumesCycles(t *testing.T) {
	// Job 1 runs on all CPUs but one until 100, and job 2 waits for all of them.
	head := Job{ID: 2, Priority: 9, MinNodes: 1, CPUsPerTask: 4, Duration: 50}
	short := Job{ID: 3, Priority: 8, MinNodes: 1, Duration: 10}
	long := Job{ID: 3, Priority: 8, MinNodes: 1, Duration: 1000}
	with := func(j Job, change func(*Job)) Job { change(&j); return j }
	for _, c := range []struct {
		name         string
		first, comes []Job
		now          int64 // of the second cycle
		resumes      bool
		starts       string
	}{
		{"a job that can be backfilled comes", []Job{head}, []Job{short}, 20, true, "[3]"},
		{"a job that would delay the head comes", []Job{head}, []Job{long}, 20, true, "[]"},
		{"a job comes when the running one should have ended", []Job{head}, []Job{short}, 100, false, "[]"},
		{"a job comes before others", []Job{head}, []Job{with(long, func(j *Job) { j.Priority = 10 })}, 20, false, "[3]"},
		{"another job's begin time has come", []Job{head, with(short, func(j *Job) { j.Begin = 20 })},
			[]Job{{ID: 4, MinNodes: 1, Duration: 1000}}, 20, false, "[3]"},
		{"a job that never runs joins the head's group", []Job{with(head, func(j *Job) { j.Group = 1 }), long},
			[]Job{{ID: 4, Group: 1, MinNodes: 2}}, 20, false, "[3]"},
	} {
		for policy, p := range map[string]Policy{"EASY": EASY(), "conservative": Conservative()} {
			t.Run(c.name+"/"+policy, func(t *testing.T) {
				s := &Snapshot{Nodes: nodes(1, 4), Policy: p, Pending: c.first,
					Running: []Running{{ID: 1, End: 100, Allocation: []NodeAllocation{held(0, 0, 3)}}}}
				q := NewQueue(s)
				if d := q.Decide(10); len(d) > 0 {
					t.Fatalf("the first cycle starts %+v", d)
				}
				cycle := q.planner.epoch
				for i := range c.comes {
					q.Submit(&c.comes[i])
				}
				got := []int64{}
				for _, d := range q.Decide(c.now) {
					got = append(got, d.ID)
				}
				if fmt.Sprint(got) != c.starts {
					t.Errorf("the queue starts %v, want %s", got, c.starts)
				}
				if resumed := q.planner.epoch == cycle; resumed != c.resumes {
					t.Errorf("resumed: %v", resumed)
				}
			})
		}
	}
}
