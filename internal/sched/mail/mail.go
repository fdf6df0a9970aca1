// Package mail notifies users of events of their jobs (--mail-type, --mail-user), by
// SMTP or a web hook, as set in the Cluster object. It follows the changes of jobs
// while this process leads. As with Slurm's controller, changes between two leaders
// cause no mail.
package mail

import (
	"fmt"
	netmail "net/mail"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// Kinds of events, with the names of --mail-type.
const (
	Begin   = "BEGIN"
	End     = "END"
	Fail    = "FAIL"
	Requeue = "REQUEUE"
	Invalid = "INVALID_DEPEND"
	Limit   = "TIME_LIMIT"
	Limit90 = "TIME_LIMIT_90"
	Limit80 = "TIME_LIMIT_80"
	Limit50 = "TIME_LIMIT_50"
	// EachTask requests events of the tasks of an array, not of the array.
	EachTask = "ARRAY_TASKS"
)

// Message is one mail.
type Message struct {
	To      string `json:"to"`
	Event   string `json:"event"`
	Subject string `json:"subject"`
	JobID   int64  `json:"jobID"`
	JobName string `json:"jobName"`
	User    string `json:"user"`
	State   string `json:"state"`
	Exit    string `json:"exitCode,omitempty"`
}

// Events returns the events between two versions of a job that the job requests mail
// about. A nil old is a job that is seen for the first time, which has no events.
// Events of an array as a whole are not included, unless the job requests mail about
// each task.
func Events(old, now *v1alpha1.BatchJob) []string {
	if old == nil || now == nil || len(now.Spec.Job.Mail.Types) == 0 {
		return nil
	}
	var out []string
	summed := array.ID(now) != 0 && !eachTask(now)
	add := func(kind string, happened bool) {
		if summed && isForWholeArray(kind) {
			return
		}
		if happened && slices.Contains(now.Spec.Job.Mail.Types, kind) {
			out = append(out, kind)
		}
	}
	was, is := state(old), state(now)
	ended := status.JobState(is).IsFinal() && !status.JobState(was).IsFinal()
	add(Begin, is == v1alpha1.StateRunning && was != is)
	add(Requeue, now.Status.Restarts > old.Status.Restarts)
	add(Invalid, now.Status.Reason == status.ReasonDependencyNeverSatisfied &&
		old.Status.Reason != status.ReasonDependencyNeverSatisfied)
	add(Limit, ended && is == v1alpha1.StateTimeout)
	add(End, ended)
	add(Fail, ended && failed(is) && !slices.Contains(out, End))
	return out
}

func state(b *v1alpha1.BatchJob) string {
	switch s := b.Status.State; s {
	case "":
		return v1alpha1.StatePending
	case v1alpha1.StateCompleting:
		return b.Status.Final
	default:
		return s
	}
}

func failed(state string) bool {
	return state != v1alpha1.StateCompleted && state != v1alpha1.StateCancelled
}

// Reached returns the event for the highest share of its time limit that a running job
// has used up and requests mail about; "": none.
func Reached(b *v1alpha1.BatchJob, now time.Time) string {
	limit := time.Duration(b.Status.TimeLimit) * time.Minute
	if b.Status.State != v1alpha1.StateRunning || b.Status.StartTime == nil || limit <= 0 {
		return ""
	}
	ran := now.Sub(b.Status.StartTime.Time) - suspended(b)
	for _, share := range []struct {
		kind    string
		percent time.Duration
	}{{Limit90, 90}, {Limit80, 80}, {Limit50, 50}} {
		if ran >= limit*share.percent/100 && slices.Contains(b.Spec.Job.Mail.Types, share.kind) {
			return share.kind
		}
	}
	return ""
}

// suspended returns how long the job was suspended before its last resume, which does not
// count as run time.
func suspended(b *v1alpha1.BatchJob) time.Duration {
	return time.Duration(b.Status.Suspended) * time.Second
}

// Compose returns the mail about an event. The address is the job's, or its user's; the
// domain is added to a name without one. ok is false if the address is invalid.
func Compose(b *v1alpha1.BatchJob, event, domain string, now time.Time) (m Message, ok bool) {
	m = Message{Event: event, JobID: b.Spec.JobID, JobName: clean(b.Spec.Job.Name), User: b.Spec.User, State: state(b)}
	if m.To, ok = address(b.Spec.Job.Mail, b.Spec.User, domain); !ok {
		return m, false
	}
	if e := b.Status.ExitCode; e != nil {
		m.Exit = fmt.Sprintf("%d:%d", e.Status, e.Signal)
	}
	m.Subject = taskSubject(fmt.Sprintf("Slurm Job_id=%d Name=%s %s", m.JobID, m.JobName, subjectDetail(b, m, now)), b)
	return m, true
}

// subjectDetail returns the second half of the subject, as in Slurm.
func subjectDetail(b *v1alpha1.BatchJob, m Message, now time.Time) string {
	s := &b.Status
	span := func(from, to time.Time) string { return value.FormatSeconds(max(0, int64(to.Sub(from).Seconds()))) }
	queued, ran := "", ""
	if b.Spec.SubmitTime != nil && s.StartTime != nil {
		queued = ", Queued time " + span(b.Spec.SubmitTime.Time, s.StartTime.Time)
	}
	if s.StartTime != nil {
		end := now
		if s.EndTime != nil {
			end = s.EndTime.Time
		}
		ran = ", Run time " + span(s.StartTime.Time, end.Add(-suspended(b)))
	}
	switch m.Event {
	case Begin:
		return "Began" + queued
	case Requeue:
		return "Requeued" + ran
	case Invalid:
		return "Invalid dependency"
	case Limit:
		return "Reached time limit" + ran
	case Limit90, Limit80, Limit50:
		return "Reached " + strings.TrimPrefix(m.Event, "TIME_LIMIT_") + "% of time limit" + ran
	case Fail:
		return "Failed" + ran + outcome(b, m)
	}
	if failed(m.State) {
		return "Failed" + ran + outcome(b, m)
	}
	return "Ended" + ran + outcome(b, m)
}

// outcome returns how the job ended, without an exit code if a signal ended the script.
func outcome(b *v1alpha1.BatchJob, m Message) string {
	e := b.Status.ExitCode
	switch {
	case m.State == v1alpha1.StateCancelled || m.State == v1alpha1.StateTimeout:
		return ", " + m.State + ", ExitCode 0"
	case e == nil || e.Signal != 0 && e.Status == 0:
		return ", " + m.State
	}
	return fmt.Sprintf(", %s, ExitCode %d", m.State, e.Status)
}

func address(mail job.Mail, user, domain string) (string, bool) {
	to := mail.User
	if to == "" {
		to = user
	}
	if !strings.Contains(to, "@") {
		to += "@" + strings.TrimPrefix(orLocal(domain), "@")
	}
	a, err := netmail.ParseAddress(to)
	if err != nil || strings.ContainsAny(a.Address, "\r\n\x00") {
		return "", false
	}
	return a.Address, true
}

func orLocal(domain string) string {
	if domain == "" {
		return "localhost"
	}
	return domain
}

// clean replaces control characters in a job's name, so that it cannot add headers.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
}
