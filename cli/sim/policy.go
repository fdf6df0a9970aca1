package sim

import (
	"math"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// policy is a scheduling policy.
type policy struct {
	planning backfill.Policy
	// priority returns the priority of a job; nil: first come, first served.
	priority func(*traceJob) int64
	// pinHead: a job that could not start at the head of the queue remains at the head.
	pinHead bool
}

// policies has the policies by name.
var policies = map[string]policy{
	"default": {planning: backfill.DefaultPolicy()}, // that of the scheduler
	"fcfs":    {planning: backfill.FCFS()},
	"easy":    {planning: backfill.EASY()},
	// EASY with the shortest jobs backfilled first.
	"easy-sjbf": {planning: backfill.SJBF()},
	// EASY with the jobs backfilled first that have waited longest in proportion to their limits.
	"easy-lxbf": {planning: backfill.LXBF()},
	// Backfill that does not delay any job.
	"conservative": {planning: backfill.Conservative()},
	// Shortest time limit first, and a learned function, both without backfill.
	"sjf": {planning: backfill.FCFS(), pinHead: true, priority: shortest},
	"f1":  {planning: backfill.FCFS(), pinHead: true, priority: f1},
}

// policyNames are the names of the policies in the order of the documentation.
var policyNames = []string{"default", "fcfs", "easy", "easy-sjbf", "easy-lxbf", "conservative", "sjf", "f1"}

func shortest(j *traceJob) int64 { return -j.estimate }

// f1 returns the function of that name in Carastan-Santos and de Camargo, "Obtaining
// dynamic scheduling policies with simulation and machine learning", SC'17.
func f1(j *traceJob) int64 {
	score := math.Log10(float64(j.estimate))*float64(j.processors) + 870*math.Log10(float64(max(1, j.submit)))
	return -int64(score * 1e11)
}
