// Package table holds the queue as rows, ready to be sent: one row for each
// BatchJob, kept up to date by events and merged with the newest plan when it
// is read.
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

// Planner tells what the newest plan says about a pending job; ok is false
// for a job that it has not seen. It must be quick and safe for concurrent use.
type Planner interface {
	Planned(id int64) (p control.Planned, ok bool)
}

// Row is one job. Rows are never changed: an update makes a new one, so a
// reader may keep them for as long as it likes.
type Row struct {
	status.Job
	// Hosts are the short names of the nodes held, in the order of the job.
	Hosts []string
	// Held is job.hold: "", "user" or "admin".
	Held string
	// Task is the task of an array that the row is; Rest are those it stands for
	// while they are not split off.
	Task *int32
	Rest array.Set
	// Final is true when the job is over and nothing about it will change.
	Final bool
	// Bytes are those that the job takes where it is stored (BatchJob.StoredBytes).
	Bytes int64

	fixed []byte // JSON of everything but what the plan changes, "{" included
}

// Table is safe for concurrent use.
type Table struct {
	cluster *control.Cluster
	dir     *directory.Directory
	planner Planner

	coming arrivals
	steps  steps

	anyTouched atomic.Bool

	stale atomic.Bool // users or partitions changed: every row is to be remade

	mu     sync.RWMutex
	rows   []*Row      // by ascending id
	active map[Key]int // jobs that are not over, places included
	// bytes are what the jobs of each user take where they are stored, places included.
	bytes  map[string]int64
	size   int // all jobs, places included
	places places
	past   history

	plans plans

	// touched are arrays that stand for fewer tasks than their rows say.
	touched map[int64]bool
}

// Key names a group of jobs to count; an empty field stands for all.
type Key struct{ User, Account, QOS string }

// New makes the table of c's jobs, before its stores are fed. planner may be
// nil.
func New(c *control.Cluster, dir *directory.Directory, planner Planner) *Table {
	t := &Table{cluster: c, dir: dir, planner: planner, active: map[Key]int{}, bytes: map[string]int64{}, touched: map[int64]bool{}}
	t.past.epoch = strconv.FormatInt(time.Now().UnixNano(), 36)
	c.Jobs.Subscribe(func(old, now *v1alpha1.BatchJob) {
		if now == nil {
			now = old
		}
		t.refresh(now.Spec.JobID)
		if o := now.Spec.Origin; o != nil && (old == nil || now == old) {
			t.touch(o.JobID) // it stands for one task less
		}
	})
	c.Users.Subscribe(func(_, _ *v1alpha1.User) { t.outdate() })
	c.Partitions.Subscribe(func(_, _ *v1alpha1.Partition) { t.outdate() })
	c.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { t.outdate() })
	return t
}

// outdate has every row remade before it is read again.
func (t *Table) outdate() {
	t.stale.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past.alert()
}

// refresh takes the job's present state from the store. Events may come out
// of order; the store under the table's lock has the newest.
func (t *Table) refresh(id int64) {
	if id == 0 {
		return // not admitted by us: it is not in the queue
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
		delete(t.places.byObject, t.rows[at].Namespace+"/"+t.rows[at].Object) // the name may be used again
		t.rows = slices.Delete(t.rows, at, at+1)
	}
}

// split are the jobs split off an array.
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

// count adds the row's jobs to the counts, or takes them off (by is 1 or -1).
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
		return n, false // a new job, nearly always
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

// touch has the row of an array made anew before it is read again.
func (t *Table) touch(id int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.touched[id] = true
	t.anyTouched.Store(true)
	t.past.alert()
}

// remakeTouched makes the rows of arrays anew.
func (t *Table) remakeTouched() {
	if !t.anyTouched.Load() {
		return
	}
	t.mu.Lock()
	ids := t.touched
	t.touched = map[int64]bool{}
	t.anyTouched.Store(false)
	t.mu.Unlock()
	for id := range ids {
		t.refresh(id)
	}
}

// remake makes every row anew if users, partitions or parameters changed.
func (t *Table) remake() {
	t.remakeTouched()
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
	t.remake()
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at, ok := t.find(id); ok {
		return t.rows[at]
	}
	return nil
}

// Planned is what the newest plan says about a pending job.
func (t *Table) Planned(id int64) (p control.Planned, ok bool) {
	if t.planner == nil {
		return p, false
	}
	return t.planner.Planned(id)
}

// Len is the number of jobs in the queue, finished ones included.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.rows)
}

// Active counts the jobs of k that are not finished, tasks of an array each,
// and those that have a place. k names a user, an account, a QOS, or a user and
// one of the others.
func (t *Table) Active(k Key) int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.active[k]
}

// Count is the number of jobs in a state; tasks of an array that wait together
// count each.
func (t *Table) Count(state string) int64 {
	t.remakeTouched()
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

// Highest is the highest job id in the queue, or 0.
func (t *Table) Highest() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if n := len(t.rows); n > 0 {
		return t.rows[n-1].ID
	}
	return 0
}

// Select returns the rows that pass q, by ascending id, as of one moment, or
// some of them if ctx is over before all were compared. Comparing holds up no
// change of the table.
func (t *Table) Select(ctx context.Context, q Query) []*Row {
	t.remake()
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

// candidates returns all rows, or those with these ids and what was split off
// them. The slice is the caller's.
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
