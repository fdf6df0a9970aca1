package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/translate/status"
)

// million is the number of records that the benchmarks search: 200 days of 100
// users with 50 jobs a day each.
const million = 1_000_000

// fill stores n records, or a hundredth of them unless BERTH_TEST_FULL is set.
func fill(b *testing.B, s *store.Store, n int) int {
	b.Helper()
	if os.Getenv("BERTH_TEST_FULL") == "" {
		n /= 100
	}
	batch := make([]store.Entry, 0, 1000)
	steps := make([]store.StepEntry, 0, 1000)
	for i := range n {
		day, user := int64(i/5000), i%100
		at := day*86400 + int64(i%5000)*17 + 1
		batch = append(batch, accttest.Entry(int64(i+1), fmt.Sprintf("user%d", user), func(r *status.Record) {
			r.Submit, r.Eligible, r.Start, r.End = at, at, at+30, at+30+int64(i%97)*60
			r.SubmitLine, r.WorkDir, r.Account = "sbatch -n 4 --mem 4G run.sh input-"+fmt.Sprint(
				i,
			), "/home/user/project/run", "account"+fmt.Sprint(user/10)
		}))
		steps = append(steps, store.StepEntry{
			Run: record.KeyOf(&batch[len(batch)-1].Record),
			Step: status.StepRecord{
				Step:     "batch",
				Name:     "batch",
				State:    "COMPLETED",
				Nodes:    1,
				NodeList: "n1",
				Tasks:    1,
				CPUs:     2,
				RSS:      status.Measure{Total: 1 << 20, Max: status.Extreme{Amount: 1 << 20}},
				Measured: true,
			},
		})
		if len(batch) == cap(batch) || i == n-1 {
			if _, err := s.Put(b.Context(), batch, steps); err != nil {
				b.Fatal(err)
			}
			batch, steps = batch[:0], steps[:0]
		}
	}
	return n
}

func benchmark(b *testing.B, address string) {
	s, err := store.Open(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	n := fill(b, s, million)
	day := int64(n / 5000 / 2 * 86400)
	for name, q := range map[string]status.RecordQuery{
		"user-day":   {Users: []string{"user7"}, Start: day, End: day + 86400},
		"all-day":    {Start: day, End: day + 86400},
		"user-month": {Users: []string{"user7"}, Start: day, End: day + 30*86400, NoSteps: true},
		"id":         {Jobs: []string{fmt.Sprint(n / 3)}},
		"name-day":   {Names: []string{"nosuch"}, Start: day, End: day + 86400},
	} {
		b.Run(name, func(b *testing.B) {
			found := 0
			for b.Loop() {
				list, err := s.Find(b.Context(), &q)
				if err != nil {
					b.Fatal(err)
				}
				found = len(list)
			}
			b.ReportMetric(float64(found), "records")
		})
	}
}

func BenchmarkSQLite(b *testing.B)   { benchmark(b, filepath.Join(b.TempDir(), "a.db")) }
func BenchmarkPostgres(b *testing.B) { benchmark(b, accttest.Postgres(b)) }
