package acct

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Pauses of the writer: how long changes are gathered, and how long it waits
// after a failure (growing to the second).
const (
	gather     = 200 * time.Millisecond
	leastRetry = time.Second
	mostRetry  = 15 * time.Second
)

// batchSize bounds one transaction, writeTime how long it may take: a server
// that has stopped answering is no reason to wait for ever.
const (
	batchSize = 500
	writeTime = 30 * time.Second
)

// ErrDisabled says that no database was named.
var ErrDisabled = errors.New("accounting storage is disabled")

// ErrAway says that the database does not answer; its cause is wrapped.
var ErrAway = errors.New("the accounting database does not answer")

// Config says what a Recorder works with; Released and Log may be nil.
type Config struct {
	// Address of the database, see Open. Empty: nothing is stored, and every
	// job counts as stored.
	Address string
	Cluster *control.Cluster
	// Row gives the row of a job, in the queue or just gone from it.
	Row func(b *v1alpha1.BatchJob) status.Job
	Who People
	// NodeEvent tells the state in which a node takes no jobs, with why and by
	// whom, and its Kubernetes name; NodeNames users' names by those. nil: no
	// events are kept.
	NodeEvent func(n *corev1.Node) status.AcctEvent
	NodeNames func(nodes []*corev1.Node) map[string]string
	// ReadOnly: another process writes; this one only searches.
	ReadOnly bool
	// Released is told of finished jobs whose records have been stored.
	Released func(jobID int64)
	// Retention is how many days records are kept; 0: for ever. ArchiveDir
	// takes them when they go; empty: they are only deleted.
	Retention  int
	ArchiveDir string
	Now        func() time.Time
	Log        *slog.Logger
}

// Recorder writes the records of the cluster's jobs. It marks a job when it
// changes, and makes the record from the job's object when it is written, so
// that a database that is away costs no memory but a mark, and that doing it
// again does no harm. Safe for concurrent use.
type Recorder struct {
	Config
	store atomic.Pointer[Store]
	usage *Usage
	away  atomic.Pointer[error] // why the last attempt failed; nil: it did not

	wake chan struct{}

	mu     sync.Mutex
	dirty  map[types.UID]*v1alpha1.BatchJob // changed since they were written
	stored map[types.UID]int32              // restarts of finished runs that are stored
	steps  map[stepID]StepEntry             // reported and not yet written
	ledger ledger
}

type stepID struct {
	uid      string
	restarts int32
	step     string
}

// NewRecorder makes a Recorder, before the stores of c.Cluster are fed.
func NewRecorder(c Config) *Recorder {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{
		Config: c, wake: make(chan struct{}, 1), usage: newUsage(),
		dirty: map[types.UID]*v1alpha1.BatchJob{}, stored: map[types.UID]int32{}, steps: map[stepID]StepEntry{},
	}
	if c.Address != "" && !c.ReadOnly {
		c.Cluster.Jobs.Subscribe(r.changed)
		c.Cluster.Nodes.Subscribe(r.nodeChanged)
		c.Cluster.Reservations.Subscribe(r.reservationChanged)
	}
	return r
}

func (r *Recorder) changed(_, now *v1alpha1.BatchJob) {
	if now == nil || now.Spec.JobID == 0 {
		return // a job that is gone was stored, or is still marked
	}
	if !control.IsCreated(now) {
		return // it has no UID yet
	}
	r.mu.Lock()
	r.mark(now)
	r.mu.Unlock()
	r.poke()
}

// mark notes that the job is to be written, as the newest version that is known:
// that in the store, or of those that came before the job was removed from it.
// (Versions do not always arrive in their order.) The recorder is locked.
func (r *Recorder) mark(b *v1alpha1.BatchJob) {
	if latest, ok := r.Cluster.Jobs.ByUID(b.UID); ok {
		b = latest
	} else if marked, ok := r.dirty[b.UID]; ok && r.revision(marked) > r.revision(b) {
		return
	}
	r.dirty[b.UID] = b
}

// revision is the version of the object; a higher one is newer.
func (r *Recorder) revision(b *v1alpha1.BatchJob) int64 {
	rev, err := strconv.ParseInt(b.ResourceVersion, 10, 64)
	if err != nil {
		return r.Now().UnixMicro()
	}
	return rev
}

