package tracing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

func at(second int) time.Time { return time.Unix(int64(second), 0) }

func micro(second int) metav1.MicroTime { return metav1.NewMicroTime(at(second)) }

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// aJob is a job that ran twice: its node was lost once.
func aJob() *v1alpha1.BatchJob {
	submit, start := micro(10), micro(50)
	change := func(state string, second int) v1alpha1.StateChange {
		return v1alpha1.StateChange{State: state, At: micro(second)}
	}
	return &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "u"},
		Spec:       v1alpha1.BatchJobSpec{JobID: 7, User: "anna", Partition: "main", SubmitTime: &submit, Job: job.Job{Name: "ring"}},
		Status: v1alpha1.BatchJobStatus{
			State: "FAILED", Attempt: 2, StartTime: &start, ExitCode: &v1alpha1.ExitCode{Status: 3},
			Past: []v1alpha1.PastAttempt{{Attempt: 1, State: "NODE_FAIL", NodeList: "n1", Start: micro(20), End: micro(40),
				History: []v1alpha1.StateChange{change("CONFIGURING", 20), change("RUNNING", 25), change("COMPLETING", 38)}}},
			History: []v1alpha1.StateChange{change("PENDING", 40), change("RUNNING", 50), change("SUSPENDED", 55),
				change("RUNNING", 60), change("COMPLETING", 70), change("FAILED", 75)},
		},
	}
}

// TestLife: the spans of a job are one tree with the times of its object, and a second
// leader makes the same ones.
func TestLife(t *testing.T) {
	b := aJob()
	b.Annotations = map[string]string{wire.AnnotationTraceparent: parent, wire.AnnotationTraceCommand: "sbatch 8500000"}
	r := newReceiver(t)
	x, stop := run(t, r.config(b), noVariables)
	stored := x.Admit(b, at(9))
	b.Annotations = map[string]string{wire.AnnotationTraceparent: stored}
	placed := b.DeepCopy()
	placed.Status.Attempt = 1
	x.Placed(placed, nil, at(48), at(49))
	x.Joined(b, 0)
	x.Steps(7, 2, []wire.StepRecord{{ID: 0, Name: "hostname", State: "COMPLETED", Start: at(51).UnixNano(), End: at(52).UnixNano()},
		{ID: 1, Name: "sleep", State: "RUNNING", Start: at(51).UnixNano()}})
	x.Stored(7)
	x.Stored(7) // a later write of the same record
	stop()
	want := strings.Fields("accounting admission completing completing job node pending pending plan running running sbatch starting step")
	if got := r.names(); !slices.Equal(got, want) {
		t.Fatalf("spans %v\nwant  %v", got, want)
	}
	tree := treeOf(t, r.spans)
	if tree != wantTree {
		t.Errorf("tree:\n%s\nwant:\n%s", tree, wantTree)
	}
	if got := x.Running(b); !strings.HasPrefix(got, parent[:36]) || got == stored || !strings.Contains(idsOf(r.spans, "running"), got[36:52]) {
		t.Errorf("what runs in the job is told %s", got)
	}

	again := newReceiver(t)
	y, stop := run(t, again.config(b), noVariables)
	y.Stored(7)
	stop()
	for _, s := range again.spans {
		if !strings.Contains(idsOf(r.spans, s.Name), fmt.Sprintf("%x", s.SpanId)) {
			t.Errorf("%s has another id in the next leader", s.Name)
		}
	}
}

// wantTree has each span of TestLife with its times and, in brackets, its error.
const wantTree = `sbatch 8-100
  admission 9-100
  job 10-100 [FAILED]
    accounting 75-100
    completing 38-40
    completing 70-75
    pending 10-20
    pending 40-50
    plan 48-100
    running 25-38 [NODE_FAIL]
    running 50-70 [FAILED]
      step 51-52
    starting 20-25
lost node 50-100
`

func idsOf(spans []*tracepb.Span, name string) string {
	var b strings.Builder
	for _, s := range spans {
		if s.Name == name {
			fmt.Fprintf(&b, "%x ", s.SpanId)
		}
	}
	return b.String()
}

// treeOf draws the spans below the parent of the trace, each below its parent.
func treeOf(t *testing.T, spans []*tracepb.Span) string {
	t.Helper()
	known := map[string]bool{}
	for _, s := range spans {
		if known[string(s.SpanId)] {
			t.Errorf("the id of %s is not unique", s.Name)
		}
		known[string(s.SpanId)] = true
	}
	var b strings.Builder
	var draw func(parent, indent string)
	line := func(s *tracepb.Span) string {
		text := fmt.Sprintf("%s %d-%d", s.Name, s.StartTimeUnixNano/1e9, s.EndTimeUnixNano/1e9)
		if s.Status != nil {
			text += " [" + s.Status.Message + "]"
		}
		return text
	}
	draw = func(parent, indent string) {
		var children []*tracepb.Span
		for _, s := range spans {
			if string(s.ParentSpanId) == parent {
				children = append(children, s)
			}
		}
		slices.SortFunc(children, func(a, b *tracepb.Span) int { return strings.Compare(line(a), line(b)) })
		for _, s := range children {
			b.WriteString(indent + line(s) + "\n")
			draw(string(s.SpanId), indent+"  ")
		}
	}
	draw("\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", "")
	for _, s := range spans {
		if !known[string(s.ParentSpanId)] && string(s.ParentSpanId) != "\x00\xf0\x67\xaa\x0b\xa9\x02\xb7" {
			b.WriteString("lost " + line(s) + "\n")
		}
	}
	return b.String()
}

