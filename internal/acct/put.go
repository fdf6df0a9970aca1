package acct

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/bits"

	"github.com/berth-hpc/berth/translate/status"
)

// Entry is one record to be stored. Rev grows with every change of the job's
// object: what is older than the stored record does not replace it.
type Entry struct {
	Record status.Record // without Steps
	Rev    int64
}

// StepEntry is one step to be stored.
type StepEntry struct {
	UID      string
	Restarts int32
	Step     status.StepRecord
}

const putJob = `INSERT INTO jobs (uid, restarts, rev, job_id, array_job_id, array_task, het_job_id, het_offset,
	name, user_name, user_id, group_name, group_id, account, qos, part, wckey, state,
	submit_at, eligible_at, start_at, end_at, span, time_limit, nodes, cpus, req_cpus, mem, node_list, version, body)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (uid, restarts) DO UPDATE SET rev = excluded.rev, job_id = excluded.job_id,
	array_job_id = excluded.array_job_id, array_task = excluded.array_task, het_job_id = excluded.het_job_id, het_offset = excluded.het_offset,
	name = excluded.name, user_name = excluded.user_name, user_id = excluded.user_id, group_name = excluded.group_name, group_id = excluded.group_id,
	account = excluded.account, qos = excluded.qos, part = excluded.part, wckey = excluded.wckey, state = excluded.state,
	submit_at = excluded.submit_at, eligible_at = excluded.eligible_at, start_at = excluded.start_at, end_at = excluded.end_at, span = excluded.span,
	time_limit = excluded.time_limit, nodes = excluded.nodes, cpus = excluded.cpus, req_cpus = excluded.req_cpus, mem = excluded.mem,
	node_list = excluded.node_list, version = excluded.version, body = excluded.body
	WHERE excluded.rev >= jobs.rev AND jobs.version <= excluded.version`

const putStep = `INSERT INTO steps (uid, restarts, step, version, body) VALUES (?, ?, ?, ?, ?)
	ON CONFLICT (uid, restarts, step) DO UPDATE SET version = excluded.version, body = excluded.body
	WHERE steps.version <= excluded.version`

// Put stores records and steps, all or none of them. Storing the same again
// changes nothing. Records that a newer version of Berth has written stay as
// they are; newer has the UIDs of their jobs.
func (s *Store) Put(ctx context.Context, jobs []Entry, steps []StepEntry) (newer map[string]bool, err error) {
	if err := s.Moved(); err != nil {
		return nil, err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	if newer, err = s.putJobs(ctx, tx, jobs); err != nil {
		return nil, err
	}
	if err := s.putSteps(ctx, tx, steps); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return newer, s.Moved()
}

func (s *Store) putJobs(ctx context.Context, tx *sql.Tx, jobs []Entry) (newer map[string]bool, err error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	insert, err := tx.PrepareContext(ctx, s.q(putJob))
	if err != nil {
		return nil, err
	}
	defer insert.Close() //nolint:errcheck // it goes with the transaction
	for i := range jobs {
		args, err := columns(&jobs[i])
		if err != nil {
			return nil, err
		}
		done, err := insert.ExecContext(ctx, args...)
		if err != nil {
			return nil, fmt.Errorf("record of job %d: %w", jobs[i].Record.ID, err)
		}
		if n, err := done.RowsAffected(); err != nil || n > 0 {
			continue
		}
		var version int
		err = tx.QueryRowContext(ctx, s.q(`SELECT version FROM jobs WHERE uid = ? AND restarts = ?`), jobs[i].Record.UID, jobs[i].Record.Restarts).Scan(&version)
		switch {
		case err != nil:
			return nil, fmt.Errorf("record of job %d: %w", jobs[i].Record.ID, err)
		case version > recordVersion:
			if newer == nil {
				newer = map[string]bool{}
			}
			newer[jobs[i].Record.UID] = true
		}
	}
	return newer, nil
}

func (s *Store) putSteps(ctx context.Context, tx *sql.Tx, steps []StepEntry) error {
	if len(steps) == 0 {
		return nil
	}
	insert, err := tx.PrepareContext(ctx, s.q(putStep))
	if err != nil {
		return err
	}
	defer insert.Close() //nolint:errcheck // it goes with the transaction
	for i := range steps {
		body, err := json.Marshal(&steps[i].Step)
		if err != nil {
			return err
		}
		if _, err := insert.ExecContext(ctx, steps[i].UID, steps[i].Restarts, steps[i].Step.Step, recordVersion, clean(string(body))); err != nil {
			return fmt.Errorf("record of step %s: %w", steps[i].Step.Step, err)
		}
	}
	return nil
}

// columns are putJob's arguments: what is searched has a column, the rest is
// in the body.
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
		clean(r.Name), r.User, r.UserID, r.Group, r.GroupID, clean(r.Account), clean(r.QOS), r.Partition, clean(r.WCKey), r.State,
		r.Submit, r.Eligible, r.Start, r.End, span(&r), r.TimeLimit, r.Nodes, r.CPUs, r.ReqCPUs, memory(&r), r.NodeList,
		recordVersion, clean(string(body)),
	}, nil
}

// span classes records by how long they take from eligible to end, in powers
// of two, so that a search for a stretch of time looks only as far beyond its
// end as the class reaches. Open records have openSpan.
func span(r *status.Record) int {
	if r.End == 0 {
		return openSpan
	}
	return bits.Len64(uint64(max(0, r.End-begun(r))))
}

const openSpan = -1

// begun is from when on the record counts: eligible, or submitted where it
// never was eligible.
func begun(r *status.Record) int64 {
	if r.Eligible != 0 {
		return r.Eligible
	}
	return r.Submit
}

// memory is what the job held, in MiB.
func memory(r *status.Record) int64 { return TRES(r.AllocTRES)["mem"] }
