package sim

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/internal/sched/priority"
	"github.com/berth-hpc/berth/translate/status"
)

// weights are the weights of the factors of a job's priority, by their names in sprio.
type weights map[string]int64

// factors are the names of the weights. A trace has no priorities of partitions
// and accounts and no QOS, so these are equal for all of its jobs.
var factors = []string{"age", "fairshare", "jobsize", "partition", "qos", "assoc"}

// highest is the highest priority of a job.
const highest = math.MaxUint32 - 1

// parseWeights parses "age=N,fairshare=N". It returns an error for weights that
// cannot order any jobs.
func parseWeights(text string) (weights, error) {
	w := weights{}
	sum := int64(0)
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		if !ok || err != nil || n < 0 || n > highest {
			return nil, fmt.Errorf("invalid weight %q, expected FACTOR=N with N from 0 to %d", part, int64(highest))
		}
		if !slices.Contains(factors, key) {
			return nil, fmt.Errorf("unknown factor %q; valid factors are %s", key, strings.Join(factors, ", "))
		}
		if had, twice := w[key]; twice {
			return nil, fmt.Errorf("duplicate weight: %s is %d and %d", key, had, n)
		}
		w[key] = n
		sum += n
	}
	switch {
	case sum == 0:
		return nil, fmt.Errorf("all weights in %q are zero", text)
	case w["age"]+w["fairshare"]+w["jobsize"] == 0:
		return nil, fmt.Errorf(
			"the weights %q have no effect: all jobs of a trace have the same partition, QOS and association",
			text,
		)
	case sum > highest:
		return nil, fmt.Errorf(
			"the sum of the weights %q exceeds %d, the highest priority",
			text,
			int64(highest),
		)
	}
	return w, nil
}

// account is the account of all users of a trace, who have one share each.
const account = "trace"

// calcPeriod is the interval in seconds in which priorities are computed, the default of
// PriorityCalcPeriod.
const calcPeriod = 300

// weighing computes the priorities of the scheduler during a replay.
type weighing struct {
	weights    weights
	processors int
	now, last  int64             // last: time of the latest computation of all priorities
	usage      map[int64]float64 // of each user, decayed, in processor-seconds
	busy       map[int64]int64   // processors that each user has now
	factors    *priority.Multifactor
	waiting    []weighed
}

type weighed struct {
	*traceJob
	asked *backfill.Job
}

func newWeighing(w weights, processors int) *weighing {
	return &weighing{
		weights:    w,
		processors: processors,
		last:       -calcPeriod,
		usage:      map[int64]float64{},
		busy:       map[int64]int64{},
	}
}

// advance moves the clock and, once in calcPeriod, updates the priority of every
// pending job.
func (w *weighing) advance(now int64, q planner) {
	kept := math.Exp2(-float64(now-w.now) / priority.DefaultHalfLife)
	for user, used := range w.usage {
		w.usage[user] = used*kept + float64(w.busy[user]*(now-w.now))
	}
	w.now = now
	if w.factors != nil && now-w.last < calcPeriod {
		return
	}
	w.last = now
	w.compute()
	for _, j := range w.waiting {
		q.Withdraw(j.asked.ID)
	}
	for _, j := range w.waiting {
		j.asked.Priority = w.of(j.traceJob)
		q.Submit(j.asked)
	}
}

// compute updates the factors with the usage of users.
func (w *weighing) compute() {
	used := make(map[status.AssociationKey]float64, len(w.usage))
	for user, n := range w.usage {
		used[key(user)] = n
	}
	w.factors = priority.New(priority.Input{
		Now: w.now, Parameters: v1alpha1.Priority{PriorityType: "priority/multifactor", PriorityWeights: w.weights},
		Accounts: []*v1alpha1.Account{{ObjectMeta: metav1.ObjectMeta{Name: account}}},
		Usage:    used, Nodes: w.processors, CPUs: w.processors,
	})
}

func key(user int64) status.AssociationKey {
	return status.AssociationKey{Account: account, User: strconv.FormatInt(user, 10)}
}

// of returns the job's priority. The size of a job is its share of the processors.
func (w *weighing) of(j *traceJob) int64 {
	k := key(j.user)
	return w.factors.Of(j.id, &priority.Job{Account: k.Account, User: k.User, Since: j.submit,
		Nodes: int32(j.processors), CPUs: int32(j.processors)}) //nolint:gosec // at most 1<<24
}

// submit sets the first priority of a job.
func (w *weighing) submit(j *traceJob, asked *backfill.Job) {
	if _, known := w.usage[j.user]; !known {
		w.usage[j.user] = 0
		w.compute()
	}
	asked.Priority = w.of(j)
	w.waiting = append(w.waiting, weighed{j, asked})
}

func (w *weighing) start(j *traceJob) {
	w.busy[j.user] += int64(j.processors)
	w.waiting = slices.DeleteFunc(w.waiting, func(x weighed) bool { return x.traceJob == j })
}

func (w *weighing) end(j *traceJob) { w.busy[j.user] -= int64(j.processors) }
