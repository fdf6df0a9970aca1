package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Measured is a Pool that tells how its planning goes.
type Measured interface {
	// Stats are the planner's numbers since the last Reset.
	Stats() status.PlanStats
	ResetStats()
}

// diag counts what sdiag shows. Safe for concurrent use.
type diag struct {
	now func() time.Time

	mu        sync.Mutex
	since     time.Time
	counting  bool // the stores are filled: what comes now is news
	answering int
	jobs      status.Diag // the counters of jobs alone
	types     map[string]*status.RequestStats
	users     map[string]*status.RequestStats
}

func newDiag(now func() time.Time) *diag {
	d := &diag{now: now}
	d.reset(now())
	return d
}

// reset begins to count anew. The caller holds mu, or is the only one.
func (d *diag) reset(at time.Time) {
	d.since, d.jobs = at, status.Diag{}
	d.types, d.users = map[string]*status.RequestStats{}, map[string]*status.RequestStats{}
}

// turn resets the counters at midnight UTC, as Slurm does; it tells whether it
// did. The caller holds mu.
func (d *diag) turn() bool {
	midnight := d.now().UTC().Truncate(24 * time.Hour)
	if !d.since.Before(midnight) {
		return false
	}
	d.reset(midnight)
	return true
}

// Count begins to count jobs: call it when the stores are filled.
func (a *API) Count() {
	a.diag.mu.Lock()
	defer a.diag.mu.Unlock()
	a.diag.counting = true
}

// jobChanged follows the queue.
func (d *diag) jobChanged(old, now *v1alpha1.BatchJob) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.counting || now == nil || now.Spec.JobID == 0 {
		return
	}
	var before string
	if old != nil {
		before = old.Status.State
	}
	after := now.Status.State
	if (old == nil || old.Spec.JobID == 0) && now.Spec.Origin == nil {
		d.jobs.Submitted++
	}
	if before == after {
		return
	}
	switch after {
	case v1alpha1.StateRunning:
		if before != v1alpha1.StateSuspended {
			d.jobs.Started++
		}
	case v1alpha1.StateCompleted:
		d.jobs.Completed++
	case v1alpha1.StateCancelled:
		d.jobs.Cancelled++
	case v1alpha1.StateFailed, v1alpha1.StateTimeout, v1alpha1.StateNodeFail, v1alpha1.StateOutOfMemory, v1alpha1.StateDeadline, v1alpha1.StateBootFail:
		d.jobs.Failed++
	}
}

// begin notes that a request is being answered; end that it was.
func (d *diag) begin() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answering++
	return d.now()
}

func (d *diag) end(began time.Time, kind string, c *directory.Caller) {
	took := d.now().Sub(began).Microseconds()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answering--
	d.turn()
	var uid int64
	if c.User != nil {
		uid = c.User.Spec.UID
	}
	add(d.types, kind, 0, took)
	add(d.users, c.Name, uid, took)
}

// mostNamed bounds the users that are counted one by one.
const mostNamed = 10000

func add(to map[string]*status.RequestStats, name string, id, took int64) {
	s := to[name]
	if s == nil {
		if len(to) >= mostNamed {
			return
		}
		s = &status.RequestStats{Name: name, ID: id}
		to[name] = s
	}
	s.Count++
	s.Total += took
}

// kindOf names a request for the statistics: "GET_JOBS".
func kindOf(pattern string) string {
	return strings.ToUpper(strings.NewReplacer(" "+wire.QueueRoot+"/", "_", "/{id}/", "_", " /", "_", "/", "_").Replace(pattern))
}

// statistics answers GET statistics; POST resets the numbers, for operators.
func (a *API) statistics(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	m, measured := a.Pool.(Measured)
	if r.Method == http.MethodPost {
		if a.Operations.denied(c, authz.Cluster, authz.Reset) {
			refuse(w, r, http.StatusForbidden, metav1.StatusReasonForbidden, string(errDenied))
			return
		}
		a.diag.mu.Lock()
		a.diag.reset(a.Now())
		a.diag.mu.Unlock()
		if measured {
			m.ResetStats()
		}
	}
	a.diag.mu.Lock()
	turned := a.diag.turn()
	out := a.diag.jobs
	out.Since, out.Answering = a.diag.since.Unix(), a.diag.answering
	out.Types, out.Users = values(a.diag.types), values(a.diag.users)
	a.diag.mu.Unlock()
	if turned && measured {
		m.ResetStats()
	}
	out.Kind, out.APIVersion, out.Time = "Statistics", apiVersion(), a.Now().Unix()
	if measured {
		out.Plan = m.Stats()
	}
	out.Clock = clock()
	if a.Unstored != nil {
		out.Unstored = a.Unstored()
	}
	out.Pending, out.Running = a.Table.Count(v1alpha1.StatePending), a.Table.Count(v1alpha1.StateRunning)
	a.list(w, r, &out)
}

// clock measures how long reading the clock 1,000 times takes, in microseconds.
func clock() int64 {
	began := time.Now()
	for range 1000 {
		_ = time.Now()
	}
	return time.Since(began).Microseconds()
}

func values(m map[string]*status.RequestStats) []status.RequestStats {
	out := make([]status.RequestStats, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, *m[name])
	}
	return out
}
