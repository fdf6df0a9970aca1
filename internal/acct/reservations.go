package acct

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// Booking is what became of a reservation at some moment.
type Booking struct {
	UID  string
	At   int64 // Unix seconds
	Gone bool  // it was taken away
	Row  status.Reservation

	cores map[string]string // of a reservation that has not whole nodes
}

// reservationChanged notes what the reservation has become.
func (r *Recorder) reservationChanged(old, now *v1alpha1.Reservation) {
	of := now
	if of == nil {
		of = old
	}
	b := Booking{UID: string(of.UID), At: r.Now().Unix(), Gone: now == nil}
	b.Row.Start, b.Row.End = change.Span(&of.Spec)
	b.Row.Name = v1alpha1.UserName(of.Name, of.Annotations)
	b.Row.Flags = of.Spec.Flags
	b.cores = of.Spec.Cores
	if names, err := hostlist.Expand(of.Spec.Nodes); err == nil {
		b.Row.Nodes = names
	}
	r.mu.Lock()
	r.ledger.bookings = append(r.ledger.bookings, b)
	r.mu.Unlock()
	r.poke()
}

// count fills in what the nodes of the reservations have.
func (r *Recorder) count(list []Booking) {
	if len(list) == 0 || r.NodeNames == nil {
		return
	}
	nodes := r.Cluster.Nodes.List()
	short := r.NodeNames(nodes)
	cpus, threads := make(map[string]int64, len(nodes)), make(map[string]int64, len(nodes))
	for _, n := range nodes {
		name := short[n.Name]
		cpus[name] = n.Status.Allocatable.Cpu().Value()
		threads[name] = max(1, value.Leading(n.Annotations[wire.AnnotationThreads]))
	}
	for i := range list {
		sum := int64(0)
		for _, name := range list[i].Row.Nodes {
			if cores := list[i].cores; len(cores) > 0 {
				sum += int64(len(array.Parse(cores[name]))) * threads[name]
				continue
			}
			sum += cpus[name]
		}
		if sum > 0 {
			list[i].Row.TRES = "cpu=" + strconv.FormatInt(sum, 10)
		}
	}
}

// putBooking ends what is stored of the reservation under other terms, and
// stores it under these from now on, or from its start.
func (s *Store) putBooking(ctx context.Context, tx *sql.Tx, b *Booking) error {
	body, err := json.Marshal(&b.Row)
	if err != nil {
		return err
	}
	var stored string
	var began int64
	start := b.Row.Start
	err = tx.QueryRowContext(ctx, s.q(`SELECT start_at, body FROM reservations WHERE uid = ? AND end_at > ?`), b.UID, b.At).Scan(&began, &stored)
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return err
	case began >= b.At: // it had not begun
		_, err = tx.ExecContext(ctx, s.q(`DELETE FROM reservations WHERE uid = ? AND end_at > ?`), b.UID, b.At)
	case !b.Gone && stored == string(body):
		return nil
	default:
		_, err = tx.ExecContext(ctx, s.q(`UPDATE reservations SET end_at = ? WHERE uid = ? AND end_at > ?`), b.At, b.UID, b.At)
		start = max(start, b.At)
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if b.Gone || b.Row.End <= start {
		return nil
	}
	// One that is over may be seen again.
	err = tx.QueryRowContext(ctx, s.q(`SELECT start_at FROM reservations WHERE uid = ? AND start_at = ?`), b.UID, start).Scan(&began)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = tx.ExecContext(ctx, s.q(`INSERT INTO reservations (uid, name, start_at, end_at, body) VALUES (?, ?, ?, ?, ?)`),
		b.UID, b.Row.Name, start, b.Row.End, string(body))
	return err
}

// Reservations finds the reservations of a stretch of time, those that are gone
// among them, by name and start.
func (r *Recorder) Reservations(ctx context.Context, start, end int64) ([]status.Reservation, error) {
	s, err := r.database()
	if err != nil {
		return nil, err
	}
	if !r.ReadOnly {
		if err := r.writeLedger(ctx, s); err != nil { // what was just done is to be there
			return nil, err
		}
	}
	return s.Reservations(ctx, start, end)
}

// Reservations finds those of a stretch of time, by name and start.
func (s *Store) Reservations(ctx context.Context, start, end int64) ([]status.Reservation, error) {
	rows, err := s.read.QueryContext(ctx, s.q(`SELECT start_at, end_at, body FROM reservations WHERE end_at > ? AND start_at < ? ORDER BY name, start_at`), start, end)
	if err != nil {
		return nil, fmt.Errorf("accounting database: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end, or given up
	out := []status.Reservation{}
	for rows.Next() {
		var row status.Reservation
		var from, to int64
		var body string
		if err := rows.Scan(&from, &to, &body); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(body), &row); err != nil {
			return nil, fmt.Errorf("accounting database: %w", err)
		}
		row.Start, row.End = from, to
		out = append(out, row)
	}
	return slices.Clip(out), rows.Err()
}
