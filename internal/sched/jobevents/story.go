package jobevents

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// event is an event about a job.
type event struct {
	kind    string // corev1.EventTypeNormal or Warning
	reason  string
	message string
}

// eventsOf returns what the change from old to now means: the warnings or, with all, every
// event.
func eventsOf(old, now *v1alpha1.BatchJob, all bool) []event {
	before, after := &old.Status, &now.Status
	var out []event
	if p := after.Preempt; p != nil && before.Preempt == nil {
		why := fmt.Sprintf("job %d needs its resources (%s)", p.By, p.Mode)
		out = append(out, event{corev1.EventTypeWarning, "Preempting", why})
	}
	switch {
	case requeued(before, after):
		if p := &after.Past[len(after.Past)-1]; all || p.State != status.StateRequeued {
			out = append(out, requeue(p))
		}
	case after.HasOutcome() && !before.HasOutcome() && outcome(after) != v1alpha1.StatePending:
		if all || isWarning(after) {
			out = append(out, end(after))
		}
	}
	if !all {
		return out
	}
	if e := progress(before.State, after); e.reason != "" {
		out = append(out, e)
	}
	return out
}

// requeued reports whether an attempt has become a past one.
func requeued(before, after *v1alpha1.BatchJobStatus) bool {
	n := len(after.Past)
	return n > 0 && (len(before.Past) == 0 || before.Past[len(before.Past)-1].Attempt != after.Past[n-1].Attempt)
}

func requeue(p *v1alpha1.PastAttempt) event {
	e := event{corev1.EventTypeWarning, "Requeued", fmt.Sprintf("attempt %d ended as %s", p.Attempt, p.State)}
	if p.State == status.StateRequeued {
		e = event{corev1.EventTypeNormal, "Requeued", fmt.Sprintf("attempt %d was requeued", p.Attempt)}
	}
	return e.with(p.NodeList, p.Message)
}

// outcome returns the state after COMPLETING.
func outcome(s *v1alpha1.BatchJobStatus) string {
	if s.IsFinal() {
		return s.State
	}
	return s.Final
}

// end returns the event of the end of a job.
func end(s *v1alpha1.BatchJobStatus) event {
	state := outcome(s)
	e := event{corev1.EventTypeNormal, camelCase(state), "ended as " + state}
	if x := s.ExitCode; x != nil {
		e.message += fmt.Sprintf(", exit code %d:%d", x.Status, x.Signal)
	}
	if isWarning(s) {
		e.kind = corev1.EventTypeWarning
	}
	return e.with(nodes(s), s.Message)
}

// isWarning reports whether something else than the script or a user ended the job.
func isWarning(s *v1alpha1.BatchJobStatus) bool {
	switch outcome(s) {
	case v1alpha1.StateCompleted, v1alpha1.StateCancelled:
		return false
	case v1alpha1.StateFailed:
		return s.Reason == status.ReasonLaunchFailure
	}
	return true
}

// progress returns the event of a state that is no end; its reason is "" if there is none.
func progress(before string, s *v1alpha1.BatchJobStatus) event {
	if s.State == before {
		return event{}
	}
	switch s.State {
	case v1alpha1.StateConfiguring:
		return event{corev1.EventTypeNormal, "Allocated", "resources are allocated"}.with(nodes(s), "")
	case v1alpha1.StateRunning:
		if before == v1alpha1.StateSuspended {
			return event{corev1.EventTypeNormal, "Resumed", "resumed"}
		}
		return event{corev1.EventTypeNormal, "Started", "started"}.with(nodes(s), "")
	case v1alpha1.StateSuspended:
		return event{corev1.EventTypeNormal, "Suspended", "suspended"}
	}
	return event{}
}

// with adds nodes and an explanation to the message.
func (e event) with(nodes, why string) event {
	if nodes != "" {
		e.message += ", on " + nodes
	}
	if why != "" {
		e.message += ": " + why
	}
	return e
}

// nodes returns the nodes of the job, folded.
func nodes(s *v1alpha1.BatchJobStatus) string {
	if s.Allocation == nil {
		return ""
	}
	names := make([]string, 0, len(s.Allocation.Nodes))
	for i := range s.Allocation.Nodes {
		names = append(names, s.Allocation.Nodes[i].Name)
	}
	return hostlist.Fold(names)
}

// camelCase returns a state in the form of an event's reason: NodeFail.
func camelCase(state string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(state, "_") {
		b.WriteString(word[:min(1, len(word))] + strings.ToLower(word[min(1, len(word)):]))
	}
	return b.String()
}
