package acct

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// ledger is what happened beside jobs and is not written yet; the Recorder's
// lock guards it.
type ledger struct {
	events       []status.AcctEvent // what each node became, from Start on
	transactions []status.Transaction
	bookings     []Booking
}

// reasonRegistered is Slurm's, of the event that tells a cluster's resources.
const reasonRegistered = "Cluster Registered TRES"

// nodeChanged notes what the node has become, if that is another state.
func (r *Recorder) nodeChanged(old, now *corev1.Node) {
	if r.NodeEvent == nil {
		return
	}
	at := r.Now().Unix()
	var was, is status.AcctEvent
	if old != nil {
		was = r.NodeEvent(old)
		is.Node = was.Node // as it is when it has gone
	}
	if now != nil {
		is = r.NodeEvent(now)
	}
	var news []status.AcctEvent
	if old == nil || now == nil || was.State != is.State || was.Reason != is.Reason {
		is.Start = at
		news = append(news, is)
	}
	if old == nil || now == nil || !old.Status.Allocatable.Cpu().Equal(*now.Status.Allocatable.Cpu()) ||
		!old.Status.Allocatable.Memory().Equal(*now.Status.Allocatable.Memory()) {
		news = append(news, status.AcctEvent{Start: at}) // filled in when it is written
	}
	if len(news) == 0 {
		return
	}
	r.mu.Lock()
	r.ledger.events = append(r.ledger.events, news...)
	r.mu.Unlock()
	r.poke()
}

// Note takes changes that somebody made with sacctmgr.
func (r *Recorder) Note(list []status.Transaction) {
	if r.Address == "" || len(list) == 0 {
		return
	}
	r.mu.Lock()
	r.ledger.transactions = append(r.ledger.transactions, list...)
	r.mu.Unlock()
	r.poke()
}

// registered is the cluster's event from at on; short are the nodes' names.
func (r *Recorder) registered(at int64, short map[string]string) status.AcctEvent {
	e := status.AcctEvent{Start: at, Reason: reasonRegistered}
	var names []string
	var cpus, memory int64
	for _, n := range r.Cluster.Nodes.List() {
		if n.Labels[wire.LabelManaged] == "false" {
			continue
		}
		names = append(names, short[n.Name])
		cpus += n.Status.Allocatable.Cpu().Value()
		memory += n.Status.Allocatable.Memory().Value() >> 20
	}
	e.Nodes = hostlist.Fold(names)
	e.TRES = fmt.Sprintf("billing=%d,cpu=%d,mem=%dM,node=%d", cpus, cpus, memory, len(names))
	return e
}

// named are events with the nodes' short names, and the cluster's filled in. One of
// the cluster is enough, for each would say what it is now: a thousand nodes that come at
// once are a thousand events.
func (r *Recorder) named(events []status.AcctEvent) []status.AcctEvent {
	if len(events) == 0 {
		return nil
	}
	short := r.NodeNames(r.Cluster.Nodes.List())
	out, told := make([]status.AcctEvent, 0, len(events)), false
	for _, e := range events {
		switch name := short[e.Node]; {
		case e.Node == "" && told:
			continue
		case e.Node == "":
			e, told = r.registered(e.Start, short), true
		case name != "": // else it is gone
			e.Node = name
		}
		out = append(out, e)
	}
	return out
}

// writeLedger stores what was noted, in order.
func (r *Recorder) writeLedger(ctx context.Context, s *Store) error {
	r.mu.Lock()
	l := r.ledger
	r.ledger = ledger{}
	r.mu.Unlock()
	if len(l.events)+len(l.transactions)+len(l.bookings) == 0 {
		return nil
	}
	events := r.named(l.events)
	r.count(l.bookings)
	err := s.PutLedger(ctx, events, l.transactions, l.bookings)
	if err != nil {
		r.mu.Lock()
		r.ledger.events = append(l.events, r.ledger.events...)
		r.ledger.transactions = append(l.transactions, r.ledger.transactions...)
		r.ledger.bookings = append(l.bookings, r.ledger.bookings...)
		r.mu.Unlock()
	}
	return err
}

