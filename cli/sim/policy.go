package sim

import (
	"fmt"
	"math"
	"strings"

	"github.com/berth-hpc/berth/internal/sched/backfill"
)

// policy is how a queue is planned.
type policy struct {
	help    string
	options backfill.Options
	// priority of a job; nil: first come, first served.
	priority func(*traceJob) int64
}

// policies by name. The default is what the scheduler does.
var policies = map[string]policy{
	"default":      {help: "what the scheduler does", options: backfill.DefaultOptions()},
	"fcfs":         {help: "first come, first served, nothing else", options: backfill.Options{NoBackfill: true}},
	"easy":         {help: "backfill that delays no start of the first job", options: backfill.Options{Reservations: 1}},
	"easy-sjbf":    {help: "the same, shortest job first among those backfilled", options: backfill.Options{Reservations: 1, ShortestFirst: true}},
	"conservative": {help: "backfill that delays no job"},
	"sjf":          {help: "shortest time limit first, no backfill", options: backfill.Options{NoBackfill: true, Committed: true}, priority: shortest},
	"f1":           {help: "a learned mix of size, time limit and age, no backfill", options: backfill.Options{NoBackfill: true, Committed: true}, priority: f1},
}

func shortest(j *traceJob) int64 { return -j.estimate }

// f1 is the function of that name in Carastan-Santos and de Camargo, "Obtaining
// dynamic scheduling policies with simulation and machine learning", SC'17.
func f1(j *traceJob) int64 {
	score := math.Log10(float64(j.estimate))*float64(j.processors) + 870*math.Log10(float64(max(1, j.submit)))
	return -int64(score * 1e11)
}

// weights are those of a job's age and size.
type weights struct{ age, size float64 }

// maxAge is the wait that counts as the whole of the age, a week.
const maxAge = 7 * 86400

func parseWeights(text string) (weights, error) {
	var w weights
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		var n float64
		if _, err := fmt.Sscanf(value, "%g", &n); !ok || err != nil || n < 0 || n > 1e9 {
			return w, fmt.Errorf("%q is no weight; say age=N or jobsize=N, N from 0 to 1000000000", part)
		}
		switch key {
		case "age":
			w.age = n
		case "jobsize":
			w.size = n
		default:
			return w, fmt.Errorf("there is no weight %q; there are age and jobsize", key)
		}
	}
	if w == (weights{}) {
		return w, fmt.Errorf("the weights %q are all zero and order nothing", text)
	}
	return w, nil
}

// priority grows with time at the same rate for all jobs, so that only what it
// was at submission matters.
func (w weights) priority(processors int) func(*traceJob) int64 {
	return func(j *traceJob) int64 {
		return int64(1e3 * (w.size*float64(j.processors)/float64(processors) - w.age*float64(j.submit)/maxAge))
	}
}
