package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// ReasonRegistered is Slurm's reason of an event with the resources of the
// cluster.
const ReasonRegistered = "Cluster Registered TRES"

// ReservationVersion is a reservation as it was from some time on.
type ReservationVersion struct {
	UID     string
	At      int64 // Unix seconds
	Deleted bool
	Row     status.Reservation
}

// Ledger is what happens beside jobs: events of nodes and of the cluster,
// changes by sacctmgr, and reservations.
type Ledger struct {
	Events       []status.AcctEvent
	Transactions []status.Transaction
	Reservations []ReservationVersion
}

// Empty reports whether the ledger has no entries.
func (l *Ledger) Empty() bool {
	return len(l.Events)+len(l.Transactions)+len(l.Reservations) == 0
}

// PutLedger stores the entries of a ledger, all or none. An event ends the
// present one of the same node, unless it says the same. An event without a
// state starts none, but for the one of the cluster.
func (s *Store) PutLedger(ctx context.Context, l *Ledger) error {
	return s.inTransaction(ctx, func(tx *sql.Tx) error {
		for i := range l.Events {
			if err := s.putEvent(ctx, tx, &l.Events[i]); err != nil {
				return fmt.Errorf("event of node %q: %w", l.Events[i].Node, err)
			}
		}
		for i := range l.Transactions {
			if err := s.putTransaction(ctx, tx, &l.Transactions[i]); err != nil {
				return fmt.Errorf("transaction: %w", err)
			}
		}
		for i := range l.Reservations {
			if err := s.putReservation(ctx, tx, &l.Reservations[i]); err != nil {
				return fmt.Errorf("reservation %s: %w", l.Reservations[i].Row.Name, err)
			}
		}
		return nil
	})
}

func (s *Store) putEvent(ctx context.Context, tx *sql.Tx, e *status.AcctEvent) error {
	var open status.AcctEvent
	query := s.sql(`SELECT start_at, state, reason, nodes, tres FROM events WHERE node = ? AND end_at = 0`)
	err := tx.QueryRowContext(ctx, query, e.Node).Scan(&open.Start, &open.State, &open.Reason, &open.Nodes, &open.TRES)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return err
	case sameEvent(&open, e):
		return nil
	default:
		if err := s.endEvent(ctx, tx, &open, e); err != nil {
			return err
		}
	}
	if e.State == "" && e.Reason != ReasonRegistered {
		return nil
	}
	_, err = tx.ExecContext(ctx, s.sql(`INSERT INTO events
		(node, nodes, start_at, end_at, state, reason, user_name, user_id, tres) VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?)`),
		e.Node, e.Nodes, e.Start, e.State, e.Reason, e.User, e.UserID, e.TRES)
	return err
}

// sameEvent reports whether e says the same as the present event. The TRES of a
// node count for the cluster's event alone.
func sameEvent(open, e *status.AcctEvent) bool {
	return open.State == e.State && open.Reason == e.Reason && open.Nodes == e.Nodes &&
		(e.Node != "" || open.TRES == e.TRES)
}

// endEvent ends the present event when e starts. An event of no length is
// deleted.
func (s *Store) endEvent(ctx context.Context, tx *sql.Tx, open, e *status.AcctEvent) error {
	if open.Start == e.Start {
		_, err := tx.ExecContext(ctx, s.sql(`DELETE FROM events WHERE node = ? AND end_at = 0`), e.Node)
		return err
	}
	_, err := tx.ExecContext(ctx, s.sql(`UPDATE events SET end_at = ? WHERE node = ? AND end_at = 0`), e.Start, e.Node)
	return err
}

func (s *Store) putTransaction(ctx context.Context, tx *sql.Tx, t *status.Transaction) error {
	_, err := tx.ExecContext(ctx, s.sql(`INSERT INTO transactions
		(at, action, actor, place, info, user_name, account) VALUES (?, ?, ?, ?, ?, ?, ?)`),
		t.At, t.Action, t.Actor, t.Where, t.Info, t.User, t.Account)
	return err
}

