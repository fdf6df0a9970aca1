package acct

import (
	"cmp"
	"context"
	"slices"

	"github.com/berth-hpc/berth/translate/status"
)

// Report adds up what runs used between q.Start and q.End, those that still
// run included, by account, user and wckey.
func (r *Recorder) Report(ctx context.Context, q *status.UsageQuery) ([]status.Usage, error) {
	if _, err := r.database(); err != nil {
		return nil, err
	}
	records, _, err := r.List(ctx, &status.RecordQuery{Start: q.Start, End: q.End, Duplicates: true, NoSteps: true})
	if err != nil {
		return nil, err
	}
	now := r.Now().Unix()
	type key struct{ account, user, wckey string }
	sums := map[key]*status.Usage{}
	var out []status.Usage
	for i := range records {
		rec := &records[i]
		used, waiting := portion(rec, q.Start, min(q.End, now))
		if q.Jobs {
			if used > 0 {
				out = append(out, status.Usage{Account: rec.Account, User: rec.User, WCKey: rec.WCKey, Jobs: 1, CPUs: rec.CPUs, TRES: times(rec.AllocTRES, used)})
			}
			continue
		}
		k := key{rec.Account, rec.User, rec.WCKey}
		u := sums[k]
		if u == nil {
			u = &status.Usage{Account: rec.Account, User: rec.User, WCKey: rec.WCKey, TRES: map[string]int64{}}
			sums[k] = u
		}
		u.Jobs++
		u.Waiting += waiting * int64(rec.ReqCPUs)
		for name, n := range times(rec.AllocTRES, used) {
			u.TRES[name] += n
		}
	}
	for _, u := range sums {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b status.Usage) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.User, b.User), cmp.Compare(a.WCKey, b.WCKey), cmp.Compare(a.CPUs, b.CPUs))
	})
	return out, nil
}

// portion is for how many seconds between start and end the record ran, and
// waited.
func portion(r *status.Record, start, end int64) (used, waiting int64) {
	overlap := func(from, to int64) int64 {
		if to == 0 {
			to = end
		}
		return max(0, min(to, end)-max(from, start))
	}
	if r.Eligible != 0 {
		until := r.Start
		if until == 0 {
			until = r.End
		}
		waiting = overlap(r.Eligible, until)
	}
	if r.Start != 0 && r.AllocTRES != "" {
		used = max(0, overlap(r.Start, r.End)-r.Suspended)
	}
	return used, waiting
}

func times(tres string, seconds int64) map[string]int64 {
	out := TRES(tres)
	for name := range out {
		out[name] *= seconds
	}
	return out
}
