package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/translate/status"
)

// finished returns what EachFinishedRun reports since a time, by job.
func finished(t *testing.T, s *store.Store, since int64) map[string]status.Record {
	t.Helper()
	out := map[string]status.Record{}
	if err := s.EachFinishedRun(t.Context(), since, func(r *status.Record) { out[r.UID] = *r }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPastUsageIsThatOfTheRecords: the usage of past runs is computed from their own TRES.
// Texts of users, such as a comment in the form of TRES, do not change it.
func TestPastUsageIsThatOfTheRecords(t *testing.T) {
	const allocated = "billing=100,cpu=2,mem=1G,node=1"
	forgeries := []string{
		"billing=2,cpu=2", `"allocTRES":"billing=2,cpu=2,mem=1M"`, `\"allocTRES\":\"billing=2,cpu=`, "gres/gpu=8", `"suspended":99`,
	}
	both(t, func(t *testing.T, s *store.Store) {
		var entries []store.Entry
		for i, text := range forgeries {
			entries = append(entries, accttest.Entry(int64(i+1), "anna", func(r *status.Record) {
				r.AllocTRES, r.Name, r.Comment, r.SubmitLine = allocated, text, text, text
				r.WorkDir, r.Constraints, r.AdminComment = text, text, text
			}))
		}
		accttest.Put(t, s, entries)
		got := finished(t, s, 0)
		for i, text := range forgeries {
			r := got[fmt.Sprint("uid-", i+1)]
			if !reflect.DeepEqual(record.ParseTRES(r.AllocTRES), record.ParseTRES(allocated)) || r.Suspended != 0 {
				t.Errorf("with the text %s a run has used %s and was suspended for %d s", text, r.AllocTRES, r.Suspended)
			}
		}
	})
}

// TestFinishedRuns: which runs count as past usage, and with what.
func TestFinishedRuns(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		accttest.Put(t, s, []store.Entry{
			accttest.Entry(1, "anna", nil),
			accttest.Entry(2, "anna", func(r *status.Record) {
				r.AllocTRES, r.QOS = "billing=9,cpu=2,gres/gpu=4,mem=1G,node=1", "high"
			}),
			accttest.Entry(3, "anna", func(r *status.Record) { r.Suspended = 40 }),
			accttest.Entry(4, "anna", func(r *status.Record) { r.End, r.State = 0, "RUNNING" }),
			accttest.Entry(5, "anna", func(r *status.Record) { r.Start, r.State = 0, "CANCELLED" }),
			accttest.Entry(6, "anna", func(r *status.Record) { r.Start = r.End }),
			accttest.Entry(7, "anna", func(r *status.Record) { r.Start, r.End = 10, 20 }),
		})
		got := finished(t, s, 100)
		want := map[string]string{
			"uid-1": "billing=2,cpu=2,mem=1024M,node=1", "uid-2": "billing=9,cpu=2,gres/gpu=4,mem=1G,node=1",
			"uid-3": "billing=2,cpu=2,mem=1G,node=1",
		}
		if len(got) != len(want) {
			t.Errorf("%d runs: %v", len(got), got)
		}
		for uid, tres := range want {
			r := got[uid]
			if !reflect.DeepEqual(record.ParseTRES(r.AllocTRES), record.ParseTRES(tres)) || r.Account != "science" || r.User != "anna" ||
				r.Start == 0 || r.End != r.Start+100 || r.State != "COMPLETED" {
				t.Errorf("%s: %+v", uid, r)
			}
		}
		if got["uid-3"].Suspended != 40 || got["uid-2"].QOS != "high" {
			t.Errorf("suspended for %d s; QOS %q", got["uid-3"].Suspended, got["uid-2"].QOS)
		}
	})
}

// overlap returns the seconds from begin to end that lie in the window.
func overlap(w store.Window, begin, end int64) int64 {
	return max(0, min(end, w.End, w.Now)-max(begin, w.Start))
}

// sumOf adds a record to the sums as SumSimple should.
func sumOf(sums map[store.Sum]*store.Sum, r *status.Record, w store.Window, bySize bool) {
	if r.End == 0 || r.End < w.Start || r.Eligible == 0 || r.Eligible > w.End {
		return
	}
	var used int64
	left := r.End
	if r.Start > 0 {
		used, left = overlap(w, r.Start, r.End), r.Start
	}
	key := store.Sum{Account: r.Account, User: r.User, WCKey: r.WCKey}
	if bySize {
		if key.CPUs = r.CPUs; used == 0 {
			return
		}
	}
	if sums[key] == nil {
		x := key
		sums[key] = &x
	}
	x := sums[key]
	x.Jobs++
	x.CPU += used * int64(r.CPUs)
	x.Memory += used * record.ParseTRES(r.AllocTRES)["mem"]
	x.Node += used * int64(r.Nodes)
	x.Waiting += overlap(w, r.Eligible, left) * int64(r.ReqCPUs)
}