func (r *Recorder) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Stored tells whether a job that is over has its record in the database, so
// that its object may go.
func (r *Recorder) Stored(b *v1alpha1.BatchJob) bool {
	if r.Address == "" {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	restarts, ok := r.stored[b.UID]
	return ok && restarts == b.Status.Restarts
}

// Highest is the highest job id in the database, 0 if there is none. It may be
// called before Run.
func (r *Recorder) Highest(ctx context.Context) (int64, error) {
	if r.Address == "" {
		return 0, nil
	}
	s, err := Open(ctx, r.Address)
	if err != nil {
		return 0, err
	}
	defer s.Close() //nolint:errcheck // it was read only
	var id sql.NullInt64
	if err := s.read.QueryRowContext(ctx, `SELECT max(job_id) FROM jobs`).Scan(&id); err != nil {
		return 0, fmt.Errorf("accounting database: %w", err)
	}
	return id.Int64, nil
}

// Knows tells whether the database has a record of the job.
func (r *Recorder) Knows(ctx context.Context, jobID int64) (bool, error) {
	s, err := r.database()
	if err != nil {
		return false, err
	}
	var n int
	if err := s.read.QueryRowContext(ctx, s.q(`SELECT count(*) FROM jobs WHERE job_id = ?`), jobID).Scan(&n); err != nil {
		return false, fmt.Errorf("accounting database: %w", err)
	}
	return n > 0, nil
}

// Unstored is how many changes wait to be written.
func (r *Recorder) Unstored() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.dirty) + len(r.steps)
}

// Away tells why the database could not be written to; nil: it could.
func (r *Recorder) Away() error {
	if err := r.away.Load(); err != nil {
		return *err
	}
	return nil
}

// Steps takes what an agent says about steps of a job's attempt. Steps of an
// attempt that nobody knows are dropped.
func (r *Recorder) Steps(jobID int64, attempt int32, list []wire.StepRecord) {
	if r.Address == "" {
		return
	}
	b, ok := r.Cluster.Job(jobID)
	if !ok {
		return
	}
	restarts, ok := runOf(b, attempt)
	if !ok {
		return
	}
	r.mu.Lock()
	for i := range list {
		s := Step(&list[i], r.Who)
		r.steps[stepID{string(b.UID), restarts, s.Step}] = StepEntry{UID: string(b.UID), Restarts: restarts, Step: s}
	}
	r.mu.Unlock()
	r.poke()
}

// runOf is the number of the run that an attempt was.
func runOf(b *v1alpha1.BatchJob, attempt int32) (int32, bool) {
	if b.Status.Attempt == attempt {
		return b.Status.Restarts, true
	}
	for _, p := range b.Status.Past {
		if p.Attempt == attempt {
			return p.Restarts, true
		}
	}
	return 0, false
}

// Run opens the database and writes until ctx ends; what is marked then is
// written as far as a moment allows, the rest after the next start.
func (r *Recorder) Run(ctx context.Context) {
	if r.Address == "" {
		return
	}
	defer r.close()
	pause := leastRetry
	housekeeping := time.NewTicker(time.Hour)
	defer housekeeping.Stop()
	for ctx.Err() == nil {
		if err := r.flush(ctx); err != nil && ctx.Err() == nil {
			r.complain(err)
			if lost(err) {
				r.again()
			}
			wait(ctx, pause)
			pause = min(2*pause, mostRetry)
			continue
		}
		pause = leastRetry
		if r.away.Swap(nil) != nil {
			r.Log.Info("the accounting database answers again")
		}
		select {
		case <-r.wake:
			wait(ctx, gather)
		case <-housekeeping.C:
			if !r.ReadOnly {
				r.purge(ctx)
				r.usage.prune(r.Now())
			}
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := r.flush(last); err != nil {
		r.Log.Warn("accounting is behind; it catches up after the next start", "error", err)
	}
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (r *Recorder) complain(err error) {
	if r.away.Swap(&err) == nil {
		r.Log.Error("accounting is behind: jobs go on, and finished ones stay until their records are stored", "error", err)
	}
}

// again begins with another database: what the queue knows is to be in it.
func (r *Recorder) again() {
	r.close()
	if r.ReadOnly {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.stored)
	for _, b := range r.Cluster.Jobs.List() {
		if b.Spec.JobID != 0 && control.IsCreated(b) {
			r.dirty[b.UID] = b
		}
	}
}

func (r *Recorder) close() {
	if s := r.store.Swap(nil); s != nil {
		_ = s.Close()
	}
}

// ClusterName is the cluster's name in records.
func ClusterName(p v1alpha1.ClusterSpec) string {
	if p.ClusterName != "" {
		return p.ClusterName
	}
	return "berth"
}

// database is the open database, or why there is none.
func (r *Recorder) database() (*Store, error) {
	if s := r.store.Load(); s != nil {
		err := s.Moved()
		if err == nil {
			return s, nil
		}
		r.poke()
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	if r.Address == "" {
		return nil, ErrDisabled
	}
	if err := r.away.Load(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, *err)
	}
	return nil, ErrAway
}
