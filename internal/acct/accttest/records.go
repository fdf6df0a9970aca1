package accttest

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/translate/status"
)

// Open opens a database and closes it at the end of the test.
func Open(t testing.TB, address string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// EachDatabase runs a test with the address of an empty SQLite database and with
// that of an empty PostgreSQL database.
func EachDatabase(t *testing.T, test func(t *testing.T, address string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "acct #%?.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t)) })
}

// Entry returns the record of a run of 100 s, which change may change.
func Entry(id int64, user string, change func(*status.Record)) store.Entry {
	r := status.Record{
		UID:       fmt.Sprintf("uid-%d", id),
		ID:        id,
		Name:      "job",
		User:      user,
		UserID:    1000 + int64(len(user)),
		Group:     user,
		GroupID:   1000,
		Account:   "science",
		Partition: "main",
		State:     "COMPLETED",
		Submit:    1000 * id,
		Eligible:  1000 * id,
		Start:     1000*id + 10,
		End:       1000*id + 110,
		Nodes:     1,
		NodeList:  "n1",
		CPUs:      2,
		ReqCPUs:   2,
		TimeLimit: 60,
		AllocTRES: "billing=2,cpu=2,mem=1G,node=1",
		WorkDir:   "/w",
		History:   []status.StateChange{{State: "PENDING", At: 1}, {State: "RUNNING", At: 2, Reason: "x"}},
	}
	if change != nil {
		change(&r)
	}
	return store.Entry{Record: r, Rev: 1}
}

// Put stores records and steps.
func Put(t testing.TB, s *store.Store, jobs []store.Entry, steps ...store.StepEntry) {
	t.Helper()
	if _, err := s.Put(t.Context(), jobs, steps); err != nil {
		t.Fatal(err)
	}
}

// Find returns the records that q selects.
func Find(t testing.TB, s *store.Store, q status.RecordQuery) []status.Record {
	t.Helper()
	list, err := s.Find(t.Context(), &q)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// IDs returns the job ids of the records.
func IDs(list []status.Record) []int64 {
	out := []int64{}
	for _, r := range list {
		out = append(out, r.ID)
	}
	return out
}