// TestAdmit: whether a job is traced is decided by its traceparent, else by chance. What
// clients write does not go beyond that.
func TestAdmit(t *testing.T) {
	submit := func(sample float64, annotations map[string]string) (string, []*tracepb.Span) {
		b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: v1alpha1.BatchJobSpec{JobID: 7}}
		r := newReceiver(t)
		c := r.config()
		c.Sample = sample
		x, stop := run(t, c, noVariables)
		stored := x.Admit(b, at(90))
		stop()
		return stored, r.spans
	}
	given := func(traceparent, command string) map[string]string {
		return map[string]string{wire.AnnotationTraceparent: traceparent, wire.AnnotationTraceCommand: command}
	}
	if stored, spans := submit(0, nil); stored != "" || len(spans) != 0 {
		t.Errorf("not sampled: %q, %v", stored, spans)
	}
	stored, spans := submit(1, nil)
	if p, ok := wire.ParseTraceparent(stored); !ok || !p.Sampled || p.Span != spanID(p.Trace, 7, spanJob) || len(spans) != 1 {
		t.Errorf("sampled: %q, %v", stored, spans)
	}
	if stored, spans := submit(1, given(parent[:53]+"00", "sbatch 1")); stored != "" || len(spans) != 0 {
		t.Errorf("a parent that is not sampled: %q, %v", stored, spans)
	}
	if stored, _ := submit(1, given("junk", "")); stored == "" || strings.Contains(stored, "junk") {
		t.Errorf("junk: %q", stored)
	}
	for command, want := range map[string]uint64{
		"sbatch 89000000": 89, "sbatch 95000000": 90, // the future
		"sbatch -9000000000000": 90, "sbatch 9223372036854775807": 90,
		"": 0, "sbatch": 0, "sbatch x": 0, "\x1b[31m 89000000": 0, strings.Repeat("a", 21) + " 89000000": 0, " 89000000": 0,
	} {
		stored, spans := submit(0, given(parent, command))
		if stored[:36] != parent[:36] {
			t.Errorf("%q: another trace: %q", command, stored)
		}
		var began uint64
		for _, s := range spans {
			if s.Name == "sbatch" {
				began = s.StartTimeUnixNano / 1e9
			}
		}
		if began != want || (want == 0) != (len(spans) == 1) || (want == 0) != (stored == parent) {
			t.Errorf("%q: began at %d, want %d; %q, %d spans", command, began, want, stored, len(spans))
		}
	}
}

// TestSplitOff: tasks and components belong to the job that they were split off.
func TestSplitOff(t *testing.T) {
	b := aJob()
	b.Spec.JobID, b.Spec.Origin = 9, &v1alpha1.Origin{JobID: 7}
	b.Annotations = map[string]string{wire.AnnotationTraceparent: parent}
	r := newReceiver(t)
	x, stop := run(t, r.config(b), noVariables)
	if got := x.Admit(b, at(9)); got != parent {
		t.Errorf("the task has %q", got)
	}
	x.Stored(9)
	stop()
	p, _ := wire.ParseTraceparent(parent)
	own := spanID(p.Trace, 7, spanJob)
	for _, s := range r.spans {
		if s.Name == spanJob && [8]byte(s.ParentSpanId) != own {
			t.Errorf("the parent of the task is %x", s.ParentSpanId)
		}
	}
}

// TestUntraced: where nothing is traced, nothing is done and nothing is allocated.
func TestUntraced(t *testing.T) {
	var off *Tracer
	b := aJob()
	steps := []wire.StepRecord{{End: 1}}
	if n := testing.AllocsPerRun(100, func() {
		off.Placed(b, nil, at(1), at(2))
		off.Joined(b, 0)
		off.Steps(7, 1, steps)
		off.Stored(7)
		if off.Admit(b, at(1)) != "" || off.Running(b) != "" {
			t.Error("traced")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	r := newReceiver(t)
	x, stop := run(t, r.config(b), noVariables) // other jobs are traced
	x.Placed(b, nil, at(1), at(2))
	x.Joined(b, 0)
	x.Steps(7, 1, steps)
	x.Stored(7)
	stop()
	if r.requests != 0 {
		t.Errorf("spans %v", r.names())
	}
}

func TestShareOfTraces(t *testing.T) {
	n := 0
	for range 10000 {
		if samples(newTrace(), 0.25) {
			n++
		}
	}
	if n < 2200 || n > 2800 { // six standard deviations
		t.Errorf("%d of 10000", n)
	}
}

// TestEndedBeforeItRanAgain: the second attempt of a job that was cancelled while it waited
// for it is not taken for the first one.
func TestEndedBeforeItRanAgain(t *testing.T) {
	b := aJob()
	b.Status.Attempt, b.Status.State = 1, "CANCELLED"
	b.Status.History = []v1alpha1.StateChange{{State: "PENDING", At: micro(40)}, {State: "CANCELLED", At: micro(45)}}
	b.Annotations = map[string]string{wire.AnnotationTraceparent: parent}
	r := newReceiver(t)
	x, stop := run(t, r.config(b), noVariables)
	x.Stored(7)
	stop()
	if got := r.names(); !slices.Equal(got, strings.Fields("accounting completing job pending pending running starting")) {
		t.Errorf("spans %v", got)
	}
	treeOf(t, r.spans)
}
