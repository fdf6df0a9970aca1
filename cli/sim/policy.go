package sim

import (
	"math"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// policy is how a queue is ordered and planned.
type policy struct {
	help     string
	planning backfill.Policy
	// priority returns the priority of a job; nil: first come, first served.
	priority func(*traceJob) int64
	// pinHead: a job that could not start at the head of the queue stays there.
	pinHead bool
}

// policies by name. The default is what the scheduler does.
var policies = map[string]policy{
	"default":      {help: "what the scheduler does", planning: backfill.DefaultPolicy()},
	"fcfs":         {help: "first come, first served, nothing else", planning: backfill.FCFS()},
	"easy":         {help: "backfill that delays no start of the first job", planning: backfill.EASY()},
	"easy-sjbf":    {help: "the same, shortest job first among those backfilled", planning: backfill.SJBF()},
	"conservative": {help: "backfill that delays no job", planning: backfill.Conservative()},
	"sjf": {
		help:     "shortest time limit first, no backfill",
		planning: backfill.FCFS(),
		pinHead:  true,
		priority: shortest,
	},
	"f1": {
		help:     "a learned mix of size, time limit and age, no backfill",
		planning: backfill.FCFS(), pinHead: true, priority: f1,
	},
}

func shortest(j *traceJob) int64 { return -j.estimate }

// f1 returns the function of that name in Carastan-Santos and de Camargo, "Obtaining
// dynamic scheduling policies with simulation and machine learning", SC'17.
func f1(j *traceJob) int64 {
	score := math.Log10(float64(j.estimate))*float64(j.processors) + 870*math.Log10(float64(max(1, j.submit)))
	return -int64(score * 1e11)
}
