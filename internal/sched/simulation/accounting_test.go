package simulation

import (
	"context"
	"path/filepath"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// openDatabase gives the simulation an accounting database.
func (s *simulation) openDatabase() { s.database = filepath.Join(s.t.TempDir(), "acct.db") }

// record writes the records of jobs into the database, as the process.
func (p *process) record() {
	if p.sim.database == "" {
		return
	}
	dir := directory.New(p.cluster, nil)
	p.recorder = acct.NewRecorder(acct.Config{
		Address: p.sim.database, Cluster: p.cluster, Released: p.keep.Enqueue, Now: p.clock.now,
		Row: func(b *v1alpha1.BatchJob) status.Job { return table.RowOf(b, dir) },
	})
	p.keep.Stored = p.recorder.Stored
}

// ended is a job whose object is gone.
type ended struct {
	id       int64
	restarts int32
	state    string
}

// checkRecords checks that every run of every job that is gone has one record, which has
// ended, and that the last one has the job's final state.
func (t *truth) checkRecords() {
	if t.sim.database == "" {
		return
	}
	db, err := store.Open(context.Background(), t.sim.database)
	if err != nil {
		t.violate("the database cannot be opened: %v", err)
		return
	}
	defer db.Close() //nolint:errcheck // it was only read
	records, err := db.Find(context.Background(), &status.RecordQuery{Duplicates: true})
	if err != nil {
		t.violate("the database cannot be read: %v", err)
		return
	}
	t.compareRecords(records)
}

func (t *truth) compareRecords(records []status.Record) {
	runs := map[int64]map[int32][]*status.Record{} // by job and restarts
	for i := range records {
		r := &records[i]
		if runs[r.ID] == nil {
			runs[r.ID] = map[int32][]*status.Record{}
		}
		runs[r.ID][r.Restarts] = append(runs[r.ID][r.Restarts], r)
	}
	for _, e := range t.ended {
		for n := range e.restarts + 1 {
			t.compareRun(e, n, runs[e.id][n])
		}
		if len(runs[e.id]) > int(e.restarts)+1 {
			t.violate("job %d has records of %d runs, and had %d", e.id, len(runs[e.id]), e.restarts+1)
		}
		t.seen["jobs with records"]++
	}
}

// compareRun compares the records of run n of a job with what happened.
func (t *truth) compareRun(e ended, n int32, records []*status.Record) {
	switch {
	case len(records) != 1:
		t.violate("run %d of job %d has %d records", n, e.id, len(records))
	case n == e.restarts && records[0].State != e.state:
		t.violate("job %d ended %s, and its record is %s", e.id, e.state, records[0].State)
	case !record.HasEnded(records[0]) || records[0].End == 0:
		t.violate("run %d of job %d has ended, and its record is %s until %d", n, e.id, records[0].State, records[0].End)
	}
}
