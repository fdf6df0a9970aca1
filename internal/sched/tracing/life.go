package tracing

import (
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// attempt is one attempt of a job as its object records it.
type attempt struct {
	number  int32
	queued  time.Time // when the job was queued for it
	end     time.Time
	state   string // in which it ended
	nodes   string
	history []v1alpha1.StateChange
}

// life makes the spans of a job that has ended and whose record is stored: those of its
// attempts after the given one, and with -1 that of the job.
func (t *Tracer) life(at wire.Traceparent, b *v1alpha1.BatchJob, after int32) {
	now := t.Now()
	all := attemptsOf(b, now)
	end := all[len(all)-1].end
	if after < 0 {
		t.exporter.add(jobSpan(at, b, submitted(b), now))
	}
	for i := range all {
		if a := &all[i]; a.number > after {
			t.exporter.add(a.spans(at, b.Spec.JobID)...)
		}
	}
	own := attemptID(at.Trace, b.Spec.JobID, b.Status.Attempt, spanAccounting)
	t.exporter.add(span(spanAccounting, at.Trace, own, spanID(at.Trace, b.Spec.JobID, spanJob), b.Spec.JobID, end, now))
}

// submitted returns when the job was submitted.
func submitted(b *v1alpha1.BatchJob) time.Time {
	if b.Spec.SubmitTime != nil {
		return b.Spec.SubmitTime.Time
	}
	return b.CreationTimestamp.Time
}

// attemptsOf returns the attempts of a job that has ended, oldest first.
func attemptsOf(b *v1alpha1.BatchJob, now time.Time) []attempt {
	st := &b.Status
	out := make([]attempt, 0, len(st.Past)+1)
	queued := submitted(b)
	for i := range st.Past {
		p := &st.Past[i]
		out = append(out, attempt{number: p.Attempt, queued: queued, end: p.End.Time, state: p.State, nodes: p.NodeList,
			history: p.History})
		queued = p.End.Time
	}
	number := st.Attempt
	if n := len(st.Past); n > 0 && st.Past[n-1].Attempt == number {
		number++ // it ended before it was placed again
	}
	last := attempt{number: number, queued: queued, end: now, state: st.State, history: st.History}
	if n := len(st.History); n > 0 {
		last.end = st.History[n-1].At.Time
	}
	return append(out, last)
}

// phases are the spans of an attempt by the states of its history.
var phases = map[string]string{
	v1alpha1.StateConfiguring: spanStarting,
	v1alpha1.StateRunning:     spanRunning,
	v1alpha1.StateSuspended:   spanRunning,
	v1alpha1.StateCompleting:  spanCompleting,
}

// spans returns the spans of the attempt's phases: how long the job waited, started, ran and
// was cleaned up.
func (a *attempt) spans(at wire.Traceparent, jobID int64) []*tracepb.Span {
	job := spanID(at.Trace, jobID, spanJob)
	var out []*tracepb.Span
	phase := func(name string, from, to time.Time) *tracepb.Span {
		s := span(name, at.Trace, attemptID(at.Trace, jobID, a.number, name), job, jobID, from, to)
		s.Attributes = append(s.Attributes, number("berth.job.attempt", int64(a.number)))
		out = append(out, s)
		return s
	}
	changes := a.history
	current := phase(spanPending, a.queued, a.end)
	for _, c := range changes {
		name := phases[c.State]
		if name == "" { // PENDING is where it begins, a final state where it ends
			continue
		}
		if name == current.Name {
			current.Events = append(current.Events, event(c.State, c.At.Time))
			continue
		}
		current.EndTimeUnixNano = uint64(max(c.At.UnixNano(), int64(current.StartTimeUnixNano)))
		current = phase(name, c.At.Time, a.end)
		add(current, "berth.reason", c.Reason)
	}
	for _, s := range out {
		if s.Name == spanRunning {
			add(s, "berth.job.state", a.state, "berth.nodes", a.nodes)
			s.Status = statusOf(a.state)
		}
	}
	return out
}
