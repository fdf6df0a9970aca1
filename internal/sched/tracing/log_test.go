package tracing

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
)

func TestLogHandler(t *testing.T) {
	traced, other := aJob(), aJob()
	traced.Annotations = map[string]string{wire.AnnotationTraceparent: parent}
	var out strings.Builder
	log := slog.New(LogHandler(slog.NewTextHandler(&out, nil), func(id int64) (*v1alpha1.BatchJob, bool) {
		switch id {
		case 7:
			return traced, true
		case 8:
			return other, true
		}
		return nil, false
	})).With("part", "keeper")
	for text, want := range map[string]bool{"7": true, "8": false, "9": false} {
		out.Reset()
		id := int64(text[0] - '0')
		log.Warn("job is retried", "error", "x", LogJob, id)
		if got := strings.Contains(out.String(), "trace="+parent[3:35]); got != want || !strings.Contains(out.String(), "job="+text) {
			t.Errorf("job %d: %s", id, out.String())
		}
	}
	out.Reset()
	log.Info("leading", LogJob, "x")
	if strings.Contains(out.String(), "trace=") {
		t.Error(out.String())
	}
}
