// Package table has the queue as rows that are ready to be sent: one row for each
// BatchJob, updated by events and merged with the newest plan when it is read.
package table

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
)

// Planner returns what the newest plan says about a pending job; ok is false for a job
// that it does not include. It must be fast and safe for concurrent use.
type Planner interface {
	Planned(id int64) (p control.Planned, ok bool)
}

// Row is one job. Rows are never changed: an update creates a new one, so readers may
// keep them.
type Row struct {
	status.Job
	// Hosts are the short names of the job's nodes, in the order of the job.
	Hosts []string
	// Held is job.hold: "", "user" or "admin".
	Held string
	// Task is the index if the row is a task of an array; Rest are the tasks that the
	// row represents because they are not split off.
	Task *int32
	Rest array.Set
	// Final is true if the job has ended and will not change any more.
	Final bool
	// Bytes is the stored size of the job (BatchJob.StoredBytes).
	Bytes int64

	fixed []byte // JSON of the fields that the plan does not change, including "{"
}

// Table is safe for concurrent use.
type Table struct {
	cluster *control.Cluster
	dir     *directory.Directory
	planner Planner

	coming arrivals
	steps  steps

	// rebuilding is held while rows of marked arrays are rebuilt.
	rebuilding sync.Mutex
	anyTouched atomic.Bool

	stale atomic.Bool // users or partitions changed: all rows have to be rebuilt

	mu     sync.RWMutex
	rows   []*Row      // by ascending id
	active map[Key]int // jobs that have not ended, including places
	// bytes is the stored size of the jobs of each user, including places.
	bytes  map[string]int64
	size   int // all jobs, including places
	places places
	past   history

	plans plans

	// touched are arrays that represent fewer tasks than their rows say.
	touched map[int64]bool
}

// Key is a group of jobs that are counted; an empty field means all.
type Key struct{ User, Account, QOS string }

// New returns the table of c's jobs. Call it before its stores are filled. planner may
// be nil.
func New(c *control.Cluster, dir *directory.Directory, planner Planner) *Table {
	t := &Table{
		cluster: c, dir: dir, planner: planner, active: map[Key]int{}, bytes: map[string]int64{},
		touched: map[int64]bool{},
	}
	t.past.epoch = strconv.FormatInt(time.Now().UnixNano(), 36)
	c.Jobs.Subscribe(func(old, now *v1alpha1.BatchJob) {
		if now == nil {
			now = old
		}
		t.refresh(now.Spec.JobID)
		if o := now.Spec.Origin; o != nil && (old == nil || now == old) {
			t.touch(o.JobID) // it represents one task less
		}
	})
	c.Users.Subscribe(func(_, _ *v1alpha1.User) { t.outdate() })
	c.Partitions.Subscribe(func(_, _ *v1alpha1.Partition) { t.outdate() })
	c.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { t.outdate() })
	return t
}

// outdate marks all rows to be rebuilt before they are read again.
func (t *Table) outdate() {
	t.stale.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past.alert()
}

