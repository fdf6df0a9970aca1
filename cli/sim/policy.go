package sim

import (
	"math"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// policy is how a queue is planned.
type policy struct {
	help    string
	options backfill.Policy
	// priority of a job; nil: first come, first served.
	priority func(*traceJob) int64
}

// policies by name. The default is what the scheduler does.
var policies = map[string]policy{
	"default":      {help: "what the scheduler does", options: backfill.DefaultPolicy()},
	"fcfs":         {help: "first come, first served, nothing else", options: backfill.Policy{NoBackfill: true}},
	"easy":         {help: "backfill that delays no start of the first job", options: backfill.Policy{Reservations: 1}},
	"easy-sjbf":    {help: "the same, shortest job first among those backfilled", options: backfill.Policy{Reservations: 1, ShortestFirst: true}},
	"conservative": {help: "backfill that delays no job"},
	"sjf":          {help: "shortest time limit first, no backfill", options: backfill.Policy{NoBackfill: true, Committed: true}, priority: shortest},
	"f1":           {help: "a learned mix of size, time limit and age, no backfill", options: backfill.Policy{NoBackfill: true, Committed: true}, priority: f1},
}

func shortest(j *traceJob) int64 { return -j.estimate }

// f1 is the function of that name in Carastan-Santos and de Camargo, "Obtaining
// dynamic scheduling policies with simulation and machine learning", SC'17.
func f1(j *traceJob) int64 {
	score := math.Log10(float64(j.estimate))*float64(j.processors) + 870*math.Log10(float64(max(1, j.submit)))
	return -int64(score * 1e11)
}
