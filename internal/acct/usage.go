package acct

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/translate/status"
)

// Key names the association that usage counts for.
type Key struct{ Account, User string }

// spender is an association in a QOS, whose factor weighs what was used.
type spender struct {
	Key
	qos string
}

// Usage keeps what finished runs have used, for fair share. It is filled from
// the database and by every record that is stored. Safe for concurrent use.
//
// A run counts as a rate of TRES from its start to its end; what is asked for
// at an instant is the integral with the weight 2^(-age/half-life).
type Usage struct {
	mu   sync.Mutex
	runs map[spender]map[int64]map[string]float64 // by hour: TRES-seconds
	seen map[string]bool                          // records that are in it
}

// wallTime is the name, among TRES, of the time that runs took.
const wallTime = "wall"

// horizon is how far back usage is kept: what is older weighs nothing with any
// half-life that is in use.
const horizon = 400 * 24 * time.Hour

func newUsage() *Usage {
	return &Usage{runs: map[spender]map[int64]map[string]float64{}, seen: map[string]bool{}}
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
	if r.End == 0 || r.Start == 0 || r.End <= r.Start || r.AllocTRES == "" || !over(r.State) && r.State != "REQUEUED" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.add(r)
}

func (u *Usage) add(r *status.Record) {
	key := stepKey(r.UID, r.Restarts)
	if u.seen[key] {
		return
	}
	u.seen[key] = true
	k := spender{Key{r.Account, r.User}, r.QOS}
	if u.runs[k] == nil {
		u.runs[k] = map[int64]map[string]float64{}
	}
	tres := TRES(r.AllocTRES)
	share := float64(r.End-r.Start-r.Suspended) / float64(r.End-r.Start)
	for from := r.Start; from < r.End; {
		hour := from / 3600
		to := min(r.End, (hour+1)*3600)
		bucket := u.runs[k][hour]
		if bucket == nil {
			bucket = map[string]float64{}
			u.runs[k][hour] = bucket
		}
		for name, n := range tres {
			bucket[name] += float64(n) * float64(to-from) * share
		}
		bucket[wallTime] += float64(to-from) * share
		from = to
	}
}

// Decayed is what each association has used up to now, in TRES-seconds (memory
// in MiB-seconds), with the given half-life (0: nothing fades), of what ran
// from since on (zero: of all). factor is what a run counts for by its QOS; nil:
// every run counts once. Runs that have not ended are not in it.
func (u *Usage) Decayed(now time.Time, halfLife time.Duration, since time.Time, factor func(qos string) float64) map[Key]map[string]float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make(map[Key]map[string]float64, len(u.runs))
	for k, hours := range u.runs {
		times := 1.0
		if factor != nil {
			times = factor(k.qos)
		}
		out[k.Key] = decay(out[k.Key], hours, now, halfLife, since, times)
	}
	return out
}

// DecayedByQOS is what the runs in each QOS have used, as Decayed; nothing fades
// of a QOS for which kept is true (NoDecay).
func (u *Usage) DecayedByQOS(now time.Time, halfLife time.Duration, since time.Time, factor func(qos string) float64, kept func(qos string) bool) map[string]map[string]float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := map[string]map[string]float64{}
	for k, hours := range u.runs {
		half, from := halfLife, since
		if kept(k.qos) {
			half, from = 0, time.Time{}
		}
		out[k.qos] = decay(out[k.qos], hours, now, half, from, factor(k.qos))
	}
	return out
}

// decay adds to sum what was used by the hour, so often as times says.
func decay(sum map[string]float64, hours map[int64]map[string]float64, now time.Time, halfLife time.Duration, since time.Time, times float64) map[string]float64 {
	if sum == nil {
		sum = map[string]float64{}
	}
	for hour, tres := range hours {
		if !since.IsZero() && (hour+1)*3600 <= since.Unix() {
			continue
		}
		weight := times
		if halfLife > 0 {
			age := max(0, now.Unix()-hour*3600-1800)
			weight *= math.Exp2(-float64(age) / halfLife.Seconds())
		}
		for name, n := range tres {
			sum[name] += n * weight
		}
	}
	return sum
}

// Usage is what finished runs have used, for fair share.
func (r *Recorder) Usage() *Usage { return r.usage }
