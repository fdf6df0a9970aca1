package tracing

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
)

// Kinds of spans.
const (
	internal = tracepb.Span_SPAN_KIND_INTERNAL
	client   = tracepb.Span_SPAN_KIND_CLIENT
	server   = tracepb.Span_SPAN_KIND_SERVER
)

// span returns a span of a job with the given parent, whose id is zero if it has none.
func span(name string, trace [16]byte, id, parent [8]byte, jobID int64, from, to time.Time) *tracepb.Span {
	if to.Before(from) {
		to = from // clocks of several machines
	}
	s := &tracepb.Span{
		TraceId: trace[:], SpanId: id[:], Name: name, Kind: internal, Flags: 1,
		StartTimeUnixNano: uint64(from.UnixNano()), EndTimeUnixNano: uint64(to.UnixNano()),
		Attributes: []*commonpb.KeyValue{number("berth.job.id", jobID)},
	}
	if parent != ([8]byte{}) {
		s.ParentSpanId = parent[:]
	}
	return s
}

func text(key, value string) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{
		Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
}

func number(key string, value int64) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: value}}}
}

// add adds the attributes that have a value.
func add(s *tracepb.Span, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			s.Attributes = append(s.Attributes, text(pairs[i], pairs[i+1]))
		}
	}
}

// command makes the span of the command that submits a job.
func (t *Tracer) command(name string, parent, own wire.Traceparent, b *v1alpha1.BatchJob, began time.Time) {
	s := span(name, own.Trace, own.Span, parent.Span, b.Spec.JobID, began, t.Now())
	s.Kind = client
	t.exporter.add(s)
}

// admission makes the span of the admission of a job.
func (t *Tracer) admission(at wire.Traceparent, b *v1alpha1.BatchJob, began time.Time) {
	id := b.Spec.JobID
	s := span(spanAdmission, at.Trace, spanID(at.Trace, id, spanAdmission), at.Span, id, began, t.Now())
	s.Kind = server
	add(s, "berth.job.user", b.Spec.User)
	t.exporter.add(s)
}

// plan makes the span of the cycle that started the job: from its begin until the placement
// was written.
func (t *Tracer) plan(at wire.Traceparent, b *v1alpha1.BatchJob, task *int32, cycle, planned time.Time) {
	id, attempt := b.Spec.JobID, b.Status.Attempt+1
	part := spanPlan
	if task != nil {
		part += " " + strconv.Itoa(int(*task))
	}
	own := attemptID(at.Trace, id, attempt, part)
	s := span(spanPlan, at.Trace, own, spanID(at.Trace, id, spanJob), id, cycle, t.Now())
	if task != nil {
		s.Attributes = append(s.Attributes, number("berth.array.task", int64(*task)))
	}
	s.Events = []*tracepb.Span_Event{event("planned", planned)}
	t.exporter.add(s)
}

func event(name string, at time.Time) *tracepb.Span_Event {
	return &tracepb.Span_Event{Name: name, TimeUnixNano: uint64(at.UnixNano())}
}

// node makes the span of the start of a job's pod: from the placement until its agent has
// reported.
func (t *Tracer) node(at wire.Traceparent, b *v1alpha1.BatchJob, index int) {
	id, attempt, now := b.Spec.JobID, b.Status.Attempt, t.Now()
	from := now
	if b.Status.StartTime != nil {
		from = b.Status.StartTime.Time
	}
	parent := attemptID(at.Trace, id, attempt, spanStarting)
	own := attemptID(at.Trace, id, attempt, spanNode, strconv.Itoa(index))
	s := span(spanNode, at.Trace, own, parent, id, from, now)
	if a := b.Status.Allocation; a != nil && index < len(a.Nodes) {
		add(s, "berth.node", a.Nodes[index].Name)
		s.Events = t.podEvents(b, a.Nodes[index].ObjectName(), from, now)
	}
	t.exporter.add(s)
}

