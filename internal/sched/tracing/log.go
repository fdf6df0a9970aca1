package tracing

import (
	"context"
	"log/slog"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Attributes of log lines about a job.
const (
	LogJob   = "job"
	LogTrace = "trace"
)

// LogHandler returns a handler that adds the id of the trace to lines with the id of a traced
// job, and passes them on to h. job returns a job of the queue.
func LogHandler(h slog.Handler, job func(id int64) (*v1alpha1.BatchJob, bool)) slog.Handler {
	return &logHandler{h, job}
}

type logHandler struct {
	slog.Handler
	job func(id int64) (*v1alpha1.BatchJob, bool)
}

// Handle adds the trace, and passes the line on.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	var trace string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == LogJob && a.Value.Kind() == slog.KindInt64 {
			if b, ok := h.job(a.Value.Int64()); ok {
				if t, ok := Of(b); ok {
					trace = t.TraceID()
				}
			}
			return false
		}
		return true
	})
	if trace != "" {
		r = r.Clone()
		r.AddAttrs(slog.String(LogTrace, trace))
	}
	return h.Handler.Handle(ctx, r)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.Handler.WithAttrs(attrs), h.job}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.Handler.WithGroup(name), h.job}
}
