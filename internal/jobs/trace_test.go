package jobs

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
)

// TestSubmissionContinuesATrace: only a valid TRACEPARENT is sent, with the command and its
// begin; and nothing with a dry run, which is no job.
func TestSubmissionContinuesATrace(t *testing.T) {
	var sent map[string]string
	c := connected(t, func(w http.ResponseWriter, r *http.Request) {
		var got v1alpha1.BatchJob
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
		sent = got.Annotations
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(&got)
	})
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for value, want := range map[string]int{"": 0, "junk": 0, parent[:52]: 0, parent: 2} {
		c.trace = traceOf(&stdio.Process{
			LookupEnv: func(name string) (string, bool) { return value, value != "" && name == wire.EnvTraceparent },
			Now:       func() time.Time { return time.UnixMicro(1234) },
		})
		for _, dry := range []bool{false, true} {
			if _, err := c.Submit(t.Context(), &Submission{Command: "sbatch", DryRun: dry}); err != nil {
				t.Fatal(err)
			}
			if dry && len(sent) != 0 || !dry && len(sent) != want {
				t.Errorf("%q: sent %v", value, sent)
			}
			if !dry && want > 0 && (sent[wire.AnnotationTraceparent] != parent || sent[wire.AnnotationTraceCommand] != "sbatch 1234") {
				t.Errorf("sent %v", sent)
			}
		}
	}
}

// TestNoTraceIsFree: a command outside of traces allocates nothing for them.
func TestNoTraceIsFree(t *testing.T) {
	p := &stdio.Process{LookupEnv: func(string) (string, bool) { return "", false }}
	if n := testing.AllocsPerRun(100, func() {
		x := traceOf(p)
		if x.annotations("sbatch") != nil {
			t.Error("annotations")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