// TestSumsAreThoseOfTheRecords compares the sums of the database with those of its
// records, for random records and windows. Records with other resources, or that are not
// billed for their CPUs, are not in the sums, and EachOther has them.
func TestSumsAreThoseOfTheRecords(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		r := rand.New(rand.NewPCG(3, 4))
		var simple, other []store.Entry
		for id := range int64(300) {
			isOther := r.IntN(6) == 0
			e := accttest.Entry(id+1, []string{"anna", "ben"}[r.IntN(2)], func(x *status.Record) {
				x.Account, x.WCKey = []string{"lab", "sub"}[r.IntN(2)], []string{"", "w"}[r.IntN(2)]
				x.Submit = r.Int64N(100_000) + 1
				x.Eligible = x.Submit + r.Int64N(1000)
				x.Start = x.Eligible + r.Int64N(5000)
				x.End = x.Start + r.Int64N(20_000)
				x.CPUs, x.ReqCPUs, x.Nodes = r.Int32N(4)+1, r.Int32N(8)+1, r.Int32N(3)+1
				x.AllocTRES = fmt.Sprintf("billing=%d,cpu=%d,mem=%dM,node=%d", x.CPUs, x.CPUs, r.IntN(5000), x.Nodes)
				switch r.IntN(10) {
				case 0:
					x.Start, x.State = 0, "CANCELLED"
					if id%2 == 0 {
						x.AllocTRES = ""
					}
				case 1:
					x.Eligible = 0
				}
				switch {
				case isOther && id%2 == 0:
					x.AllocTRES = fmt.Sprintf("billing=%d,cpu=%d,gres/gpu=1,mem=1G,node=%d", x.CPUs, x.CPUs, x.Nodes)
				case isOther:
					x.AllocTRES = fmt.Sprintf("billing=%d,cpu=%d,mem=1G,node=%d", x.CPUs*10, x.CPUs, x.Nodes)
				}
			})
			if isOther {
				other = append(other, e)
			} else {
				simple = append(simple, e)
			}
		}
		accttest.Put(t, s, append(append([]store.Entry{}, simple...), other...))
		for i := range 60 {
			w := store.Window{Start: r.Int64N(120_000), Now: 150_000}
			w.End = w.Start + r.Int64N(60_000)
			if i%3 == 0 {
				w.Now = w.Start + r.Int64N(10_000)
			}
			bySize := i%2 == 0
			want := map[store.Sum]*store.Sum{}
			for k := range simple {
				sumOf(want, &simple[k].Record, w, bySize)
			}
			err := s.SumSimple(t.Context(), w, bySize, func(got *store.Sum) {
				key := store.Sum{Account: got.Account, User: got.User, WCKey: got.WCKey, CPUs: got.CPUs}
				if want[key] == nil || *want[key] != *got {
					t.Errorf("%+v, by size %v: %+v, want %+v", w, bySize, *got, want[key])
				}
				delete(want, key)
			})
			if err != nil || len(want) != 0 {
				t.Fatalf("%+v: %v; missing %v", w, err, want)
			}
			others := 0
			if err := s.EachOther(t.Context(), w, func(*status.Record) { others++ }); err != nil {
				t.Fatal(err)
			}
			for k := range other {
				if x := &other[k].Record; x.End >= w.Start && x.Submit <= w.End {
					others--
				}
			}
			if others != 0 {
				t.Errorf("%+v: %d records too many in EachOther", w, others)
			}
		}
	})
}

// TestEndedRuns: a list of any length is looked up, and running jobs are not in the result.
func TestEndedRuns(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		var entries []store.Entry
		var uids []string
		for id := range int64(1200) {
			entries = append(entries, accttest.Entry(id+1, "anna", func(r *status.Record) {
				if id%3 == 0 {
					r.End, r.State = 0, "RUNNING"
				}
			}))
			uids = append(uids, fmt.Sprint("uid-", id+1))
		}
		again := accttest.Entry(2, "anna", func(r *status.Record) { r.Restarts = 1 })
		accttest.Put(t, s, append(entries, again))
		got := map[record.RunKey]int{}
		uids = append(uids, "uid-unknown", "'; DROP TABLE jobs; --")
		if err := s.EachEnded(t.Context(), uids, func(k record.RunKey) { got[k]++ }); err != nil {
			t.Fatal(err)
		}
		if len(got) != 801 || got[record.RunKey{UID: "uid-2", Restarts: 1}] != 1 || got[record.RunKey{UID: "uid-1"}] != 0 {
			t.Errorf("%d ended runs, want 801", len(got))
		}
		for key, n := range got {
			if n != 1 {
				t.Errorf("%v: reported %d times", key, n)
			}
		}
		if err := s.EachEnded(t.Context(), nil, func(record.RunKey) { t.Error("a run of no job") }); err != nil {
			t.Error(err)
		}
	})
}

func TestJobIDs(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		if id, err := s.HighestJobID(t.Context()); id != 0 || err != nil {
			t.Errorf("of no records: %d, %v", id, err)
		}
		accttest.Put(t, s, []store.Entry{accttest.Entry(12, "anna", nil), accttest.Entry(7, "ben", nil)})
		if id, err := s.HighestJobID(t.Context()); id != 12 || err != nil {
			t.Errorf("%d, %v", id, err)
		}
		for id, want := range map[int64]bool{7: true, 12: true, 8: false, 0: false, -7: false} {
			if got, err := s.HasJob(t.Context(), id); got != want || err != nil {
				t.Errorf("job %d: %v, %v", id, got, err)
			}
		}
	})
}

// TestWhenADatabaseIsOpenedAgain: errors that mean that the database is another one, or
// cannot be read any more. A lock, a conflict or a lost connection is none of them.
func TestWhenADatabaseIsOpenedAgain(t *testing.T) {
	for code, want := range map[string]bool{"42P01": true, "42703": true, "23505": false, "40001": false, "57P01": false} {
		if got := store.NeedsReopen(fmt.Errorf("put: %w", &pgconn.PgError{Code: code})); got != want {
			t.Errorf("PostgreSQL %s: %v", code, got)
		}
	}
	if !store.NeedsReopen(fmt.Errorf("x: %w", store.ErrMoved)) || store.NeedsReopen(nil) || store.NeedsReopen(errors.New(strings.Repeat("x", 9))) {
		t.Error("other errors")
	}
}
