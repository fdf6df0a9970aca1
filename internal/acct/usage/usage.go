// Package usage holds in memory what finished runs have used, decayed with age,
// for fair share and for limits on TRES minutes.
package usage

import (
	"maps"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/translate/status"
)

// account is an association in a QOS, whose factor weights what was used.
type account struct {
	status.AssociationKey
	qos string
}

// Usage is what finished runs have used. It is filled from the database and by
// every record that is stored. Safe for concurrent use.
//
// A run counts as a rate of TRES from its start to its end; the usage at a time
// is the integral with the weight 2^(-age/half-life). The weights of all hours
// shrink by the same factor as time passes, so the sum over past hours is cached
// and multiplied: a query costs in proportion to the associations, not to their
// history.
type Usage struct {
	mu      sync.Mutex
	byOwner map[account]*history
	counted map[record.RunKey]int64 // the runs that are counted: the hour in which each ended
	oldest  int64                   // hours before it have been dropped
}

// history is what one account used in each hour, and sums over it.
type history struct {
	hours map[int64]map[string]float64 // TRES-seconds
	last  int64                        // the newest of hours
	sums  map[decay]*runningSum
}

// wallTime is the name, among TRES, of the time that runs took.
const wallTime = "wall"

// Horizon is how long usage is counted: older usage has no weight with any
// half-life in use.
const Horizon = 400 * 24 * time.Hour

// New returns an empty Usage.
func New() *Usage {
	return &Usage{byOwner: map[account]*history{}, counted: map[record.RunKey]int64{}}
}

// Add counts a run that has ended. A run counts once, however often it is added.
func (u *Usage) Add(r *status.Record) {
	if r.End == 0 || r.Start == 0 || r.End <= r.Start || r.AllocTRES == "" || !record.HasEnded(r) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	run := record.KeyOf(r)
	if _, counted := u.counted[run]; counted {
		return
	}
	u.counted[run] = r.End / 3600
	k := account{status.AssociationKey{Account: r.Account, User: r.User}, r.QOS}
	h := u.byOwner[k]
	if h == nil {
		h = &history{hours: map[int64]map[string]float64{}, sums: map[decay]*runningSum{}}
		u.byOwner[k] = h
	}
	h.addRun(r, u.oldest)
}

// addRun adds a run to its hours, from the hour oldest on.
func (h *history) addRun(r *status.Record, oldest int64) {
	tres := record.ParseTRES(r.AllocTRES)
	running := float64(r.End-r.Start-r.Suspended) / float64(r.End-r.Start) // the fraction it was not suspended
	for from := max(r.Start, oldest*3600); from < r.End; {
		hour := from / 3600
		to := min(r.End, (hour+1)*3600)
		seconds := float64(to-from) * running
		for name, n := range tres {
			h.add(hour, name, float64(n)*seconds)
		}
		h.add(hour, wallTime, seconds)
		from = to
	}
}

// Prune drops the hours before the horizon, and the keys of runs that ended
// before it.
func (u *Usage) Prune(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.oldest = max(u.oldest, now.Add(-Horizon).Unix()/3600)
	for k, h := range u.byOwner {
		before := len(h.hours)
		maps.DeleteFunc(h.hours, func(hour int64, _ map[string]float64) bool { return hour < u.oldest })
		if len(h.hours) == 0 {
			delete(u.byOwner, k)
		} else if len(h.hours) != before {
			clear(h.sums)
		}
	}
	maps.DeleteFunc(u.counted, func(_ record.RunKey, ended int64) bool { return ended < u.oldest })
}

// Query sets how usage is weighted.
type Query struct {
	Now      time.Time
	HalfLife time.Duration // 0: usage does not decay
	Since    time.Time     // usage before it does not count; zero: all counts
	// Factor is the factor of a QOS; nil: 1.
	Factor func(qos string) float64
	// NoDecay reports whether the usage of a QOS does not decay; nil: it does.
	NoDecay func(qos string) bool
}

// Used returns what the finished runs of each association and of each QOS have
// used up to now, in TRES-seconds (memory in MiB-seconds).
func (u *Usage) Used(
	q *Query,
) (associations map[status.AssociationKey]map[string]float64, byQOS map[string]map[string]float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	associations = make(map[status.AssociationKey]map[string]float64, len(u.byOwner))
	byQOS = map[string]map[string]float64{}
	decaying := decay{halfLife: q.HalfLife}
	if !q.Since.IsZero() {
		decaying.since = q.Since.Unix()
	}
	now := q.Now.Unix()
	for k, h := range u.byOwner {
		factor := 1.0
		if q.Factor != nil {
			factor = q.Factor(k.qos)
		}
		maps.DeleteFunc(h.sums, func(d decay, _ *runningSum) bool { return d != decaying && d != decay{} })
		sum := h.sum(decaying, now)
		associations[k.AssociationKey] = addWeighted(associations[k.AssociationKey], sum, factor)
		if q.NoDecay != nil && q.NoDecay(k.qos) {
			sum = h.sum(decay{}, now)
		}
		byQOS[k.qos] = addWeighted(byQOS[k.qos], sum, factor)
	}
	return associations, byQOS
}

// addWeighted adds sum times weight to total and returns it; a nil total is
// allocated.
func addWeighted(total, sum map[string]float64, weight float64) map[string]float64 {
	if total == nil {
		total = make(map[string]float64, len(sum))
	}
	for name, n := range sum {
		total[name] += n * weight
	}
	return total
}
