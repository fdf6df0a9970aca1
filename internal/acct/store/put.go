package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"

	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/translate/status"
)

// Entry is a record to be stored. Rev grows with every change of the job's
// object: an older one does not replace the stored record.
type Entry struct {
	Record status.Record // without Steps
	Rev    int64
}

// StepEntry is a step to be stored.
type StepEntry struct {
	Run  record.RunKey
	Step status.StepRecord
}

// storedColumns are the columns of jobs that are searched; the rest of a record
// is in the body.
var storedColumns = []string{
	"uid", "restarts", "rev", "job_id", "array_job_id", "array_task", "het_job_id", "het_offset",
	"name", "user_name", "user_id", "group_name", "group_id", "account", "qos", "part", "wckey", "state",
	"submit_at", "eligible_at", "start_at", "end_at", "span", "time_limit", "nodes", "cpus", "req_cpus", "mem",
	"node_list", "version", "body",
}

// putJob inserts or updates a record, unless the stored one is newer.
var putJob = "INSERT INTO jobs (" + strings.Join(storedColumns, ", ") + ") VALUES " + placeholders(len(storedColumns)) +
	" ON CONFLICT (uid, restarts) DO UPDATE SET " + updates(storedColumns[2:]) +
	" WHERE excluded.rev >= jobs.rev AND jobs.version <= excluded.version"

// updates returns "column = excluded.column" for each column.
func updates(columns []string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c + " = excluded." + c
	}
	return strings.Join(list, ", ")
}

const putStep = `INSERT INTO steps (uid, restarts, step, version, body) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (uid, restarts, step) DO UPDATE SET version = excluded.version, body = excluded.body
	WHERE steps.version <= excluded.version`

// Put stores records and steps, all or none of them. Storing the same again
// changes nothing. Records that a newer version of Berth has written stay as
// they are; newer has the UIDs of their jobs.
func (s *Store) Put(ctx context.Context, jobs []Entry, steps []StepEntry) (newer map[string]bool, err error) {
	err = s.inTransaction(ctx, func(tx *sql.Tx) error {
		if newer, err = s.putJobs(ctx, tx, jobs); err != nil {
			return err
		}
		return s.putSteps(ctx, tx, steps)
	})
	if err != nil {
		return nil, err
	}
	return newer, s.CheckMoved()
}

func (s *Store) putJobs(ctx context.Context, tx *sql.Tx, jobs []Entry) (newer map[string]bool, err error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	insert, err := tx.PrepareContext(ctx, s.sql(putJob))
	if err != nil {
		return nil, err
	}
	defer insert.Close() //nolint:errcheck // it ends with the transaction
	for i := range jobs {
		r := &jobs[i].Record
		stored, err := s.putEntry(ctx, insert, &jobs[i])
		if err == nil && !stored {
			stored, err = s.readable(ctx, tx, r)
		}
		if err != nil {
			return nil, fmt.Errorf("record of job %d: %w", r.ID, err)
		}
		if !stored {
			if newer == nil {
				newer = map[string]bool{}
			}
			newer[r.UID] = true
		}
	}
	return newer, nil
}

// putEntry runs the statement putJob. It reports whether a row was written.
func (s *Store) putEntry(ctx context.Context, insert *sql.Stmt, e *Entry) (written bool, err error) {
	args, err := columns(e)
	if err != nil {
		return false, err
	}
	done, err := insert.ExecContext(ctx, args...)
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	if err != nil {
		n = 1 // the driver does not count: the row may have been written
	}
	return n > 0, nil //nolint:nilerr // counting is all that failed
}

// readable reports whether the stored record has a version that this one knows.
func (s *Store) readable(ctx context.Context, tx *sql.Tx, r *status.Record) (bool, error) {
	var version int
	const query = `SELECT version FROM jobs WHERE uid = ? AND restarts = ?`
	err := tx.QueryRowContext(ctx, s.sql(query), r.UID, r.Restarts).Scan(&version)
	return version <= recordVersion, err
}

func (s *Store) putSteps(ctx context.Context, tx *sql.Tx, steps []StepEntry) error {
	if len(steps) == 0 {
		return nil
	}
	insert, err := tx.PrepareContext(ctx, s.sql(putStep))
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // it ends with the transaction
	for i := range steps {
		e := &steps[i]
		body, err := json.Marshal(&e.Step)
		if err != nil {
			return err
		}
		_, err = insert.ExecContext(ctx, e.Run.UID, e.Run.Restarts, e.Step.Step, recordVersion, toText(string(body)))
		if err != nil {
			return fmt.Errorf("record of step %s: %w", e.Step.Step, err)
		}
	}
	return nil
}

// columns returns the values of storedColumns.
func columns(e *Entry) ([]any, error) {
	r := e.Record // a copy
	rest := r
	rest.UID, rest.Restarts, rest.DBIndex, rest.ID = "", 0, 0, 0
	rest.ArrayJobID, rest.ArrayTaskID, rest.HetJobID, rest.HetOffset = 0, "", 0, 0
	rest.Name, rest.User, rest.UserID, rest.Group, rest.GroupID = "", "", 0, "", 0
	rest.Account, rest.QOS, rest.Partition, rest.WCKey, rest.State = "", "", "", "", ""
	rest.Submit, rest.Eligible, rest.Start, rest.End, rest.TimeLimit = 0, 0, 0, 0, 0
	rest.Nodes, rest.CPUs, rest.ReqCPUs, rest.NodeList, rest.Steps = 0, 0, 0, "", nil
	body, err := json.Marshal(&rest)
	if err != nil {
		return nil, err
	}
	return []any{
		r.UID, r.Restarts, e.Rev, r.ID, r.ArrayJobID, r.ArrayTaskID, r.HetJobID, r.HetOffset,
		toText(r.Name), r.User, r.UserID, r.Group, r.GroupID, toText(r.Account), toText(r.QOS), r.Partition,
		toText(r.WCKey), r.State,
		r.Submit, r.Eligible, r.Start, r.End, span(&r), r.TimeLimit, r.Nodes, r.CPUs, r.ReqCPUs,
		record.ParseTRES(r.AllocTRES)["mem"],
		r.NodeList, recordVersion, toText(string(body)),
	}, nil
}

// span classifies records by the time from eligible to end, in powers of two, so
// that a search for a time window reads no further beyond its end than a class
// reaches. Records that have not ended have openSpan.
func span(r *status.Record) int {
	if r.End == 0 {
		return openSpan
	}
	from := r.Eligible
	if from == 0 {
		from = r.Submit // it was never eligible
	}
	return bits.Len64(uint64(max(0, r.End-from)))
}

const openSpan = -1
