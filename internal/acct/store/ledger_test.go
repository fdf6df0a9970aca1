package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/translate/status"
)

// An event of a node ends when the node changes. The same event again changes
// nothing, and an event without a state starts none.
func TestEventsFollowEachOther(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		put := func(events ...status.AcctEvent) {
			t.Helper()
			if err := s.PutLedger(t.Context(), &store.Ledger{Events: events}); err != nil {
				t.Fatal(err)
			}
		}
		put(
			status.AcctEvent{Node: "n1", Start: 10},
			status.AcctEvent{Node: "n2", Start: 10, State: "DOWN*", Reason: "Not responding"},
		)
		put(status.AcctEvent{Node: "n1", Start: 20, State: "DRAIN", User: "root"}) // of no length
		put(status.AcctEvent{Node: "n1", Start: 20, State: "DRAIN", Reason: "fan", User: "root"})
		put(status.AcctEvent{Node: "n1", Start: 25, State: "DRAIN", Reason: "fan", User: "root"})
		put(
			status.AcctEvent{Node: "n1", Start: 30, State: "DOWN", Reason: "fan", User: "root"},
			status.AcctEvent{Node: "n1", Start: 40},
		)
		want := []status.AcctEvent{
			{Node: "n1", Start: 20, End: 30, State: "DRAIN", Reason: "fan", User: "root"},
			{Node: "n1", Start: 30, End: 40, State: "DOWN", Reason: "fan", User: "root"},
			{Node: "n2", Start: 10, State: "DOWN*", Reason: "Not responding"},
		}
		for _, c := range []struct {
			q    status.EventQuery
			want []status.AcctEvent
		}{
			{status.EventQuery{}, want},
			{status.EventQuery{Open: true}, want[2:]},
			{status.EventQuery{Start: 35}, want[1:]},
			{status.EventQuery{End: 15}, want[2:]},
		} {
			got, err := s.Events(t.Context(), &c.q)
			if err != nil || len(got) != len(c.want) {
				t.Errorf("%+v: %+v, %v", c.q, got, err)
				continue
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%+v: %+v", c.q, got[i])
				}
			}
		}
	})
}

// Transactions are listed in the order in which they were stored.
func TestTransactionsAreKeptInOrder(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		list := []status.Transaction{
			{At: 10, Action: "Add Users", Actor: "root", Where: "anna", User: "anna"},
			{
				At:      10,
				Action:  "Add Associations",
				Actor:   "root",
				Where:   "account=a user=anna",
				User:    "anna",
				Account: "a",
			},
			{At: 20, Action: "Modify QOS", Actor: "eva", Where: "high", Info: "priority='5'"},
		}
		if err := s.PutLedger(t.Context(), &store.Ledger{Transactions: list}); err != nil {
			t.Fatal(err)
		}
		got, err := s.Transactions(t.Context(), &status.TransactionQuery{End: 15})
		if err != nil || len(got) != 2 || got[0] != list[0] || got[1] != list[1] {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err = s.Transactions(
			t.Context(),
			&status.TransactionQuery{Start: 15},
		); err != nil || len(got) != 1 ||
			got[0] != list[2] {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A deleted reservation is kept, in each of its versions. One that was deleted
// before it started is not.
func TestReservationsOutliveTheirObjects(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		row := func(name string, start, end int64, nodes ...string) status.Reservation {
			return status.Reservation{Name: name, Start: start, End: end, Nodes: nodes, TRES: "cpu=4"}
		}
		for _, v := range []store.ReservationVersion{
			{UID: "1", At: 5, Row: row("a", 10, 100, "n1")},
			{UID: "2", At: 6, Row: row("never", 50, 90, "n2")},
			{UID: "1", At: 20, Row: row("a", 10, 100, "n1")}, // reported again
			{UID: "2", At: 30, Deleted: true, Row: row("never", 50, 90, "n2")},
			{UID: "1", At: 40, Row: row("a", 10, 100, "n1", "n2")},
			{UID: "3", At: 45, Row: row("daily", 45, 60)},
			{UID: "1", At: 70, Deleted: true, Row: row("a", 10, 100, "n1", "n2")},
			{UID: "3", At: 61, Row: row("daily", 145, 160)},
			{UID: "3", At: 62, Row: row("daily", 145, 160)},
		} {
			if err := s.PutLedger(t.Context(), &store.Ledger{Reservations: []store.ReservationVersion{v}}); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Reservations(t.Context(), 1, 200)
		var found []string
		for _, r := range got {
			found = append(found, fmt.Sprintf("%s %d-%d %d %s", r.Name, r.Start, r.End, len(r.Nodes), r.TRES))
		}
		want := []string{"a 10-40 1 cpu=4", "a 40-70 2 cpu=4", "daily 45-60 0 cpu=4", "daily 145-160 0 cpu=4"}
		if err != nil || !slices.Equal(found, want) {
			t.Errorf("%q, %v", found, err)
		}
		if got, err = s.Reservations(t.Context(), 60, 100); err != nil || len(got) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
