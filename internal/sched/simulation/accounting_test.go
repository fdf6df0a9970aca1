package simulation

import (
	"context"
	"path/filepath"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
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
		Address: p.sim.database, Cluster: p.cluster, Released: p.keep.Enqueue, Now: p.sim.now,
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

// checkRecords checks that every run of every job that is gone has one record, and that
// the last one has the job's final state.
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
	byJob := map[int64]map[int32][]string{} // states by restarts
	for i := range records {
		r := &records[i]
		if byJob[r.ID] == nil {
			byJob[r.ID] = map[int32][]string{}
		}
		byJob[r.ID][r.Restarts] = append(byJob[r.ID][r.Restarts], r.State)
	}
	for _, e := range t.ended {
		for n := range e.restarts + 1 {
			if states := byJob[e.id][n]; len(states) != 1 {
				t.violate("run %d of job %d has %d records", n, e.id, len(states))
			} else if n == e.restarts && states[0] != e.state {
				t.violate("job %d ended %s, and its record is %s", e.id, e.state, states[0])
			}
		}
		if len(byJob[e.id]) > int(e.restarts)+1 {
			t.violate("job %d has records of %d runs, and had %d", e.id, len(byJob[e.id]), e.restarts+1)
		}
		t.seen["jobs with records"]++
	}
}