// podEvents returns what Kubernetes recorded about the start of the job's pod on a node. It
// records full seconds, which are moved into the span.
func (t *Tracer) podEvents(b *v1alpha1.BatchJob, node string, from, to time.Time) []*tracepb.Span_Event {
	if t.Pods == nil {
		return nil
	}
	var out []*tracepb.Span_Event
	note := func(name string, at time.Time) {
		if at.Before(from) {
			at = from
		}
		if at.After(to) {
			at = to
		}
		e := event(name, at)
		out = append(out, e)
	}
	for _, p := range t.Pods(b.Spec.JobID) {
		if p.Spec.NodeName != node || p.Labels[wire.LabelAttempt] != strconv.Itoa(int(b.Status.Attempt)) {
			continue
		}
		note("pod created", p.CreationTimestamp.Time)
		for i := range p.Status.Conditions {
			c := &p.Status.Conditions[i]
			if name := podConditions[c.Type]; name != "" && c.Status == corev1.ConditionTrue {
				note(name, c.LastTransitionTime.Time)
			}
		}
	}
	return out
}

// podConditions are the conditions of pods that are exported, and their names there.
var podConditions = map[corev1.PodConditionType]string{
	corev1.PodScheduled:              "pod bound",
	corev1.PodReadyToStartContainers: "pod sandbox ready",
	corev1.PodInitialized:            "pod initialized",
}

// stepNames are the names of steps that srun did not create.
var stepNames = map[int32]string{
	wire.StepBatch: "batch", wire.StepExtern: "extern", wire.StepInteractive: "interactive",
}

// step makes the span of a step that has ended. What it says comes from the job's agents.
func (t *Tracer) step(at wire.Traceparent, b *v1alpha1.BatchJob, attempt int32, r *wire.StepRecord) {
	id := b.Spec.JobID
	name := stepNames[r.ID]
	if name == "" {
		name = strconv.Itoa(int(r.ID))
	}
	own := attemptID(at.Trace, id, attempt, spanStep, name)
	parent := attemptID(at.Trace, id, attempt, spanRunning)
	s := span(spanStep, at.Trace, own, parent, id, time.Unix(0, r.Start), time.Unix(0, r.End))
	add(s, "berth.step.id", name, "berth.step.name", r.Name, "berth.step.state", r.State)
	s.Attributes = append(s.Attributes, number("berth.step.tasks", int64(r.Tasks)),
		number("berth.step.exit_code", int64(r.Status)), number("berth.step.signal", int64(r.Signal)))
	s.Status = statusOf(r.State)
	t.exporter.add(s)
}

// statusOf returns the status of a span that ends in a job's or step's state.
func statusOf(state string) *tracepb.Status {
	switch state {
	case v1alpha1.StateCompleted, v1alpha1.StateCancelled, status.StateRequeued, "":
		return nil
	}
	return &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: state}
}

// parentOf returns the id of the parent of the job's own span; zero: the trace begins with
// the job.
func parentOf(at wire.Traceparent, b *v1alpha1.BatchJob, own [8]byte) [8]byte {
	switch {
	case b.Spec.Origin != nil:
		return spanID(at.Trace, b.Spec.Origin.JobID, spanJob)
	case at.Span == own:
		return [8]byte{}
	}
	return at.Span
}

// jobSpan returns the span of the whole life of a job.
func jobSpan(at wire.Traceparent, b *v1alpha1.BatchJob, from, to time.Time) *tracepb.Span {
	own := spanID(at.Trace, b.Spec.JobID, spanJob)
	s := span(spanJob, at.Trace, own, parentOf(at, b, own), b.Spec.JobID, from, to)
	st := &b.Status
	partition := st.Partition
	if partition == "" {
		partition = b.Spec.Partition
	}
	add(s, "berth.job.name", b.Spec.Job.Name, "berth.job.user", b.Spec.User, "berth.job.account", b.Spec.Job.Account,
		"berth.job.partition", partition, "berth.job.qos", b.Spec.Job.QOS,
		"berth.job.state", st.State, "berth.job.reason", st.Reason)
	if id, task, ok := array.Task(b); ok {
		s.Attributes = append(s.Attributes, number("berth.array.job_id", id),
			number("berth.array.task", int64(task.Index)))
	}
	if x := st.ExitCode; x != nil {
		s.Attributes = append(s.Attributes, number("berth.job.exit_code", int64(x.Status)),
			number("berth.job.signal", int64(x.Signal)))
	}
	if c := b.Spec.Cancel; c != nil && c.At != nil {
		e := event("cancelled", c.At.Time)
		e.Attributes = []*commonpb.KeyValue{text("berth.cancelled_by", c.By)}
		s.Events = append(s.Events, e)
	}
	s.Status = statusOf(st.State)
	return s
}
