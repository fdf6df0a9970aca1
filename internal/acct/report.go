package acct

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/translate/status"
)

// Report returns what runs used between q.Start and q.End, including those that
// have not ended, by account, user and wckey, and with q.Jobs by the size of the
// jobs. The database adds up what it can, so that a year of records needs no
// memory.
func (r *Recorder) Report(ctx context.Context, q *status.UsageQuery) ([]status.Usage, error) {
	s, err := r.database()
	if err != nil {
		return nil, err
	}
	sums := &usageSums{
		window: store.Window{Start: q.Start, End: q.End, Now: r.Now().Unix()}, bySize: q.Jobs,
		byKey: map[usageKey]*status.Usage{},
	}
	if err := s.SumSimple(ctx, sums.window, q.Jobs, sums.addSum); err != nil {
		return nil, err
	}
	err = s.EachOther(ctx, sums.window, func(rec *status.Record) {
		if !r.isLive(rec) {
			sums.add(rec)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := r.addLive(ctx, s, sums); err != nil {
		return nil, err
	}
	return sums.list(), nil
}

// isLive reports whether the record is of the present run of a job in the queue
// that has not ended: the job is more recent.
func (r *Recorder) isLive(rec *status.Record) bool {
	b, ok := r.Cluster.Jobs.ByUID(types.UID(rec.UID))
	return rec.End == 0 && ok && b.Status.Restarts == rec.Restarts
}

// addLive adds the runs in the queue that the database does not have as ended.
func (r *Recorder) addLive(ctx context.Context, s *store.Store, sums *usageSums) error {
	runs := map[record.RunKey]status.Record{}
	var ended []string
	for _, b := range r.Cluster.Jobs.List() {
		if b.Spec.JobID == 0 || b.IsFinal() && !r.ReadOnly && r.Stored(b) {
			continue
		}
		row := r.Row(b)
		list := r.records(b, &row)
		run := list[len(list)-1]
		runs[record.KeyOf(&run)] = run
		if run.End != 0 {
			ended = append(ended, run.UID)
		}
	}
	if err := s.EachEnded(ctx, ended, func(run record.RunKey) { delete(runs, run) }); err != nil {
		return err
	}
	for _, run := range runs {
		sums.add(&run)
	}
	return nil
}

// usageSums adds up a report.
type usageSums struct {
	window store.Window
	bySize bool
	byKey  map[usageKey]*status.Usage
}

type usageKey struct {
	account, user, wckey string
	cpus                 int32 // 0 unless the report is by size
}

// entry returns the entry of a key, which it adds if it is missing.
func (s *usageSums) entry(k usageKey) *status.Usage {
	if !s.bySize {
		k.cpus = 0
	}
	u := s.byKey[k]
	if u == nil {
		u = &status.Usage{Account: k.account, User: k.user, WCKey: k.wckey, CPUs: k.cpus, TRES: map[string]int64{}}
		s.byKey[k] = u
	}
	return u
}

// addSum adds what the database has added up.
func (s *usageSums) addSum(sum *store.Sum) {
	u := s.entry(usageKey{sum.Account, sum.User, sum.WCKey, sum.CPUs})
	u.Jobs += sum.Jobs
	if !s.bySize {
		u.Waiting += sum.Waiting
	}
	for name, n := range map[string]int64{"cpu": sum.CPU, "mem": sum.Memory, "node": sum.Node, "billing": sum.CPU} {
		if n > 0 {
			u.TRES[name] += n
		}
	}
}

// add adds one run.
func (s *usageSums) add(r *status.Record) {
	w := s.window
	if r.Eligible == 0 || r.Eligible > w.End || r.End != 0 && r.End < w.Start {
		return
	}
	used, waited := usedAndWaited(r, w.Start, min(w.End, w.Now))
	if s.bySize && used == 0 {
		return
	}
	u := s.entry(usageKey{r.Account, r.User, r.WCKey, r.CPUs})
	u.Jobs++
	if !s.bySize {
		u.Waiting += waited * int64(r.ReqCPUs)
	}
	for name, n := range record.ParseTRES(r.AllocTRES) {
		u.TRES[name] += n * used
	}
}

// list returns the entries in the order of their keys.
func (s *usageSums) list() []status.Usage {
	out := make([]status.Usage, 0, len(s.byKey))
	for _, u := range s.byKey {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b status.Usage) int {
		return cmp.Or(
			cmp.Compare(a.Account, b.Account), cmp.Compare(a.User, b.User),
			cmp.Compare(a.WCKey, b.WCKey), cmp.Compare(a.CPUs, b.CPUs),
		)
	})
	return out
}

// usedAndWaited returns how many seconds between start and end the run was
// running without being suspended, and how many it was eligible and not started.
func usedAndWaited(r *status.Record, start, end int64) (used, waited int64) {
	overlap := func(from, to int64) int64 {
		if to == 0 {
			to = end
		}
		return max(0, min(to, end)-max(from, start))
	}
	if r.Eligible != 0 {
		waited = overlap(r.Eligible, cmp.Or(r.Start, r.End))
	}
	if r.Start != 0 && r.AllocTRES != "" {
		used = max(0, overlap(r.Start, r.End)-r.Suspended)
	}
	return used, waited
}