// refresh reads the job's present state from the store. Events may arrive out of order;
// under the table's lock the store has the newest state.
func (t *Table) refresh(id int64) {
	if id == 0 {
		return // not admitted by Berth: it is not in the queue
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if j, ok := t.cluster.Job(id); ok {
		r := t.newRow(j)
		t.put(r)
		if r.Final {
			t.forgetSteps(id)
		}
		t.arrived(id)
		return
	}
	t.forgetSteps(id)
	if at, ok := t.find(id); ok {
		t.count(t.rows[at], -1)
		t.past.add(change{id, t.rows[at], nil})
		delete(t.places.byObject, t.rows[at].Namespace+"/"+t.rows[at].Object) // the name may be reused
		t.rows = slices.Delete(t.rows, at, at+1)
	}
}

// split returns the jobs that were split off an array.
func (t *Table) split(j *v1alpha1.BatchJob) []*v1alpha1.BatchJob {
	if !array.Whole(j) {
		return nil
	}
	return t.cluster.SplitOff(j.Spec.JobID)
}

func (t *Table) put(r *Row) {
	at, ok := t.find(r.ID)
	if ok {
		t.count(t.rows[at], -1)
		if t.rows[at].Job != r.Job {
			t.past.add(change{r.ID, t.rows[at], r})
		}
		t.rows[at] = r
	} else {
		t.past.add(change{r.ID, nil, r})
		t.rows = slices.Insert(t.rows, at, r)
	}
	t.count(r, 1)
}

// count adds the row's jobs to the counts (by is 1) or subtracts them (-1).
func (t *Table) count(r *Row, by int) {
	t.countBytes(r.User, int64(by)*r.Bytes)
	if r.Final {
		t.size += by
		return
	}
	by *= max(1, len(r.Rest))
	t.size += by
	t.countGroups(r.User, r.Account, r.QOS, by)
}

func (t *Table) countGroups(user, account, qos string, by int) {
	t.add(Key{User: user}, by)
	if account != "" {
		t.add(Key{Account: account}, by)
		t.add(Key{User: user, Account: account}, by)
	}
	if qos != "" {
		t.add(Key{QOS: qos}, by)
		t.add(Key{User: user, QOS: qos}, by)
	}
}

func (t *Table) countBytes(user string, by int64) {
	if t.bytes[user] += by; t.bytes[user] == 0 {
		delete(t.bytes, user)
	}
}

func (t *Table) add(k Key, by int) {
	if t.active[k] += by; t.active[k] == 0 {
		delete(t.active, k)
	}
}

func (t *Table) find(id int64) (int, bool) {
	if n := len(t.rows); n == 0 || t.rows[n-1].ID < id {
		return n, false // almost always a new job
	}
	return slices.BinarySearchFunc(t.rows, id, func(r *Row, id int64) int {
		switch {
		case r.ID < id:
			return -1
		case r.ID > id:
			return 1
		}
		return 0
	})
}

// touch marks the row of an array to be rebuilt before it is read again.
func (t *Table) touch(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touched[id] = true
	t.anyTouched.Store(true)
	t.past.alert()
}

// rebuildTouched rebuilds the rows of marked arrays. It returns when all that were marked
// before the call are, also those that another caller is rebuilding.
func (t *Table) rebuildTouched() {
	if !t.anyTouched.Load() {
		return
	}
	t.rebuilding.Lock()
	defer t.rebuilding.Unlock()
	t.mu.Lock()
	ids := t.touched
	t.touched = map[int64]bool{}
	t.mu.Unlock()
	for id := range ids {
		t.refresh(id)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.anyTouched.Store(len(t.touched) > 0)
}

// Refresh updates the rows of the job, and of the array that it was split off, from the
// store before they are read again. So do the store's events, but an event may still be on
// its way when the writer of the change responds to its client, who would then read the
// old rows.
func (t *Table) Refresh(b *v1alpha1.BatchJob) {
	t.refresh(b.Spec.JobID)
	if o := b.Spec.Origin; o != nil {
		t.touch(o.JobID)
	}
}

// rebuild rebuilds all rows if users, partitions or parameters changed.
func (t *Table) rebuild() {
	t.rebuildTouched()
	if !t.stale.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.stale.Swap(false) {
		return
	}
	for i, r := range t.rows {
		if j, ok := t.cluster.Job(r.ID); ok {
			t.count(r, -1)
			t.rows[i] = t.newRow(j)
			t.count(t.rows[i], 1)
			if t.rows[i].Job != r.Job {
				t.past.add(change{r.ID, r, t.rows[i]})
			}
		}
	}
}

// newRow returns the row of a job in the store.
func (t *Table) newRow(b *v1alpha1.BatchJob) *Row {
	r := newRow(b, t.split(b), t.dir)
	r.Bytes = t.cluster.Jobs.StoredBytes(b)
	return r
}

// Get returns the row of a job, or nil.
func (t *Table) Get(id int64) *Row {
	t.rebuild()
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at, ok := t.find(id); ok {
		return t.rows[at]
	}
	return nil
}

// Planned returns what the newest plan says about a pending job.
func (t *Table) Planned(id int64) (p control.Planned, ok bool) {
	if t.planner == nil {
		return p, false
	}
	return t.planner.Planned(id)
}

// Len returns the number of jobs in the queue, including final ones.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.rows)
}

// Active returns the number of jobs of k that have not ended, counting each task of an
// array, and of those that have a place. k is a user, an account, a QOS, or a user and
// one of the others.
func (t *Table) Active(k Key) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.active[k]
}

// Count returns the number of jobs in a state, counting each of the tasks of an array
// that are pending together.
func (t *Table) Count(state string) int64 {
	t.rebuildTouched()
	t.mu.RLock()
	defer t.mu.RUnlock()
	var n int64
	for _, r := range t.rows {
		if r.State == state {
			n += max(1, int64(len(r.Rest)))
		}
	}
	return n
}

// Highest returns the highest job id in the queue, or 0.
func (t *Table) Highest() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n := len(t.rows); n > 0 {
		return t.rows[n-1].ID
	}
	return 0
}

// Select returns the rows that match q, by ascending id, at one point in time, or some
// of them if ctx is done before all were compared. Comparing does not block changes of
// the table.
func (t *Table) Select(ctx context.Context, q Query) []*Row {
	t.rebuild()
	f := q.compile()
	out := t.candidates(q.IDs)
	n := 0
	for i, r := range out {
		if i%256 == 255 && ctx.Err() != nil {
			break
		}
		if f.pass(r) {
			out[n], n = r, n+1
		}
	}
	clear(out[n:])
	return out[:n]
}

// candidates returns all rows, or those with these ids and the ones split off them. The
// caller may change the slice.
func (t *Table) candidates(ids []int64) []*Row {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(ids) == 0 {
		return slices.Clone(t.rows)
	}
	all := slices.Clone(ids)
	for _, id := range ids {
		for _, b := range t.cluster.SplitOff(id) {
			all = append(all, b.Spec.JobID)
		}
	}
	slices.Sort(all)
	out := make([]*Row, 0, len(all))
	for _, id := range slices.Compact(all) {
		if at, ok := t.find(id); ok {
			out = append(out, t.rows[at])
		}
	}
	return out
}
