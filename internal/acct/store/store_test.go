package store_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/translate/status"
)

// both runs a test with each database.
func both(t *testing.T, test func(t *testing.T, s *store.Store)) {
	accttest.EachDatabase(t, func(t *testing.T, address string) { test(t, accttest.Open(t, address)) })
}

func TestRoundTripIsExactAndIdempotent(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		e := accttest.Entry(7, "anna", func(r *status.Record) {
			r.Name, r.Comment = "a 'quoted' \"job\"; DROP TABLE jobs; -- \U0001F41F", "zwei\nZeilen"
			r.ArrayJobID, r.ArrayTaskID, r.HetJobID, r.HetOffset = 5, "3", 9, 2
			r.KilledBy, r.KilledByID, r.ExitCode, r.Signal = "ben", 1002, 1, 9
		})
		step := status.StepRecord{
			Step:     "batch",
			Name:     "batch",
			State:    "COMPLETED",
			RSS:      status.Measure{Total: 1 << 30, Max: status.Extreme{Amount: 1 << 30, Node: "n1", Task: 3}},
			Measured: true,
		}
		for range 3 {
			accttest.Put(t, s, []store.Entry{e}, store.StepEntry{Run: record.RunKey{UID: "uid-7"}, Step: step})
		}
		got := accttest.Find(t, s, status.RecordQuery{Jobs: []string{"7"}})
		if len(got) != 1 || got[0].DBIndex == 0 {
			t.Fatalf("%+v", got)
		}
		want := e.Record
		want.DBIndex, want.Steps = got[0].DBIndex, []status.StepRecord{step}
		if !reflect.DeepEqual(got[0], want) {
			t.Errorf("got  %+v\nwant %+v", got[0], want)
		}
		older := e
		older.Rev, older.Record.State = 0, "RUNNING"
		accttest.Put(t, s, []store.Entry{older})
		if r := accttest.Find(t, s, status.RecordQuery{Jobs: []string{"7"}})[0]; r.State != "COMPLETED" {
			t.Errorf("an older version replaced a newer one: %s", r.State)
		}
	})
}

