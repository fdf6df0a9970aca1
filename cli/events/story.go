package events

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
)

// event is one line of a story. Of those in the same second, the order is the one in which
// such things happen.
type event struct {
	at   int64 // Unix seconds
	kind kind
	text string
}

type kind int

const (
	queueing kind = iota
	starting
	stepStart
	pause
	stepEnd
	batchEnd
	runEnd
)

// writer collects the output.
type writer struct {
	settings *format.Settings
	text     []byte
}

// story appends what happened to one job. row is its row in the queue; nil: it has left
// the queue.
func (w *writer) story(runs []*status.Record, row *status.Job, pods []status.Pod) {
	slices.SortStableFunc(runs, func(a, b *status.Record) int { return cmp.Compare(a.Restarts, b.Restarts) })
	last := runs[len(runs)-1]
	fmt.Fprintf(w, "job %s %s, user %s, partition %s: %s\n", format.AcctID(last), printable.Escape(last.Name),
		printable.Escape(last.User), printable.Escape(last.Partition), last.State)
	var all []event
	for i, r := range runs {
		all = append(all, ofRun(r, i == 0, i == len(runs)-1)...)
	}
	for i := range pods {
		all = append(all, ofPod(&pods[i])...)
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	for _, e := range all {
		w.text = format.AppendInstant(w.text, e.at, "Unknown", w.settings)
		fmt.Fprintf(w, "  %s\n", e.text)
	}
	if row != nil && row.State == "PENDING" {
		fmt.Fprintf(w, "%s\n", w.waiting(row))
	}
}

// Write implements io.Writer.
func (w *writer) Write(b []byte) (int, error) {
	w.text = append(w.text, b...)
	return len(b), nil
}

// waiting returns what a pending job waits for.
func (w *writer) waiting(row *status.Job) string {
	text := "it waits, with the reason " + cmp.Or(row.Reason, "None")
	if row.Message != "" {
		text += ": " + printable.Escape(row.Message)
	}
	if row.Start != 0 {
		text += "; planned start " + string(format.AppendInstant(nil, row.Start, "", w.settings))
		if row.PlannedNodes != "" {
			text += " on " + row.PlannedNodes
		}
	}
	return text
}

// ofRun returns the events of one run of the job.
func ofRun(r *status.Record, first, last bool) []event {
	var out []event
	if first {
		out = append(out, event{r.Submit, queueing, submitted(r)})
	}
	if r.Eligible > r.Submit && (r.Start == 0 || r.Eligible < r.Start) {
		out = append(out, event{r.Eligible, queueing, "eligible to start"})
	}
	for i, change := range r.History {
		if k, text := changed(r, r.History[:i], change); text != "" {
			out = append(out, event{change.At / 1e6, k, text})
		}
	}
	for i := range r.Steps {
		out = append(out, ofStep(&r.Steps[i], r.End)...)
	}
	if r.End != 0 {
		out = append(out, event{r.End, runEnd, ended(r, last)})
	}
	slices.SortStableFunc(out, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind))
	})
	return out
}

// submitted describes the submission.
func submitted(r *status.Record) string {
	text := "submitted"
	if r.SubmitLine != "" {
		text += ": " + printable.Escape(r.SubmitLine)
	}
	return text
}

// changed describes a change of the job's state; "": another line describes it.
func changed(r *status.Record, before []status.StateChange, c status.StateChange) (k kind, text string) {
	previous := ""
	if n := len(before); n > 0 {
		previous = before[n-1].State
	}
	switch {
	case c.State == "CONFIGURING":
		return starting, "resources allocated: " + allocation(r)
	case c.State == "RUNNING" && previous == "SUSPENDED":
		return pause, "resumed"
	case c.State == "RUNNING" && previous == "CONFIGURING":
		return starting, "started"
	case c.State == "RUNNING":
		return starting, "started: " + allocation(r)
	case c.State == "SUSPENDED":
		return pause, "suspended"
	}
	return 0, ""
}

// allocation describes the resources of a run.
func allocation(r *status.Record) string {
	text := fmt.Sprintf("%d CPUs on %s, time limit ", r.CPUs, r.NodeList)
	return string(format.AppendMinutes([]byte(text), r.TimeLimit))
}

// ended describes the end of a run.
func ended(r *status.Record, last bool) string {
	text := "requeued"
	if r.State != "REQUEUED" {
		text = fmt.Sprintf("ended as %s, exit code %d:%d", r.State, r.ExitCode, r.Signal)
	}
	if r.KilledBy != "" {
		text += ", by " + printable.Escape(r.KilledBy)
	}
	if r.Reason != "" && r.Reason != "None" {
		text += ", reason " + printable.Escape(r.Reason)
	}
	if r.SystemComment != "" {
		text += ": " + printable.Escape(r.SystemComment)
	}
	if !last && r.State != "REQUEUED" {
		text += "; requeued"
	}
	return text
}

// ofStep returns the events of a step. The ones that Slurm adds to every job are no news
// unless they failed. The end of the run, by another clock, may be a second before that of its
// last steps; then theirs counts as the same.
func ofStep(s *status.StepRecord, runEnded int64) []event {
	usual := s.Step == "batch" || s.Step == "extern" || s.Step == "interactive"
	name := "step " + s.Step
	if s.Name != "" && s.Name != s.Step {
		name += " (" + printable.Escape(s.Name) + ")"
	}
	var out []event
	if !usual && s.Start != 0 {
		out = append(out, event{s.Start, stepStart, name + " started"})
	}
	if s.End != 0 && (!usual || s.State != "COMPLETED") {
		k := stepEnd
		if usual {
			k = batchEnd
		}
		text := fmt.Sprintf("%s ended as %s, exit code %d:%d", name, s.State, s.ExitCode, s.Signal)
		at := s.End
		if runEnded != 0 {
			at = min(at, runEnded)
		}
		out = append(out, event{at, k, text})
	}
	return out
}

// ofPod returns Kubernetes' warnings about a pod.
func ofPod(p *status.Pod) []event {
	var out []event
	for _, e := range p.Events {
		if e.Type != "Warning" {
			continue
		}
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times)", e.Count)
		}
		text := fmt.Sprintf("pod %s: %s%s: %s", p.Name, e.Reason, times, strings.TrimSpace(e.Message))
		out = append(out, event{e.Time, starting, printable.Escape(text)})
	}
	return out
}
