package acct

import (
	"context"
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
	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/acct/usage"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// batchDelay is how long changes are collected before they are written. After a
// failure the writer waits for minRetry, and twice as long each time up to
// maxRetry.
const (
	batchDelay = 200 * time.Millisecond
	minRetry   = time.Second
	maxRetry   = 15 * time.Second
)

// batchSize bounds the records of one transaction, and writeTimeout its time: a
// database that has stopped answering must not block the writer for ever.
const (
	batchSize    = 500
	writeTimeout = 30 * time.Second
)

// shutdownTimeout bounds the last write.
const shutdownTimeout = 2 * time.Second

// ErrDisabled is returned if no database is configured.
var ErrDisabled = errors.New("accounting storage is disabled")

// ErrUnavailable is returned while the database does not answer. It wraps the
// cause.
var ErrUnavailable = errors.New("the accounting database does not answer")

// Config is the configuration of a Recorder. Released and Log may be nil.
type Config struct {
	// Address is that of the database, see store.Open. Without one nothing is
	// stored, and every job counts as stored.
	Address string
	Cluster *control.Cluster
	// Row returns the row of a job, in the queue or just removed from it.
	Row   func(b *v1alpha1.BatchJob) status.Job
	Users record.Users
	// Billing returns what an earlier attempt of a job is billed; nil: its CPUs.
	Billing record.Billing
	// NodeEvent returns the state in which a node is unavailable for jobs, with
	// the reason and the user, and its Kubernetes name. NodeNames returns the
	// nodes' short names by those. Without NodeEvent no events are stored.
	NodeEvent func(n *corev1.Node) status.AcctEvent
	NodeNames func(nodes []*corev1.Node) map[string]string
	// ReadOnly is set where another process writes: this one only queries.
	ReadOnly bool
	// Released is called for finished jobs whose records have been stored.
	Released func(jobID int64)
	// Retention is how many days records are kept; 0: for ever. They are written
	// to ArchiveDir before they are deleted, unless it is empty.
	Retention  int
	ArchiveDir string
	Now        func() time.Time
	Log        *slog.Logger
}

// Recorder writes the records of the cluster's jobs. It marks a job that changes,
// and makes the record from the job's object when it writes: a mark is all that
// a job costs while the database is unavailable, and writing a record twice has
// no effect. Safe for concurrent use.
type Recorder struct {
	Config
	store     atomic.Pointer[store.Store]
	usage     *usage.Usage
	lastError atomic.Pointer[error] // of the last attempt to write; nil: it succeeded

	wake chan struct{}

	mu      sync.Mutex
	dirty   map[types.UID]*v1alpha1.BatchJob // changed since they were written
	stored  map[types.UID]int32              // restarts of finished runs that are stored
	steps   map[stepKey]status.StepRecord    // reported and not yet written
	writing map[stepKey]status.StepRecord    // being written
	ledger  ledger
}

type stepKey struct {
	run  record.RunKey
	step string
}

// NewRecorder returns a Recorder. It must be called before the stores of
// c.Cluster are filled.
func NewRecorder(c Config) *Recorder {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	r := &Recorder{
		Config: c,
		wake:   make(chan struct{}, 1),
		usage:  usage.New(),
		dirty:  map[types.UID]*v1alpha1.BatchJob{},
		stored: map[types.UID]int32{},
		steps:  map[stepKey]status.StepRecord{}, writing: map[stepKey]status.StepRecord{},
	}
	if c.Address != "" && !c.ReadOnly {
		c.Cluster.Jobs.Subscribe(r.jobChanged)
		c.Cluster.Nodes.Subscribe(r.nodeChanged)
		c.Cluster.Reservations.Subscribe(r.reservationChanged)
	}
	return r
}

func (r *Recorder) jobChanged(_, now *v1alpha1.BatchJob) {
	if now == nil || now.Spec.JobID == 0 {
		return // a deleted job was stored, or is still marked
	}
	if !control.IsCreated(now) {
		return // it has no UID yet
	}
	r.mu.Lock()
	r.mark(now)
	r.mu.Unlock()
	r.notify()
}

// mark marks the job to be written in the newest known version: that of the
// store, or of those seen before the job was removed from it. Versions do not
// always arrive in order. The recorder is locked.
func (r *Recorder) mark(b *v1alpha1.BatchJob) {
	if latest, ok := r.Cluster.Jobs.ByUID(b.UID); ok {
		b = latest
	} else if marked, ok := r.dirty[b.UID]; ok && r.revision(marked) > r.revision(b) {
		return
	}
	r.dirty[b.UID] = b
}

// revision returns the version of the object; a higher one is newer.
func (r *Recorder) revision(b *v1alpha1.BatchJob) int64 {
	rev, err := strconv.ParseInt(b.ResourceVersion, 10, 64)
	if err != nil {
		return r.Now().UnixMicro()
	}
	return rev
}

// notify wakes the writer.
func (r *Recorder) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Stored reports whether the record of a finished job is in the database, so
// that its object may be deleted.
func (r *Recorder) Stored(b *v1alpha1.BatchJob) bool {
	if r.Address == "" {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	restarts, ok := r.stored[b.UID]
	return ok && restarts == b.Status.Restarts
}

// HighestJobID returns the highest job id in the database, or 0 if it has none.
// It may be called before Run.
func (r *Recorder) HighestJobID(ctx context.Context) (int64, error) {
	if r.Address == "" {
		return 0, nil
	}
	s, err := store.Open(ctx, r.Address)
	if err != nil {
		return 0, err
	}
	defer s.Close() //nolint:errcheck // it was only read
	return s.HighestJobID(ctx)
}

// HasJob reports whether the database has a record of the job.
func (r *Recorder) HasJob(ctx context.Context, jobID int64) (bool, error) {
	s, err := r.database()
	if err != nil {
		return false, err
	}
	return s.HasJob(ctx, jobID)
}

// Backlog returns the number of jobs and steps that are not yet written.
func (r *Recorder) Backlog() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.dirty) + len(r.steps)
}