// PutLedger stores events, transactions and bookings, all or none. An event ends the one
// of the same node that goes on, unless that says the same; one without State
// and Reason begins none.
func (s *Store) PutLedger(ctx context.Context, events []status.AcctEvent, list []status.Transaction, bookings []Booking) error {
	if err := s.Moved(); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	for i := range events {
		if err := s.putEvent(ctx, tx, &events[i]); err != nil {
			return fmt.Errorf("event of node %q: %w", events[i].Node, err)
		}
	}
	for i := range list {
		t := &list[i]
		if _, err := tx.ExecContext(ctx, s.q(`INSERT INTO transactions (at, action, actor, place, info, user_name, account) VALUES (?, ?, ?, ?, ?, ?, ?)`),
			t.At, t.Action, t.Actor, t.Where, t.Info, t.User, t.Account); err != nil {
			return fmt.Errorf("transaction: %w", err)
		}
	}
	for i := range bookings {
		if err := s.putBooking(ctx, tx, &bookings[i]); err != nil {
			return fmt.Errorf("reservation %s: %w", bookings[i].Row.Name, err)
		}
	}
	return tx.Commit()
}

func (s *Store) putEvent(ctx context.Context, tx *sql.Tx, e *status.AcctEvent) error {
	var open status.AcctEvent
	err := tx.QueryRowContext(ctx, s.q(`SELECT start_at, state, reason, nodes, tres FROM events WHERE node = ? AND end_at = 0`), e.Node).
		Scan(&open.Start, &open.State, &open.Reason, &open.Nodes, &open.TRES)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return err
	case open.State == e.State && open.Reason == e.Reason && open.Nodes == e.Nodes && (e.Node != "" || open.TRES == e.TRES):
		return nil
	case open.Start == e.Start: // nobody could see it
		if _, err := tx.ExecContext(ctx, s.q(`DELETE FROM events WHERE node = ? AND end_at = 0`), e.Node); err != nil {
			return err
		}
	default:
		if _, err := tx.ExecContext(ctx, s.q(`UPDATE events SET end_at = ? WHERE node = ? AND end_at = 0`), e.Start, e.Node); err != nil {
			return err
		}
	}
	if e.State == "" && e.Reason != reasonRegistered {
		return nil
	}
	_, err = tx.ExecContext(ctx, s.q(`INSERT INTO events (node, nodes, start_at, end_at, state, reason, user_name, user_id, tres) VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?)`),
		e.Node, e.Nodes, e.Start, e.State, e.Reason, e.User, e.UserID, e.TRES)
	return err
}

// Events finds what q means.
func (r *Recorder) Events(ctx context.Context, q *status.EventQuery) ([]status.AcctEvent, error) {
	s, err := r.database()
	if err != nil {
		return nil, err
	}
	return s.Events(ctx, q)
}

// Events finds what q means, by node and start.
func (s *Store) Events(ctx context.Context, q *status.EventQuery) ([]status.AcctEvent, error) {
	where, args := []string{"(end_at = 0 OR end_at >= ?)"}, []any{q.Start}
	if q.End != 0 {
		where, args = append(where, "start_at <= ?"), append(args, q.End)
	}
	if q.Open {
		where = append(where, "end_at = 0")
	}
	rows, err := s.read.QueryContext(ctx, s.q(`SELECT node, nodes, start_at, end_at, state, reason, user_name, user_id, tres FROM events WHERE `+
		strings.Join(where, " AND ")+` ORDER BY node, start_at, db_id`), args...)
	if err != nil {
		return nil, fmt.Errorf("accounting database: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end, or given up
	var out []status.AcctEvent
	for rows.Next() {
		var e status.AcctEvent
		if err := rows.Scan(&e.Node, &e.Nodes, &e.Start, &e.End, &e.State, &e.Reason, &e.User, &e.UserID, &e.TRES); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// Transactions finds what q means.
func (r *Recorder) Transactions(ctx context.Context, q *status.TransactionQuery) ([]status.Transaction, error) {
	s, err := r.database()
	if err != nil {
		return nil, err
	}
	if !r.ReadOnly {
		if err := r.writeLedger(ctx, s); err != nil { // what was just done is to be there
			return nil, err
		}
	}
	return s.Transactions(ctx, q)
}

// Transactions finds what q means, the oldest first.
func (s *Store) Transactions(ctx context.Context, q *status.TransactionQuery) ([]status.Transaction, error) {
	text, args := `SELECT at, action, actor, place, info, user_name, account FROM transactions WHERE at >= ?`, []any{q.Start}
	if q.End != 0 {
		text, args = text+` AND at <= ?`, append(args, q.End)
	}
	rows, err := s.read.QueryContext(ctx, s.q(text+` ORDER BY at, db_id`), args...)
	if err != nil {
		return nil, fmt.Errorf("accounting database: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end, or given up
	var out []status.Transaction
	for rows.Next() {
		var t status.Transaction
		if err := rows.Scan(&t.At, &t.Action, &t.Actor, &t.Where, &t.Info, &t.User, &t.Account); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}
