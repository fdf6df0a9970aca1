package acct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/translate/status"
)

// Report adds up what runs used between q.Start and q.End, those that still
// run included, by account, user and wckey, and with q.Jobs by the jobs' size.
// The database adds up what it can, so that a year of records costs no memory.
func (r *Recorder) Report(ctx context.Context, q *status.UsageQuery) ([]status.Usage, error) {
	s, err := r.database()
	if err != nil {
		return nil, err
	}
	sum := &sums{q: q, now: r.Now().Unix(), by: map[sumKey]*status.Usage{}}
	if err := s.addPlain(ctx, sum); err != nil {
		return nil, err
	}
	if err := s.addOthers(ctx, sum, func(rec *status.Record) bool { return !r.current(rec) }); err != nil {
		return nil, err
	}
	if err := r.addLive(ctx, s, sum); err != nil {
		return nil, err
	}
	return sum.list(), nil
}

// sums are the entries of a report.
type sums struct {
	q   *status.UsageQuery
	now int64
	by  map[sumKey]*status.Usage
}

type sumKey struct {
	account, user, wckey string
	cpus                 int32 // with q.Jobs
}

func (s *sums) of(account, user, wckey string, cpus int32) *status.Usage {
	k := sumKey{account, user, wckey, 0}
	if s.q.Jobs {
		k.cpus = cpus
	}
	u := s.by[k]
	if u == nil {
		u = &status.Usage{Account: account, User: user, WCKey: wckey, CPUs: k.cpus, TRES: map[string]int64{}}
		s.by[k] = u
	}
	return u
}

// add counts one run.
func (s *sums) add(rec *status.Record) {
	if rec.Eligible == 0 || rec.Eligible > s.q.End || rec.End != 0 && rec.End < s.q.Start {
		return
	}
	used, waiting := portion(rec, s.q.Start, min(s.q.End, s.now))
	if s.q.Jobs && used == 0 {
		return
	}
	u := s.of(rec.Account, rec.User, rec.WCKey, rec.CPUs)
	u.Jobs++
	if !s.q.Jobs {
		u.Waiting += waiting * int64(rec.ReqCPUs)
	}
	for name, n := range times(rec.AllocTRES, used) {
		u.TRES[name] += n
	}
}

func (s *sums) list() []status.Usage {
	out := make([]status.Usage, 0, len(s.by))
	for _, u := range s.by {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b status.Usage) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.User, b.User), cmp.Compare(a.WCKey, b.WCKey), cmp.Compare(a.CPUs, b.CPUs))
	})
	return out
}

// Records that are over and used no more than CPUs, memory and nodes can be
// added up by the database: what the others have stands in their bodies.
func (s *Store) isPlain() string {
	in := "instr(body, %s)"
	if s.pg {
		in = "position(%s in body)"
	}
	return "span >= 0 AND " + fmt.Sprintf(in, "'gres/'") + " = 0 AND " + fmt.Sprintf(in, "'\"suspended\"'") + " = 0"
}