func TestSearch(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		running := func(r *status.Record) { r.State, r.End = "RUNNING", 0 }
		accttest.Put(t, s, []store.Entry{
			accttest.Entry(1, "anna", nil),
			accttest.Entry(2, "ben", func(r *status.Record) { r.Account, r.NodeList, r.Nodes = "arts", "n[2-3]", 2 }),
			accttest.Entry(3, "anna", running),
			accttest.Entry(
				4,
				"anna",
				func(r *status.Record) { r.State, r.Start, r.End, r.Nodes, r.NodeList = "PENDING", 0, 0, 0, "" },
			),
			accttest.Entry(5, "carl", func(r *status.Record) { r.End = 50_000_000; r.State = "TIMEOUT" }),
			accttest.Entry(6, "anna", func(r *status.Record) { r.ArrayJobID, r.ArrayTaskID = 6, "0" }),
			accttest.Entry(7, "anna", func(r *status.Record) { r.ArrayJobID, r.ArrayTaskID, r.Name = 6, "1", "x" }),
			accttest.Entry(8, "anna", func(r *status.Record) { r.HetJobID, r.QOS, r.WCKey = 8, "fast", "w" }),
			accttest.Entry(9, "anna", func(r *status.Record) { r.HetJobID, r.HetOffset, r.Eligible = 8, 1, 0 }),
			accttest.Entry(1, "anna", func(r *status.Record) { r.Restarts, r.State = 1, "FAILED" }),
		})
		for name, c := range map[string]struct {
			q    status.RecordQuery
			want []int64
		}{
			"all":            {status.RecordQuery{}, []int64{1, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
			"ids":            {status.RecordQuery{Jobs: []string{"2", "5", "77"}}, []int64{2, 5}},
			"no id":          {status.RecordQuery{Jobs: []string{"x"}}, []int64{}},
			"array":          {status.RecordQuery{Jobs: []string{"6"}}, []int64{6, 7}},
			"task":           {status.RecordQuery{Jobs: []string{"6_1"}}, []int64{7}},
			"tasks":          {status.RecordQuery{Jobs: []string{"6_[0-1,5]"}}, []int64{6, 7}},
			"het":            {status.RecordQuery{Jobs: []string{"8"}}, []int64{8, 9}},
			"component":      {status.RecordQuery{Jobs: []string{"8+1"}}, []int64{9}},
			"user":           {status.RecordQuery{Users: []string{"ben", "carl"}}, []int64{2, 5}},
			"uid or user":    {status.RecordQuery{Users: []string{"ben"}, UserIDs: []int64{1004}}, []int64{1, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
			"account":        {status.RecordQuery{Accounts: []string{"arts"}}, []int64{2}},
			"name":           {status.RecordQuery{Names: []string{"x"}}, []int64{7}},
			"qos, wckey":     {status.RecordQuery{QOS: []string{"fast"}, WCKeys: []string{"w"}}, []int64{8}},
			"node":           {status.RecordQuery{Nodes: []string{"n3"}}, []int64{2}},
			"nodes range":    {status.RecordQuery{NNodes: [2]int64{2, 9}}, []int64{2}},
			"an injection":   {status.RecordQuery{Users: []string{"anna' OR '1'='1"}, Names: []string{"job') OR 1=1 --"}}, []int64{}},
			"NUL":            {status.RecordQuery{Names: []string{"jo\x00b\xff"}}, []int64{}},
			"window":         {status.RecordQuery{Start: 2050, End: 2060}, []int64{2}},
			"window, later":  {status.RecordQuery{Start: 6500, End: 6600}, []int64{3, 4, 5}},
			"window, user":   {status.RecordQuery{Start: 1, End: 2999, Users: []string{"anna"}}, []int64{1, 1}},
			"open end":       {status.RecordQuery{Start: 7500}, []int64{3, 4, 5, 8}},
			"ids in time":    {status.RecordQuery{Start: 1, End: 2999, Jobs: []string{"1", "2", "3"}}, []int64{1, 1, 2}},
			"completed":      {status.RecordQuery{Start: 1, End: 10_000, States: []string{"COMPLETED"}}, []int64{1, 2, 6, 7, 8, 9}},
			"timeout in":     {status.RecordQuery{Start: 1, End: 10_000, States: []string{"TIMEOUT"}}, []int64{}},
			"running then":   {status.RecordQuery{Start: 2050, End: 2060, States: []string{"RUNNING"}}, []int64{2}},
			"pending":        {status.RecordQuery{Start: 4000, End: 4002, States: []string{"PENDING"}}, []int64{4}},
			"limit":          {status.RecordQuery{Limit: 2}, []int64{1, 1}},
			"constraint no":  {status.RecordQuery{Constraints: []string{"gpu"}}, []int64{}},
			"several states": {status.RecordQuery{Start: 1, End: 60_000_000, States: []string{"TIMEOUT", "FAILED"}}, []int64{1, 5}},
		} {
			if got := accttest.IDs(accttest.Find(t, s, c.q)); !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
		if got := record.Newest(accttest.Find(t, s, status.RecordQuery{Jobs: []string{"1"}})); len(got) != 1 ||
			got[0].State != "FAILED" {
			t.Errorf("newest: %+v", got)
		}
	})
}

// A search by the classes of span finds exactly what a scan of all records finds.
func TestSearchByWindowFindsWhatAFullScanFinds(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		r := rand.New(rand.NewPCG(1, 2))
		var all []store.Entry
		for id := range int64(500) {
			begin := r.Int64N(1_000_000) + 1
			all = append(all, accttest.Entry(id+1, []string{"anna", "ben"}[r.IntN(2)], func(x *status.Record) {
				x.Submit, x.Eligible, x.Start, x.End = begin, begin, begin, begin+r.Int64N(1<<r.IntN(20))
				if r.IntN(20) == 0 {
					x.End, x.State = 0, "RUNNING"
				}
				if r.IntN(20) == 0 {
					x.Eligible = 0
				}
			}))
		}
		accttest.Put(t, s, all)
		for range 200 {
			q := status.RecordQuery{Start: r.Int64N(1_100_000) + 1}
			q.End = q.Start + r.Int64N(1<<r.IntN(18))
			if r.IntN(2) == 0 {
				q.Users = []string{"anna"}
			}
			if r.IntN(3) == 0 {
				q.States = []string{[]string{"COMPLETED", "RUNNING", "PENDING"}[r.IntN(3)]}
			}
			f := record.NewFilter(&q)
			want := []int64{}
			for i := range all {
				if f.Match(&all[i].Record) {
					want = append(want, all[i].Record.ID)
				}
			}
			if got := accttest.IDs(accttest.Find(t, s, q)); !slices.Equal(got, want) {
				t.Fatalf("%+v: %v, want %v", q, got, want)
			}
		}
	})
}

func TestPurgeAndLoad(t *testing.T) {
	both(t, func(t *testing.T, s *store.Store) {
		accttest.Put(
			t,
			s,
			[]store.Entry{
				accttest.Entry(1, "anna", nil),
				accttest.Entry(2, "anna", nil),
				accttest.Entry(3, "anna", func(r *status.Record) { r.End, r.State = 0, "RUNNING" }),
			},
			store.StepEntry{Run: record.RunKey{UID: "uid-1"}, Step: status.StepRecord{Step: "0", State: "COMPLETED"}},
		)
		before := accttest.Find(t, s, status.RecordQuery{})
		dir := t.TempDir()
		n, err := s.Purge(t.Context(), time.Unix(2000, 0), dir, time.Unix(9000, 0))
		if err != nil || n != 1 ||
			!slices.Equal(accttest.IDs(accttest.Find(t, s, status.RecordQuery{})), []int64{2, 3}) {
			t.Fatalf("%d deleted, %v: %v", n, err, accttest.IDs(accttest.Find(t, s, status.RecordQuery{})))
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*.gz"))
		if len(files) != 1 {
			t.Fatalf("archives: %v", files)
		}
		f, err := os.Open(files[0])
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if n, err := s.Load(t.Context(), f); err != nil || n != 1 {
			t.Fatalf("%d loaded, %v", n, err)
		}
		after := accttest.Find(t, s, status.RecordQuery{})
		for i := range after {
			after[i].DBIndex, before[i].DBIndex = 0, 0
		}
		if !reflect.DeepEqual(after, before) {
			t.Errorf("got  %+v\nwant %+v", after, before)
		}
		if _, err := s.Load(t.Context(), strings.NewReader("nonsense")); err == nil {
			t.Error("nonsense was loaded as an archive")
		}
		if os.Getuid() != 0 { // root writes everywhere
			if _, err := s.Purge(
				t.Context(),
				time.Unix(1<<40, 0),
				"/proc/none",
				time.Unix(9000, 0),
			); err == nil ||
				len(accttest.Find(t, s, status.RecordQuery{})) != 3 {
				t.Errorf("records were deleted without their archive (%v)", err)
			}
		}
	})
}

func TestNewerIsRefused(t *testing.T) {
	raw := func(t *testing.T, path, statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "a.db")
	s, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	accttest.Put(t, s, []store.Entry{accttest.Entry(1, "anna", nil)})
	raw(t, path, `UPDATE jobs SET version = 99, body = '{"future": 1}'`)
	if _, err := s.Find(t.Context(), &status.RecordQuery{}); !errors.Is(err, store.ErrNewer) ||
		!strings.Contains(err.Error(), "job 1") {
		t.Errorf("a newer record: %v", err)
	}
	accttest.Put(t, s, []store.Entry{accttest.Entry(1, "anna", nil)})
	if _, err := s.Find(t.Context(), &status.RecordQuery{}); !errors.Is(err, store.ErrNewer) {
		t.Errorf("a newer record was overwritten: %v", err)
	}
	_ = s.Close()
	raw(t, path, `INSERT INTO berth_schema VALUES (99)`)
	if _, err := store.Open(t.Context(), path); !errors.Is(err, store.ErrNewer) {
		t.Errorf("a newer schema: %v", err)
	}
}

func TestNoDatabase(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, address := range []string{"/nonexistent/dir/a.db", "postgres://berth:secret@127.0.0.1:1/x?connect_timeout=1", t.TempDir()} {
		_, err := store.Open(ctx, address)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	path := filepath.Join(t.TempDir(), "garbage.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(ctx, path); err == nil {
		t.Error("garbage was opened as a database")
	}
}

// A full disk, here a limit on the size of the database, loses nothing.
func TestFullDatabaseLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	s := accttest.Open(t, path)
	accttest.Put(t, s, []store.Entry{accttest.Entry(1, "anna", nil)})
	full := accttest.Entry(2, "anna", func(r *status.Record) { r.Comment = strings.Repeat("x", 1<<20) })
	if err := store.LimitPages(s, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), []store.Entry{accttest.Entry(3, "anna", nil), full}, nil); err == nil {
		t.Fatal("a full database accepted a record")
	}
	if got := accttest.IDs(accttest.Find(t, s, status.RecordQuery{})); len(got) != 1 {
		t.Errorf("a part was written: %v", got)
	}
	if err := store.LimitPages(s, 1<<30); err != nil {
		t.Fatal(err)
	}
	accttest.Put(t, s, []store.Entry{accttest.Entry(3, "anna", nil), full})
	if got := accttest.IDs(accttest.Find(t, s, status.RecordQuery{})); len(got) != 3 {
		t.Errorf("%v", got)
	}
}

// TestOnlyTheOwnerReadsTheFile checks the modes of new and of old files of a database.
func TestOnlyTheOwnerReadsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "accounting.db")
	for range 2 {
		s, err := store.Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{path, path + "-wal", path + "-shm"} {
			info, err := os.Stat(file)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm()&0o007 != 0 {
				t.Errorf("%s has mode %v", filepath.Base(file), info.Mode())
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o644); err != nil { // as earlier versions made it
			t.Fatal(err)
		}
	}
}
