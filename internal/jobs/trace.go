package jobs

import (
	"strconv"
	"time"

	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
)

// trace is the trace that a command is a part of, and when the command began.
type trace struct {
	parent string // a traceparent; "": the command is in no trace
	began  time.Time
}

// traceOf returns the trace in the command's environment. What is malformed is ignored, as
// W3C Trace Context says.
func traceOf(p *stdio.Process) trace {
	parent := p.Env(wire.EnvTraceparent)
	if parent == "" {
		return trace{}
	}
	if _, ok := wire.ParseTraceparent(parent); !ok {
		return trace{}
	}
	return trace{parent, p.Now()}
}

// annotations returns the annotations by which a job that the command submits continues the
// trace; nil if there is none. The cluster drops them unless it traces jobs.
func (t *trace) annotations(command string) map[string]string {
	if t.parent == "" {
		return nil
	}
	m := map[string]string{wire.AnnotationTraceparent: t.parent}
	if command != "" {
		m[wire.AnnotationTraceCommand] = command + " " + strconv.FormatInt(t.began.UnixMicro(), 10)
	}
	return m
}
