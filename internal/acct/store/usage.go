package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/translate/status"
)

// EachFinishedRun calls visit with every run that ended after since, with what
// usage is computed from: its association, QOS, times and TRES.
func (s *Store) EachFinishedRun(ctx context.Context, since int64, visit func(*status.Record)) error {
	query := `SELECT uid, restarts, account, user_name, qos, state, start_at, end_at, cpus, mem, nodes, body
		FROM jobs WHERE span >= 0 AND end_at >= ? AND start_at > 0 AND end_at > start_at`
	return s.eachRow(ctx, query, []any{since}, func(rows *sql.Rows) error {
		var r status.Record
		var memory int64
		var body string
		err := rows.Scan(&r.UID, &r.Restarts, &r.Account, &r.User, &r.QOS, &r.State, &r.Start, &r.End,
			&r.CPUs, &memory, &r.Nodes, &body)
		if err == nil {
			err = setUsage(&r, memory, body)
		}
		if err != nil {
			return fmt.Errorf("reading past usage: %w", err)
		}
		visit(&r)
		return nil
	})
}

// setUsage sets the record's TRES and the time that it was suspended. Most bodies
// need not be decoded: their TRES are in columns. The quotes around the member's name
// distinguish it from texts of the user in the body, where JSON has \" for a quote.
func setUsage(r *status.Record, memory int64, body string) error {
	inColumns := strings.Contains(body, fmt.Sprintf(`"allocTRES":"billing=%d,cpu=%[1]d,`, r.CPUs)) &&
		!strings.Contains(body, "gres/") && !strings.Contains(body, `"suspended"`)
	if inColumns {
		r.AllocTRES = fmt.Sprintf("billing=%d,cpu=%d,mem=%dM,node=%d", r.CPUs, r.CPUs, memory, r.Nodes)
		return nil
	}
	var decoded status.Record
	if err := json.NewDecoder(strings.NewReader(body)).Decode(&decoded); err != nil {
		return fmt.Errorf("a record cannot be parsed: %w", err)
	}
	r.AllocTRES, r.Suspended = decoded.AllocTRES, decoded.Suspended
	return nil
}

// Window is the time of a report, in Unix seconds. Runs that have not ended are
// counted up to Now.
type Window struct{ Start, End, Now int64 }

// Sum is what runs of one account, user and wckey used, in TRES-seconds.
type Sum struct {
	Account, User, WCKey string
	CPUs                 int32 // of each job; 0 unless the sums are by size
	Jobs                 int64
	CPU, Memory, Node    int64
	Waiting              int64 // CPU-seconds from eligible to start
}

// simple is the condition that the database can add up a record: it has ended, used no
// more than CPUs, memory and nodes, and is billed for its CPUs. The rest is in bodies. The
// quotes distinguish members from texts of the user, see setUsage.
func (s *Store) simple() string {
	position := "instr(body, %s)"
	if s.pg {
		position = "position(%s in body)"
	}
	lacks := func(text string) string { return fmt.Sprintf(position+" = 0", text) }
	billedForCPUs := fmt.Sprintf(position+" > 0", `'"allocTRES":"billing=' || cpus || ',cpu=' || cpus || ','`)
	return "span >= 0 AND " + lacks("'gres/'") + " AND " + lacks(`'"suspended"'`) +
		" AND (" + lacks(`'"allocTRES"'`) + " OR " + billedForCPUs + ")"
}

// SumSimple calls visit with the sums of the simple records in the window. With
// bySize there is one for each number of CPUs, and jobs that used nothing are
// left out.
func (s *Store) SumSimple(ctx context.Context, w Window, bySize bool, visit func(*Sum)) error {
	size, onlyUsed := "0", ""
	if bySize {
		size, onlyUsed = "cpus", " WHERE used > 0"
	}
	used := "(CASE WHEN start_at > 0 THEN " + s.overlap("start_at", "end_at") + " ELSE 0 END)"
	waiting := s.overlap("eligible_at", "(CASE WHEN start_at > 0 THEN start_at ELSE end_at END)")
	query := `SELECT account, user_name, wckey, size, count(*),
		CAST(sum(used * cpus) AS BIGINT), CAST(sum(used * mem) AS BIGINT),
		CAST(sum(used * nodes) AS BIGINT), CAST(sum(waiting * req_cpus) AS BIGINT) FROM (
		SELECT account, user_name, wckey, cpus, mem, nodes, req_cpus, ` + size + ` AS size, ` + used + ` AS used, ` + waiting + ` AS waiting
		FROM jobs WHERE ` + s.simple() + ` AND end_at >= ? AND eligible_at <> 0 AND eligible_at <= ?) AS runs` + onlyUsed + `
		GROUP BY account, user_name, wckey, size`
	end := min(w.End, w.Now)
	args := []any{end, w.Start, end, w.Start, w.Start, w.End}
	return s.eachRow(ctx, query, args, func(rows *sql.Rows) error {
		var sum Sum
		err := rows.Scan(
			&sum.Account,
			&sum.User,
			&sum.WCKey,
			&sum.CPUs,
			&sum.Jobs,
			&sum.CPU,
			&sum.Memory,
			&sum.Node,
			&sum.Waiting,
		)
		if err != nil {
			return fmt.Errorf("accounting database: %w", err)
		}
		visit(&sum)
		return nil
	})
}

// overlap returns the expression of the seconds between two columns that lie in
// a window, whose end and start are arguments.
func (s *Store) overlap(from, to string) string {
	least, greatest := "min", "max"
	if s.pg {
		least, greatest = "least", "greatest"
	}
	return fmt.Sprintf("%[2]s(0, %[1]s(%[4]s, %[5]s) - %[2]s(%[3]s, %[5]s))", least, greatest, from, to, s.bigint())
}

// EachOther calls visit with the records in the window that SumSimple does not
// add up.
func (s *Store) EachOther(ctx context.Context, w Window, visit func(*status.Record)) error {
	query := "SELECT " + jobColumns + " FROM jobs j WHERE NOT (" + s.simple() +
		") AND (span < 0 OR end_at >= ?) AND submit_at <= ?"
	return s.eachRecord(ctx, query, []any{w.Start, w.End}, visit)
}

// EachEnded calls visit with every run of the jobs that is stored as ended.
func (s *Store) EachEnded(ctx context.Context, uids []string, visit func(record.RunKey)) error {
	for len(uids) > 0 {
		n := min(len(uids), maxIn)
		args := make([]any, n)
		for i := range args {
			args[i] = uids[i]
		}
		uids = uids[n:]
		query := "SELECT uid, restarts FROM jobs WHERE span >= 0 AND uid IN " + placeholders(n)
		err := s.eachRow(ctx, query, args, func(rows *sql.Rows) error {
			var run record.RunKey
			if err := rows.Scan(&run.UID, &run.Restarts); err != nil {
				return fmt.Errorf("accounting database: %w", err)
			}
			visit(run)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
