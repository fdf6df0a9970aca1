package tracing

import (
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// Config is the configuration of a Tracer.
type Config struct {
	// Endpoint is the URL of a collector's OTLP/HTTP receiver, such as
	// http://collector:4318.
	Endpoint string
	// Sample is the share of jobs that are traced, from 0 to 1. A job that is submitted with
	// a traceparent is traced if its flags say so.
	Sample float64
	// Instance names this process; Cluster returns the name of the cluster.
	Instance string
	Cluster  func() string
	// Job returns a job of the queue by its id.
	Job func(id int64) (*v1alpha1.BatchJob, bool)
	// Pods returns the pods of a job, with the times at which they were scheduled and
	// started; nil: no such times are exported.
	Pods func(jobID int64) []*corev1.Pod
	Now  func() time.Time
	Log  *slog.Logger
}

// Tracer makes the spans of jobs. Its methods do not block, and are safe for concurrent use.
// Those of a nil *Tracer do nothing: jobs are not traced.
type Tracer struct {
	Config
	exporter *exporter

	mu sync.Mutex
	// stored has the last attempt of the jobs whose spans were made.
	stored map[types.UID]int32
}

// New returns a Tracer, which exports nothing before Run. The error names an endpoint, or a
// variable of the environment (lookup), that cannot be used.
func New(c Config, lookup func(name string) (string, bool)) (*Tracer, error) {
	t := &Tracer{Config: c, stored: map[types.UID]int32{}}
	var err error
	if t.exporter, err = newExporter(&t.Config, lookup); err != nil {
		return nil, err
	}
	return t, nil
}

// Admit decides whether a job that is admitted is traced, and returns its traceparent as it
// is stored; "": it is not traced. The annotations of b are the client's, and b has its id.
func (t *Tracer) Admit(b *v1alpha1.BatchJob, began time.Time) string {
	if t == nil {
		return ""
	}
	if b.Spec.Origin != nil { // the scheduler's own: split off a job that is traced
		return b.Annotations[wire.AnnotationTraceparent]
	}
	id := b.Spec.JobID
	parent, ok := wire.ParseTraceparent(b.Annotations[wire.AnnotationTraceparent])
	switch {
	case ok && !parent.Sampled:
		return ""
	case ok:
		if name, start, known := commandOf(b, began); known {
			own := parent
			own.Span = spanID(parent.Trace, id, idCommand)
			t.command(name, parent, own, b, start)
			parent = own
		}
	default:
		if parent.Trace = newTrace(); !samples(parent.Trace, t.Sample) {
			return ""
		}
		parent.Span, parent.Sampled = spanID(parent.Trace, id, spanJob), true
	}
	t.admission(parent, b, began)
	return parent.String()
}

// Placed is called when the planner has started a job, with the time at which the cycle began
// and that at which the plan was made. A task of an array belongs to the array here.
func (t *Tracer) Placed(b *v1alpha1.BatchJob, task *int32, cycle, planned time.Time) {
	if t == nil {
		return
	}
	if at, ok := Of(b); ok {
		t.plan(at, b, task, cycle, planned)
	}
}

// Joined is called when the agent of a node of a job reports for the first time. index counts
// the nodes of the allocation.
func (t *Tracer) Joined(b *v1alpha1.BatchJob, index int) {
	if t == nil {
		return
	}
	if at, ok := Of(b); ok {
		t.node(at, b, index)
	}
}

// Steps is called with what the agents report of a job's steps.
func (t *Tracer) Steps(jobID int64, attempt int32, list []wire.StepRecord) {
	if t == nil {
		return
	}
	b, ok := t.Job(jobID)
	if !ok {
		return
	}
	at, ok := Of(b)
	if !ok {
		return
	}
	for i := range list {
		if list[i].End != 0 {
			t.step(at, b, attempt, &list[i])
		}
	}
}

// Stored is called when the record of a job with a final state was stored.
func (t *Tracer) Stored(jobID int64) {
	if t == nil {
		return
	}
	b, ok := t.Job(jobID)
	if !ok || !b.IsFinal() {
		return
	}
	at, ok := Of(b)
	if !ok {
		return
	}
	if from, isNew := t.unsent(b); isNew {
		t.life(at, b, from)
	}
}

// maxStored bounds the memory of what was exported. A job is forgotten long after its
// record was stored; exporting it again does no harm.
const maxStored = 10000

// unsent returns the last attempt of the job whose spans were exported, -1 if there is none.
// isNew is false if there is no later attempt.
func (t *Tracer) unsent(b *v1alpha1.BatchJob) (from int32, isNew bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from, known := t.stored[b.UID]
	if known && from == b.Status.Attempt {
		return 0, false
	}
	if !known {
		from = -1
		if len(t.stored) >= maxStored {
			clear(t.stored)
		}
	}
	t.stored[b.UID] = b.Status.Attempt
	return from, true
}

// Running returns the traceparent by which what runs in the job continues its trace; "": it
// is not traced.
func (t *Tracer) Running(b *v1alpha1.BatchJob) string {
	if t == nil {
		return ""
	}
	at, ok := Of(b)
	if !ok {
		return ""
	}
	at.Span = attemptID(at.Trace, b.Spec.JobID, b.Status.Attempt, spanRunning)
	return at.String()
}