// Err returns why the last attempt to write failed, or nil.
func (r *Recorder) Err() error {
	if err := r.lastError.Load(); err != nil {
		return *err
	}
	return nil
}

// RecordSteps records what an agent reports of the steps of a job's attempt.
// Steps of an unknown attempt are dropped.
func (r *Recorder) RecordSteps(jobID int64, attempt int32, list []wire.StepRecord) {
	if r.Address == "" {
		return
	}
	b, ok := r.Cluster.Job(jobID)
	if !ok {
		return
	}
	run, ok := runOf(b, attempt)
	if !ok {
		return
	}
	r.mu.Lock()
	for i := range list {
		s := record.OfStep(&list[i], r.Users)
		r.steps[stepKey{run, s.Step}] = s
	}
	r.mu.Unlock()
	r.notify()
}

// runOf returns the key of the run that had the attempt.
func runOf(b *v1alpha1.BatchJob, attempt int32) (run record.RunKey, ok bool) {
	run.UID = string(b.UID)
	if b.Status.Attempt == attempt {
		run.Restarts = b.Status.Restarts
		return run, true
	}
	for _, p := range b.Status.Past {
		if p.Attempt == attempt {
			run.Restarts = p.Restarts
			return run, true
		}
	}
	return run, false
}

// Run opens the database and writes until ctx ends. It then writes what it can
// in shutdownTimeout; the rest is written after the next start.
func (r *Recorder) Run(ctx context.Context) {
	if r.Address == "" {
		return
	}
	defer r.close()
	retry := minRetry
	housekeeping := time.NewTicker(time.Hour)
	defer housekeeping.Stop()
	for ctx.Err() == nil {
		if err := r.flush(ctx); err != nil && ctx.Err() == nil {
			r.failed(err)
			wait(ctx, retry)
			retry = min(2*retry, maxRetry)
			continue
		}
		retry = minRetry
		if r.lastError.Swap(nil) != nil {
			r.Log.Info("the accounting database answers again")
		}
		select {
		case <-r.wake:
			wait(ctx, batchDelay)
		case <-housekeeping.C:
			if !r.ReadOnly {
				r.purge(ctx)
				r.usage.Prune(r.Now())
			}
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
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

// failed logs the first of several failures, and closes a database that has to
// be opened again.
func (r *Recorder) failed(err error) {
	if r.lastError.Swap(&err) == nil {
		r.Log.Error(
			"accounting is behind: jobs continue, and finished ones stay until their records are stored",
			"error",
			err,
		)
	}
	if store.NeedsReopen(err) {
		r.close()
		r.markAll()
	}
}

// markAll marks every job: the database that is opened next may be another one.
func (r *Recorder) markAll() {
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

// ClusterName returns the cluster's name in records.
func ClusterName(p v1alpha1.ClusterSpec) string {
	if p.ClusterName != "" {
		return p.ClusterName
	}
	return "berth"
}

// Usage returns what finished runs have used, for fair share.
func (r *Recorder) Usage() *usage.Usage { return r.usage }

// database returns the open database, or why there is none.
func (r *Recorder) database() (*store.Store, error) {
	if s := r.store.Load(); s != nil {
		err := s.CheckMoved()
		if err == nil {
			return s, nil
		}
		r.notify()
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if r.Address == "" {
		return nil, ErrDisabled
	}
	if err := r.lastError.Load(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, *err)
	}
	return nil, ErrUnavailable
}