// putReservation ends the stored version of the reservation and stores this one
// from now on, or from its start.
func (s *Store) putReservation(ctx context.Context, tx *sql.Tx, v *ReservationVersion) error {
	body, err := json.Marshal(&v.Row)
	if err != nil {
		return err
	}
	start, same, err := s.endReservation(ctx, tx, v, string(body))
	if err != nil || same || v.Deleted || v.Row.End <= start {
		return err
	}
	// The watch may report a reservation that has ended once more.
	var stored int64
	query := s.sql(`SELECT start_at FROM reservations WHERE uid = ? AND start_at = ?`)
	if err := tx.QueryRowContext(ctx, query, v.UID, start).Scan(&stored); !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = tx.ExecContext(
		ctx,
		s.sql(`INSERT INTO reservations (uid, name, start_at, end_at, body) VALUES (?, ?, ?, ?, ?)`),
		v.UID,
		v.Row.Name,
		start,
		v.Row.End,
		string(body),
	)
	return err
}

// endReservation ends the stored version of the reservation, or deletes it if it
// had not started. It returns the start of the new version; same is true if that
// equals the stored one, which stays.
func (s *Store) endReservation(
	ctx context.Context,
	tx *sql.Tx,
	v *ReservationVersion,
	body string,
) (start int64, same bool, err error) {
	var storedStart int64
	var stored string
	query := s.sql(`SELECT start_at, body FROM reservations WHERE uid = ? AND end_at > ?`)
	err = tx.QueryRowContext(ctx, query, v.UID, v.At).Scan(&storedStart, &stored)
	start = v.Row.Start
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return start, false, nil
	case err != nil:
		return start, false, err
	case storedStart >= v.At:
		_, err = tx.ExecContext(ctx, s.sql(`DELETE FROM reservations WHERE uid = ? AND end_at > ?`), v.UID, v.At)
		return start, false, err
	case !v.Deleted && stored == body:
		return start, true, nil
	}
	_, err = tx.ExecContext(
		ctx,
		s.sql(`UPDATE reservations SET end_at = ? WHERE uid = ? AND end_at > ?`),
		v.At,
		v.UID,
		v.At,
	)
	return max(start, v.At), false, err
}

// Events returns the events that q selects, by node and start.
func (s *Store) Events(ctx context.Context, q *status.EventQuery) ([]status.AcctEvent, error) {
	where, args := []string{"(end_at = 0 OR end_at >= ?)"}, []any{q.Start}
	if q.End != 0 {
		where, args = append(where, "start_at <= ?"), append(args, q.End)
	}
	if q.Open {
		where = append(where, "end_at = 0")
	}
	query := `SELECT node, nodes, start_at, end_at, state, reason, user_name, user_id, tres FROM events WHERE ` +
		strings.Join(where, " AND ") + ` ORDER BY node, start_at, db_id`
	var out []status.AcctEvent
	err := s.eachRow(ctx, query, args, func(rows *sql.Rows) error {
		var e status.AcctEvent
		err := rows.Scan(&e.Node, &e.Nodes, &e.Start, &e.End, &e.State, &e.Reason, &e.User, &e.UserID, &e.TRES)
		out = append(out, e)
		return err
	})
	return out, err
}

// Transactions returns the transactions that q selects, the oldest first.
func (s *Store) Transactions(ctx context.Context, q *status.TransactionQuery) ([]status.Transaction, error) {
	query := `SELECT at, action, actor, place, info, user_name, account FROM transactions WHERE at >= ?`
	args := []any{q.Start}
	if q.End != 0 {
		query, args = query+` AND at <= ?`, append(args, q.End)
	}
	var out []status.Transaction
	err := s.eachRow(ctx, query+` ORDER BY at, db_id`, args, func(rows *sql.Rows) error {
		var t status.Transaction
		err := rows.Scan(&t.At, &t.Action, &t.Actor, &t.Where, &t.Info, &t.User, &t.Account)
		out = append(out, t)
		return err
	})
	return out, err
}

// Reservations returns the reservations between start and end in all of their
// versions, by name and start.
func (s *Store) Reservations(ctx context.Context, start, end int64) ([]status.Reservation, error) {
	out := []status.Reservation{}
	query := `SELECT start_at, end_at, body FROM reservations WHERE end_at > ? AND start_at < ? ORDER BY name, start_at`
	err := s.eachRow(ctx, query, []any{start, end}, func(rows *sql.Rows) error {
		var row status.Reservation
		var from, to int64
		var body string
		if err := rows.Scan(&from, &to, &body); err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(body), &row); err != nil {
			return fmt.Errorf("accounting database: %w", err)
		}
		row.Start, row.End = from, to
		out = append(out, row)
		return nil
	})
	return out, err
}
