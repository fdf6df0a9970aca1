package tracing

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

// Names of the spans of a job. The span of the submitting command has the command's name.
const (
	spanJob        = "job"
	spanAdmission  = "admission"
	spanPending    = "pending"
	spanPlan       = "plan"
	spanStarting   = "starting"
	spanNode       = "node"
	spanRunning    = "running"
	spanStep       = "step"
	spanCompleting = "completing"
	spanAccounting = "accounting"

	// idCommand is the part of the id of the command's span.
	idCommand = "command"
)

// Of returns the job's place in a trace; ok is false if it is not traced.
func Of(b *v1alpha1.BatchJob) (t wire.Traceparent, ok bool) {
	text := b.Annotations[wire.AnnotationTraceparent]
	if text == "" {
		return t, false
	}
	t, ok = wire.ParseTraceparent(text)
	return t, ok && t.Sampled
}

// spanID returns the id of a span of a job: the same in every process. parts distinguish the
// spans of the job.
func spanID(trace [16]byte, jobID int64, parts ...string) [8]byte {
	text := strconv.AppendInt(trace[:len(trace):len(trace)], jobID, 10)
	for _, p := range parts {
		text = append(append(text, 0), p...)
	}
	sum := sha256.Sum256(text)
	id := [8]byte(sum[:])
	if id == ([8]byte{}) {
		id[0] = 1 // an id of zero is invalid
	}
	return id
}

// attemptID returns the id of a span of one attempt.
func attemptID(trace [16]byte, jobID int64, attempt int32, parts ...string) [8]byte {
	return spanID(trace, jobID, append([]string{strconv.Itoa(int(attempt))}, parts...)...)
}

// newTrace returns the id of a new trace.
func newTrace() (t [16]byte) {
	_, _ = rand.Read(t[:]) // it never fails
	return t
}

// samples reports whether the trace is one of the given share of all traces. It depends on
// the part of the id that is random (W3C Trace Context Level 2).
func samples(trace [16]byte, share float64) bool {
	return float64(binary.BigEndian.Uint64(trace[8:])>>11) < share*(1<<53)
}

// maxCommandAge bounds how long before its admission the command of a job began, by its own
// account: submissions are repeated for minutes, and clocks differ.
const maxCommandAge = time.Hour

// commandOf returns which command submits the job, and when it began; ok is false if that is
// unknown.
func commandOf(b *v1alpha1.BatchJob, admitted time.Time) (name string, began time.Time, ok bool) {
	name, text, _ := strings.Cut(b.Annotations[wire.AnnotationTraceCommand], " ")
	micros, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !isCommand(name) {
		return "", time.Time{}, false
	}
	began = time.UnixMicro(micros)
	if began.After(admitted) || admitted.Sub(began) > maxCommandAge {
		began = admitted
	}
	return name, began, true
}

// isCommand reports whether the name can be that of a command; users write it.
func isCommand(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && c != '-' {
			return false
		}
	}
	return name != "" && len(name) <= 20
}
