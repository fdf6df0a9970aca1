package acct

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/translate/status"
)

// spender is an association in a QOS, whose factor weighs what was used.
type spender struct {
	status.AssociationKey
	qos string
}

// Usage holds what finished runs have used, for fair share. It is filled from
// the database and by every record that is stored. Safe for concurrent use.
//
// A run counts as a rate of TRES from its start to its end; the usage at an
// instant is the integral with the weight 2^(-age/half-life). The weights of
// all hours shrink alike with time, so the sum over the hours that are over is
// kept and only multiplied: asking again costs what the associations cost, not
// what their history does.
type Usage struct {
	mu     sync.Mutex
	runs   map[spender]*history
	seen   map[string]int64 // records that are counted: the hour in which each ended
	oldest int64            // hours before it have been dropped
}

// history is what one spender used, by the hour, and sums over it.
type history struct {
	hours map[int64]map[string]float64 // TRES-seconds
	last  int64                        // the newest of hours
	sums  map[decay]*runningSum
}

// wallTime is the name, among TRES, of the time that runs took.
const wallTime = "wall"

// horizon is how far back usage is kept: what is older weighs nothing with any
// half-life that is in use.
const horizon = 400 * 24 * time.Hour

func newUsage() *Usage {
	return &Usage{runs: map[spender]*history{}, seen: map[string]int64{}}
}

// load reads the runs of the database that matter.
func (u *Usage) load(ctx context.Context, s *Store, now time.Time) error {
	rows, err := s.read.QueryContext(ctx, s.q(`SELECT uid, restarts, account, user_name, qos, start_at, end_at, cpus, mem, nodes, body
		FROM jobs WHERE span >= 0 AND end_at >= ? AND start_at > 0 AND end_at > start_at`), now.Add(-horizon).Unix())
	if err != nil {
		return fmt.Errorf("reading what was used: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end, or given up
	u.mu.Lock()
	defer u.mu.Unlock()
	for rows.Next() {
		var r status.Record
		var mem int64
		var body string
		if err := rows.Scan(&r.UID, &r.Restarts, &r.Account, &r.User, &r.QOS, &r.Start, &r.End, &r.CPUs, &mem, &r.Nodes, &body); err != nil {
			return fmt.Errorf("reading what was used: %w", err)
		}
		if strings.Contains(body, "gres/") || strings.Contains(body, `"suspended"`) || !strings.Contains(body, fmt.Sprintf("billing=%d,cpu=", r.CPUs)) {
			b, err := decodeBody(body)
			if err != nil {
				return err
			}
			r.AllocTRES, r.Suspended = b.AllocTRES, b.Suspended
		} else {
			r.AllocTRES = fmt.Sprintf("billing=%d,cpu=%d,mem=%dM,node=%d", r.CPUs, r.CPUs, mem, r.Nodes)
		}
		u.add(&r)
	}
	return rows.Err()
}

// Add counts a run that is over; again does nothing.
func (u *Usage) Add(r *status.Record) {
	if r.End == 0 || r.Start == 0 || r.End <= r.Start || r.AllocTRES == "" || !status.JobState(r.State).IsFinal() && r.State != status.StateRequeued {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.add(r)
}

func (u *Usage) add(r *status.Record) {
	key := stepKey(r.UID, r.Restarts)
	if _, counted := u.seen[key]; counted {
		return
	}
	u.seen[key] = r.End / 3600
	k := spender{status.AssociationKey{Account: r.Account, User: r.User}, r.QOS}
	h := u.runs[k]
	if h == nil {
		h = &history{hours: map[int64]map[string]float64{}, sums: map[decay]*runningSum{}}
		u.runs[k] = h
	}
	tres := TRES(r.AllocTRES)
	share := float64(r.End-r.Start-r.Suspended) / float64(r.End-r.Start)
	for from := max(r.Start, u.oldest*3600); from < r.End; {
		hour := from / 3600
		to := min(r.End, (hour+1)*3600)
		for name, n := range tres {
			h.add(hour, name, float64(n)*float64(to-from)*share)
		}
		h.add(hour, wallTime, float64(to-from)*share)
		from = to
	}
}

// prune drops the hours before the horizon, and the names of records that
// ended before it.
func (u *Usage) prune(now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.oldest = max(u.oldest, now.Add(-horizon).Unix()/3600)
	for k, h := range u.runs {
		before := len(h.hours)
		maps.DeleteFunc(h.hours, func(hour int64, _ map[string]float64) bool { return hour < u.oldest })
		if len(h.hours) == 0 {
			delete(u.runs, k)
		} else if len(h.hours) != before {
			clear(h.sums)
		}
	}
	maps.DeleteFunc(u.seen, func(_ string, ended int64) bool { return ended < u.oldest })
}

// Used returns what the finished runs of each association and of each QOS have
// used up to now, in TRES-seconds (memory in MiB-seconds), with the given
// half-life (0: nothing fades), of what ran from since on (zero: of all). Each
// run is weighed with the factor of its QOS; nil: every run counts once. Nothing
// fades of a QOS for which kept is true (NoDecay); nil: of none.
func (u *Usage) Used(now time.Time, halfLife time.Duration, since time.Time, factor func(qos string) float64,
	kept func(qos string) bool) (associations map[status.AssociationKey]map[string]float64, byQOS map[string]map[string]float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	associations, byQOS = make(map[status.AssociationKey]map[string]float64, len(u.runs)), map[string]map[string]float64{}
	fading := decay{halfLife: halfLife}
	if !since.IsZero() {
		fading.since = since.Unix()
	}
	for k, h := range u.runs {
		times := 1.0
		if factor != nil {
			times = factor(k.qos)
		}
		maps.DeleteFunc(h.sums, func(d decay, _ *runningSum) bool { return d != fading && d != decay{} })
		sum := h.sum(fading, now.Unix())
		associations[k.AssociationKey] = addTo(associations[k.AssociationKey], sum, times)
		if kept != nil && kept(k.qos) {
			sum = h.sum(decay{}, now.Unix())
		}
		byQOS[k.qos] = addTo(byQOS[k.qos], sum, times)
	}
	return associations, byQOS
}

// addTo adds sum, multiplied, to total and returns it; nil is made.
func addTo(total, sum map[string]float64, times float64) map[string]float64 {
	if total == nil {
		total = make(map[string]float64, len(sum))
	}
	for name, n := range sum {
		total[name] += n * times
	}
	return total
}

// Usage is what finished runs have used, for fair share.
func (r *Recorder) Usage() *Usage { return r.usage }
