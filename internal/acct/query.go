package acct

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// jobColumns are what scanJob reads.
const jobColumns = `j.db_id, j.uid, j.restarts, j.job_id, j.array_job_id, j.array_task, j.het_job_id, j.het_offset,
	j.name, j.user_name, j.user_id, j.group_name, j.group_id, j.account, j.qos, j.part, j.wckey, j.state,
	j.submit_at, j.eligible_at, j.start_at, j.end_at, j.time_limit, j.nodes, j.cpus, j.req_cpus, j.node_list, j.version, j.body`

// DefaultLimit bounds a search that names no limit.
const DefaultLimit = 1_000_000

// Find returns the records that may pass q, by job id and run, with their
// steps unless q wants none. It applies what the database can do quickly;
// Match decides about each.
func (s *Store) Find(ctx context.Context, q *status.RecordQuery) ([]status.Record, error) {
	text, args := s.search(q)
	rows, err := s.read.QueryContext(ctx, s.q(text), args...)
	if err != nil {
		return nil, fmt.Errorf("accounting database: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end, or given up
	f := NewFilter(q)
	var out []status.Record
	for rows.Next() {
		r, err := scanJob(rows)
		if err != nil {
			return nil, err
		}
		if f.Match(&r) {
			out = append(out, r)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("accounting database: %w", err)
	}
	if q.NoSteps || len(out) == 0 {
		return out, nil
	}
	return out, s.addSteps(ctx, out)
}

func scanJob(rows *sql.Rows) (status.Record, error) {
	var b, r status.Record
	var version int
	var body []byte
	err := rows.Scan(&r.DBIndex, &r.UID, &r.Restarts, &r.ID, &r.ArrayJobID, &r.ArrayTaskID, &r.HetJobID, &r.HetOffset,
		&r.Name, &r.User, &r.UserID, &r.Group, &r.GroupID, &r.Account, &r.QOS, &r.Partition, &r.WCKey, &r.State,
		&r.Submit, &r.Eligible, &r.Start, &r.End, &r.TimeLimit, &r.Nodes, &r.CPUs, &r.ReqCPUs, &r.NodeList, &version, &body)
	if err != nil {
		return b, fmt.Errorf("accounting database: %w", err)
	}
	if version > recordVersion {
		return b, fmt.Errorf("the record of job %d is %w (version %d, this one knows %d)", r.ID, ErrNewer, version, recordVersion)
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return b, fmt.Errorf("the record of job %d cannot be read: %w", r.ID, err)
	}
	b.DBIndex, b.UID, b.Restarts, b.ID, b.ArrayJobID, b.ArrayTaskID, b.HetJobID, b.HetOffset = r.DBIndex, r.UID, r.Restarts, r.ID, r.ArrayJobID, r.ArrayTaskID, r.HetJobID, r.HetOffset
	b.Name, b.User, b.UserID, b.Group, b.GroupID, b.Account, b.QOS, b.Partition, b.WCKey, b.State = r.Name, r.User, r.UserID, r.Group, r.GroupID, r.Account, r.QOS, r.Partition, r.WCKey, r.State
	b.Submit, b.Eligible, b.Start, b.End, b.TimeLimit = r.Submit, r.Eligible, r.Start, r.End, r.TimeLimit
	b.Nodes, b.CPUs, b.ReqCPUs, b.NodeList = r.Nodes, r.CPUs, r.ReqCPUs, r.NodeList
	return b, nil
}

// search is the query for q: ids first, else a stretch of time.
func (s *Store) search(q *status.RecordQuery) (string, []any) {
	w := &where{}
	ids := jobIDs(q.Jobs)
	if len(q.Jobs) > 0 {
		w.anyID(ids)
	}
	if len(q.UserIDs) == 0 {
		w.in("j.user_name", q.Users)
	}
	w.in("j.account", q.Accounts)
	w.in("j.part", q.Partitions)
	w.in("j.qos", q.QOS)
	w.in("j.name", q.Names)
	w.in("j.wckey", q.WCKeys)
	limit := q.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	order := fmt.Sprintf(" ORDER BY job_id, restarts, db_id LIMIT %d", limit)
	if len(q.Jobs) > 0 || q.Start <= 0 {
		if q.End > 0 && q.End < math.MaxInt64 {
			w.add("j.submit_at <= ?", q.End)
		}
		return "SELECT " + jobColumns + " FROM jobs j" + w.text() + order, w.args
	}
	end := q.End
	if end <= 0 {
		end = math.MaxInt64 / 4
	}
	return s.stretch(w, q.Start, end) + order, w.args
}

// stretch finds what was there between start and end: for each class of span
// the records that ended from start to as far beyond end as the class reaches,
// and those that have not ended. w's arguments become those of the query.
func (s *Store) stretch(w *where, start, end int64) string {
	classes := make([]string, 0, 40)
	var args []any
	number := "?"
	if s.pg {
		number = "CAST(? AS BIGINT)"
	}
	for c := range int64(40) {
		reach := min(end, math.MaxInt64/4) + int64(1)<<c
		classes = append(classes, "("+number+", "+number+")")
		args = append(args, c, reach)
	}
	conditions := w.conditions("AND ")
	text := "WITH class(c, last) AS (VALUES " + strings.Join(classes, ", ") + ") SELECT " + jobColumns +
		" FROM class CROSS JOIN jobs j WHERE j.span = class.c AND j.end_at >= ? AND j.end_at <= class.last AND j.submit_at <= ?" + conditions +
		" UNION ALL SELECT " + jobColumns + " FROM jobs j WHERE j.span = ? AND j.submit_at <= ?" + conditions
	args = append(args, start, end)
	args = append(args, w.args...)
	args = append(args, openSpan, end)
	w.args = append(args, w.args...)
	return text
}

// where collects conditions. Values go as arguments only.
type where struct {
	list []string
	args []any
}

func (w *where) add(condition string, args ...any) {
	w.list = append(w.list, condition)
	w.args = append(w.args, args...)
}

// maxIn is how many values go into one list; more are left to Match.
const maxIn = 500

func (w *where) in(column string, values []string) {
	if len(values) == 0 || len(values) > maxIn {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = clean(v)
	}
	w.add(column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")", args...)
}

// anyID wants a job of one of the ids, a task of it or a component of it.
func (w *where) anyID(ids []int64) {
	if len(ids) > maxIn {
		return
	}
	if len(ids) == 0 {
		w.add("1 = 0")
		return
	}
	marks := "(?" + strings.Repeat(", ?", len(ids)-1) + ")"
	var args []any
	for range 3 {
		for _, id := range ids {
			args = append(args, id)
		}
	}
	w.add("(j.job_id IN "+marks+" OR (j.array_job_id <> 0 AND j.array_job_id IN "+marks+") OR (j.het_job_id <> 0 AND j.het_job_id IN "+marks+"))", args...)
}

func (w *where) conditions(join string) string {
	if len(w.list) == 0 {
		return ""
	}
	return " " + join + strings.Join(w.list, " AND ")
}

func (w *where) text() string { return w.conditions("WHERE ") }

// addSteps reads the steps of the records.
func (s *Store) addSteps(ctx context.Context, records []status.Record) error {
	at := make(map[string]int, len(records))
	for i := range records {
		at[stepKey(records[i].UID, records[i].Restarts)] = i
	}
	for from := 0; from < len(records); from += maxIn {
		part := records[from:min(len(records), from+maxIn)]
		uids := make([]any, len(part))
		for i := range part {
			uids[i] = part[i].UID
		}
		rows, err := s.read.QueryContext(ctx, s.q(`SELECT uid, restarts, version, body FROM steps WHERE uid IN (?`+
			strings.Repeat(", ?", len(part)-1)+`) ORDER BY uid, restarts, step`), uids...)
		if err != nil {
			return fmt.Errorf("accounting database: %w", err)
		}
		if err := eachStep(rows, func(uid string, restarts int32, step status.StepRecord) {
			if i, ok := at[stepKey(uid, restarts)]; ok {
				records[i].Steps = append(records[i].Steps, step)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

func stepKey(uid string, restarts int32) string { return fmt.Sprintf("%s/%d", uid, restarts) }

func eachStep(rows *sql.Rows, take func(uid string, restarts int32, step status.StepRecord)) error {
	defer rows.Close() //nolint:errcheck // read to its end, or given up
	for rows.Next() {
		var uid string
		var restarts int32
		var version int
		var body []byte
		if err := rows.Scan(&uid, &restarts, &version, &body); err != nil {
			return fmt.Errorf("accounting database: %w", err)
		}
		if version > recordVersion {
			return fmt.Errorf("the record of a step is %w (version %d, this one knows %d)", ErrNewer, version, recordVersion)
		}
		var step status.StepRecord
		if err := json.Unmarshal(body, &step); err != nil {
			return fmt.Errorf("the record of a step cannot be read: %w", err)
		}
		take(uid, restarts, step)
	}
	return rows.Err()
}