// addPlain adds up the plain records.
func (s *Store) addPlain(ctx context.Context, sum *sums) error {
	least, most, number := "min", "max", "?"
	if s.pg {
		least, most, number = "least", "greatest", "CAST(? AS BIGINT)"
	}
	overlap := func(from, to string) string {
		return fmt.Sprintf("%[2]s(0, %[1]s(%[4]s, %[5]s) - %[2]s(%[3]s, %[5]s))", least, most, from, to, number)
	}
	used := "(CASE WHEN start_at > 0 THEN " + overlap("start_at", "end_at") + " ELSE 0 END)"
	waiting := overlap("eligible_at", "(CASE WHEN start_at > 0 THEN start_at ELSE end_at END)")
	text := `SELECT account, user_name, wckey, size, count(*), CAST(sum(used * cpus) AS BIGINT), CAST(sum(used * mem) AS BIGINT),
		CAST(sum(used * nodes) AS BIGINT), CAST(sum(waiting * req_cpus) AS BIGINT) FROM (
		SELECT account, user_name, wckey, cpus, mem, nodes, req_cpus, ` + sizeOf(sum.q) + ` AS size, ` + used + ` AS used, ` + waiting + ` AS waiting
		FROM jobs WHERE ` + s.isPlain() + ` AND end_at >= ? AND eligible_at <> 0 AND eligible_at <= ?) AS runs` + onlyUsed(sum.q) + `
		GROUP BY account, user_name, wckey, size`
	start, end := sum.q.Start, min(sum.q.End, sum.now)
	rows, err := s.read.QueryContext(ctx, s.q(text), end, start, end, start, start, sum.q.End)
	if err != nil {
		return fmt.Errorf("accounting database: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end, or given up
	for rows.Next() {
		var account, user, wckey string
		var size int32
		var jobs, cpu, mem, node, waited int64
		if err := rows.Scan(&account, &user, &wckey, &size, &jobs, &cpu, &mem, &node, &waited); err != nil {
			return fmt.Errorf("accounting database: %w", err)
		}
		u := sum.of(account, user, wckey, size)
		u.Jobs += jobs
		if !sum.q.Jobs {
			u.Waiting += waited
		}
		for name, n := range map[string]int64{"cpu": cpu, "mem": mem, "node": node, "billing": cpu} {
			if n > 0 {
				u.TRES[name] += n
			}
		}
	}
	return rows.Err()
}

func sizeOf(q *status.UsageQuery) string {
	if q.Jobs {
		return "cpus"
	}
	return "0"
}

// onlyUsed leaves out jobs that used nothing where jobs are counted by size.
func onlyUsed(q *status.UsageQuery) string {
	if q.Jobs {
		return " WHERE used > 0"
	}
	return ""
}

// addOthers adds the records that are not plain, one by one, as far as wanted.
func (s *Store) addOthers(ctx context.Context, sum *sums, wanted func(*status.Record) bool) error {
	rows, err := s.read.QueryContext(ctx, s.q("SELECT "+jobColumns+" FROM jobs j WHERE NOT ("+s.isPlain()+") AND (span < 0 OR end_at >= ?) AND submit_at <= ?"),
		sum.q.Start, sum.q.End)
	if err != nil {
		return fmt.Errorf("accounting database: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end, or given up
	for rows.Next() {
		rec, err := scanJob(rows)
		if err != nil {
			return err
		}
		if wanted(&rec) {
			sum.add(&rec)
		}
	}
	return rows.Err()
}

// current tells whether the record is of a run that the queue still has and
// that is not over: the queue knows better.
func (r *Recorder) current(rec *status.Record) bool {
	b, ok := r.Cluster.Jobs.ByUID(types.UID(rec.UID))
	return rec.End == 0 && ok && b.Status.Restarts == rec.Restarts
}

// addLive adds the runs in the queue that the database does not have as over.
func (r *Recorder) addLive(ctx context.Context, s *Store, sum *sums) error {
	cluster := ClusterName(r.Cluster.Parameters())
	runs := map[string]status.Record{}
	var ended []string
	for _, b := range r.Cluster.Jobs.List() {
		if b.Spec.JobID == 0 || b.IsFinal() && !r.ReadOnly && r.Stored(b) {
			continue
		}
		row := r.Row(b)
		list := Records(b, &row, cluster, r.Who)
		run := list[len(list)-1]
		runs[stepKey(run.UID, run.Restarts)] = run
		if run.End != 0 {
			ended = append(ended, run.UID)
		}
	}
	err := s.eachEnded(ctx, ended, func(uid string, restarts int32) { delete(runs, stepKey(uid, restarts)) })
	for _, run := range runs {
		sum.add(&run)
	}
	return err
}

// eachEnded calls visit with every run of these jobs that is stored as over.
func (s *Store) eachEnded(ctx context.Context, uids []string, visit func(uid string, restarts int32)) error {
	for part := range slices.Chunk(uids, maxIn) {
		args := make([]any, len(part))
		for i, uid := range part {
			args[i] = uid
		}
		rows, err := s.read.QueryContext(ctx, s.q("SELECT uid, restarts FROM jobs WHERE span >= 0 AND uid IN (?"+strings.Repeat(", ?", len(part)-1)+")"), args...)
		if err != nil {
			return fmt.Errorf("accounting database: %w", err)
		}
		for rows.Next() {
			var uid string
			var restarts int32
			if err = rows.Scan(&uid, &restarts); err != nil {
				break
			}
			visit(uid, restarts)
		}
		if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
			return fmt.Errorf("accounting database: %w", err)
		}
	}
	return nil
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
