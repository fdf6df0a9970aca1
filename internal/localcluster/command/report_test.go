package command

import (
	"bytes"
	"testing"
)

// All lines of a report are shown unchanged, and so is the reason of a failure.
func TestReport(t *testing.T) {
	for _, tt := range []struct {
		name    string
		write   func(w *bytes.Buffer)
		shown   string
		ready   bool
		failure string
	}{
		{name: "progress", write: func(w *bytes.Buffer) { writeReport(w, markProgress, "a\n\nb") }, shown: "a\n\nb\n"},
		{name: "ready", write: func(w *bytes.Buffer) {
			writeReport(w, markProgress, "a")
			writeReport(w, markReady, "b")
			writeReport(w, markReady, "")
		}, shown: "a\nb\n\n", ready: true},
		{name: "failed", write: func(w *bytes.Buffer) {
			writeReport(w, markProgress, "a")
			writeReport(w, markFailed, "the first line\n\nthe last line")
		}, shown: "a\n", failure: "the first line\n\nthe last line"},
		{name: "killed", write: func(w *bytes.Buffer) { w.WriteString("\n+a\n") }, shown: "a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var report, shown bytes.Buffer
			tt.write(&report)
			ready, err := readReport(&report, &shown)
			failure := ""
			if err != nil {
				failure = err.Error()
			}
			if shown.String() != tt.shown || ready != tt.ready || failure != tt.failure {
				t.Errorf("shown %q, ready %v, failure %q", shown.String(), ready, failure)
			}
		})
	}
}
