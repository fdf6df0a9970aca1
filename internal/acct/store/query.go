package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/translate/status"
)

// jobColumns are the columns that scanJob reads.
const jobColumns = `j.db_id, j.uid, j.restarts, j.job_id, j.array_job_id, j.array_task, j.het_job_id, j.het_offset,
	j.name, j.user_name, j.user_id, j.group_name, j.group_id, j.account, j.qos, j.part, j.wckey, j.state,
	j.submit_at, j.eligible_at, j.start_at, j.end_at, j.time_limit, j.nodes, j.cpus, j.req_cpus, j.node_list, j.version, j.body`

// DefaultLimit bounds a search that names no limit.
const DefaultLimit = 1_000_000

// Find returns the records that q selects, by job id and run, with their steps
// unless q excludes them. The database applies the conditions that it can
// evaluate quickly; the filter decides about each record.
func (s *Store) Find(ctx context.Context, q *status.RecordQuery) ([]status.Record, error) {
	text, args := s.search(q)
	filter := record.NewFilter(q)
	list, err := s.records(ctx, text, args, filter.Match)
	if err != nil || q.NoSteps || len(list) == 0 {
		return list, err
	}
	return list, s.addSteps(ctx, list)
}

// records returns the records of a query for which wanted is true.
func (s *Store) records(
	ctx context.Context,
	query string,
	args []any,
	wanted func(*status.Record) bool,
) ([]status.Record, error) {
	var out []status.Record
	err := s.eachRecord(ctx, query, args, func(r *status.Record) {
		if wanted(r) {
			out = append(out, *r)
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// eachRecord calls visit with every record of a query. The record is valid until
// visit returns; its parts remain.
func (s *Store) eachRecord(ctx context.Context, query string, args []any, visit func(*status.Record)) error {
	var scan jobScan
	return s.eachRow(ctx, query, args, func(rows *sql.Rows) error {
		r, err := scan.read(rows)
		if err == nil {
			visit(r)
		}
		return err
	})
}

// HighestJobID returns the highest job id, or 0 if there are no records.
func (s *Store) HighestJobID(ctx context.Context) (int64, error) {
	var id sql.NullInt64
	if err := s.read.QueryRowContext(ctx, `SELECT max(job_id) FROM jobs`).Scan(&id); err != nil {
		return 0, fmt.Errorf("accounting database: %w", err)
	}
	return id.Int64, nil
}

// HasJob reports whether there is a record of the job.
func (s *Store) HasJob(ctx context.Context, jobID int64) (bool, error) {
	var n int
	query := s.sql(`SELECT count(*) FROM jobs WHERE job_id = ?`)
	if err := s.read.QueryRowContext(ctx, query, jobID).Scan(&n); err != nil {
		return false, fmt.Errorf("accounting database: %w", err)
	}
	return n > 0, nil
}

// jobScan reads records, one after the other into the same memory.
type jobScan struct {
	columns, record status.Record
	version         int
	body            []byte
}

// read reads a record: its columns, and the rest from its body. The next call
// overwrites it, but not its parts.
func (scan *jobScan) read(rows *sql.Rows) (*status.Record, error) {
	*scan = jobScan{}
	b, r := &scan.record, &scan.columns
	err := rows.Scan(
		&r.DBIndex, &r.UID, &r.Restarts, &r.ID, &r.ArrayJobID, &r.ArrayTaskID, &r.HetJobID, &r.HetOffset,
		&r.Name, &r.User, &r.UserID, &r.Group, &r.GroupID, &r.Account, &r.QOS, &r.Partition, &r.WCKey,
		&r.State, &r.Submit, &r.Eligible, &r.Start, &r.End, &r.TimeLimit, &r.Nodes, &r.CPUs, &r.ReqCPUs,
		&r.NodeList, &scan.version, &scan.body,
	)
	if err != nil {
		return nil, fmt.Errorf("accounting database: %w", err)
	}
	if scan.version > recordVersion {
		return nil, fmt.Errorf("the record of job %d is %w (version %d, this one knows %d)",
			r.ID, ErrNewer, scan.version, recordVersion)
	}
	if err := json.Unmarshal(scan.body, b); err != nil {
		return nil, fmt.Errorf("the record of job %d cannot be parsed: %w", r.ID, err)
	}
	b.DBIndex, b.UID, b.Restarts, b.ID = r.DBIndex, r.UID, r.Restarts, r.ID
	b.ArrayJobID, b.ArrayTaskID, b.HetJobID, b.HetOffset = r.ArrayJobID, r.ArrayTaskID, r.HetJobID, r.HetOffset
	b.Name, b.User, b.UserID, b.Group, b.GroupID = r.Name, r.User, r.UserID, r.Group, r.GroupID
	b.Account, b.QOS, b.Partition, b.WCKey, b.State = r.Account, r.QOS, r.Partition, r.WCKey, r.State
	b.Submit, b.Eligible, b.Start, b.End, b.TimeLimit = r.Submit, r.Eligible, r.Start, r.End, r.TimeLimit
	b.Nodes, b.CPUs, b.ReqCPUs, b.NodeList = r.Nodes, r.CPUs, r.ReqCPUs, r.NodeList
	return b, nil
}

// search returns the query for q: by ids if it has any, else by time window.
func (s *Store) search(q *status.RecordQuery) (string, []any) {
	w := &where{}
	ids := record.JobIDs(q.Jobs)
	if len(q.Jobs) > 0 {
		w.anyID(ids)
	}
	if len(q.UserIDs) == 0 {
		w.in("j.user_name", q.Users)
	}
	w.in("j.account", q.Accounts)
	w.in("LOWER(j.part)", lower(q.Partitions))
	w.in("j.qos", q.QOS)
	w.in("LOWER(j.name)", lower(q.Names))
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
	return s.searchWindow(w, q.Start, end) + order, w.args
}

// spanClasses is the number of classes of span: the last reaches 2^39 seconds.
const spanClasses = 40

// searchWindow returns the query for what existed between start and end: for
// each class of span the records that ended from start to as far beyond end as
// the class reaches, and those that have not ended. It replaces the arguments of
// w by those of the query.
func (s *Store) searchWindow(w *where, start, end int64) string {
	classes := make([]string, 0, spanClasses)
	var args []any
	number := s.bigint()
	for c := range int64(spanClasses) {
		reach := min(end, math.MaxInt64/4) + int64(1)<<c
		classes = append(classes, "("+number+", "+number+")")
		args = append(args, c, reach)
	}
	conditions := w.conditions("AND ")
	text := "WITH class(c, last) AS (VALUES " + strings.Join(classes, ", ") + ") SELECT " + jobColumns +
		" FROM class CROSS JOIN jobs j" +
		" WHERE j.span = class.c AND j.end_at >= ? AND j.end_at <= class.last AND j.submit_at <= ?" + conditions +
		" UNION ALL SELECT " + jobColumns + " FROM jobs j WHERE j.span = ? AND j.submit_at <= ?" + conditions
	args = append(args, start, end)
	args = append(args, w.args...)
	args = append(args, openSpan, end)
	w.args = append(args, w.args...)
	return text
}

// bigint returns the placeholder of a number whose type the database cannot
// infer.
func (s *Store) bigint() string {
	if s.pg {
		return "CAST(? AS BIGINT)"
	}
	return "?"
}

// where collects the conditions of a query. Values are always arguments.
type where struct {
	list []string
	args []any
}

func (w *where) add(condition string, args ...any) {
	w.list = append(w.list, condition)
	w.args = append(w.args, args...)
}

// maxIn bounds the number of values in one list; more are left to the filter.
const maxIn = 500

func (w *where) in(column string, values []string) {
	if len(values) == 0 || len(values) > maxIn {
		return
	}
	args := make([]any, len(values))
	for i, v := range values {
		args[i] = toText(v)
	}
	w.add(column+" IN "+placeholders(len(values)), args...)
}

// lower returns names in lower case, as those of jobs and partitions match in any case.
func lower(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.ToLower(name)
	}
	return out
}

// anyID adds the condition that a record is of one of the jobs, of a task of it
// or of a component of it.
func (w *where) anyID(ids []int64) {
	if len(ids) > maxIn {
		return
	}
	if len(ids) == 0 {
		w.add("1 = 0")
		return
	}
	marks := placeholders(len(ids))
	var args []any
	for range 3 {
		for _, id := range ids {
			args = append(args, id)
		}
	}
	w.add("(j.job_id IN "+marks+" OR (j.array_job_id <> 0 AND j.array_job_id IN "+marks+
		") OR (j.het_job_id <> 0 AND j.het_job_id IN "+marks+"))", args...)
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
	index := make(map[record.RunKey]int, len(records))
	for i := range records {
		index[record.KeyOf(&records[i])] = i
	}
	for part := range slices.Chunk(records, maxIn) {
		uids := make([]any, len(part))
		for i := range part {
			uids[i] = part[i].UID
		}
		query := `SELECT uid, restarts, version, body FROM steps WHERE uid IN ` + placeholders(len(part)) +
			` ORDER BY uid, restarts, step`
		err := s.eachRow(ctx, query, uids, func(rows *sql.Rows) error {
			run, step, err := scanStep(rows)
			if i, ok := index[run]; ok && err == nil {
				records[i].Steps = append(records[i].Steps, step)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func scanStep(rows *sql.Rows) (run record.RunKey, step status.StepRecord, err error) {
	var version int
	var body []byte
	if err := rows.Scan(&run.UID, &run.Restarts, &version, &body); err != nil {
		return run, step, fmt.Errorf("accounting database: %w", err)
	}
	if version > recordVersion {
		return run, step, fmt.Errorf(
			"the record of a step is %w (version %d, this one knows %d)",
			ErrNewer,
			version,
			recordVersion,
		)
	}
	if err := json.Unmarshal(body, &step); err != nil {
		return run, step, fmt.Errorf("the record of a step cannot be parsed: %w", err)
	}
	return run, step, nil
}
