package mail

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/status"
)

// arrayMails notes which mails about an array as a whole were sent.
type arrayMails struct{ begun, ended bool }

// isForWholeArray reports whether an array has this event once, unless the job requests
// mail for each task (sbatch(1), --mail-type).
func isForWholeArray(kind string) bool { return kind == Begin || kind == End || kind == Fail }

// eachTask reports whether the job requests mail about every task of its array.
func eachTask(b *v1alpha1.BatchJob) bool {
	return slices.Contains(b.Spec.Job.Mail.Types, EachTask)
}

// arrayChanged handles the change of a task, or of the rest of an array, if mail about
// the whole array is requested. The array begins with its first task and ends with its
// last one.
func (n *Notifier) arrayChanged(old, now *v1alpha1.BatchJob) {
	id := array.ID(now)
	if id == 0 || eachTask(now) || old == nil || n.Family == nil {
		return
	}
	was, is := state(old), state(now)
	begins := is == v1alpha1.StateRunning && was != is
	ends := status.JobState(is).IsFinal() && !status.JobState(was).IsFinal()
	if !begins && !ends {
		return
	}
	family := n.Family(id)
	n.mu.Lock()
	defer n.mu.Unlock()
	sent := n.arrays[id]
	switch {
	case begins:
		if !sent.begun && !slices.ContainsFunc(family,
			func(b *v1alpha1.BatchJob) bool { return b.Spec.JobID != now.Spec.JobID && b.Status.StartTime != nil }) {
			n.putArray(now, id, Begin, family)
		}
		sent.begun, sent.ended = true, false
	case !slices.ContainsFunc(family,
		func(b *v1alpha1.BatchJob) bool { return !status.JobState(state(b)).IsFinal() }) && !sent.ended:
		sent.ended = true
		bad := slices.ContainsFunc(family,
			func(b *v1alpha1.BatchJob) bool { return failed(state(b)) || hasFailedTask(b) })
		if !bad || !n.putArray(now, id, Fail, family) {
			n.putArray(now, id, End, family)
		}
	}
	n.arrays[id] = sent
}

// putArray queues the mail about an event of an array, if it is requested.
func (n *Notifier) putArray(b *v1alpha1.BatchJob, id int64, event string, family []*v1alpha1.BatchJob) bool {
	if !slices.Contains(b.Spec.Job.Mail.Types, event) {
		return false
	}
	n.put(b, event, func(m *Message) { m.Subject = summary(b, id, event, family) })
	return true
}

// hasFailedTask reports whether a task that did not complete has already left the
// queue.
func hasFailedTask(b *v1alpha1.BatchJob) bool { return b.Status.Array != nil && b.Status.Array.Failed }

// forget removes the notes about arrays that have left the queue. n.mu is not held.
func (n *Notifier) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.arrays {
		if len(n.Family(id)) == 0 {
			delete(n.arrays, id)
		}
	}
}

// summary returns the subject of a mail about an array, as in Slurm.
func summary(b *v1alpha1.BatchJob, id int64, event string, family []*v1alpha1.BatchJob) string {
	text := fmt.Sprintf("Slurm Array Summary Job_id=%d_* (%d) Name=%s ", id, id, clean(b.Spec.Job.Name))
	if event == Begin {
		return text + "Began"
	}
	word := "Ended"
	if event == Fail {
		word = "Failed"
	}
	return text + word + ", " + outcomeOfTasks(family)
}

// outcomeOfTasks summarizes how the tasks of an array ended, as Slurm does: their exit
// codes or, if signals ended some, the highest signal.
func outcomeOfTasks(family []*v1alpha1.BatchJob) string {
	least, most, signal, worst := int32(math.MaxInt32), int32(0), int32(0), v1alpha1.StateCompleted
	for _, t := range family {
		code := int32(0)
		if e := t.Status.ExitCode; e != nil {
			code, signal = e.Status, max(signal, e.Signal)
		}
		least, most = min(least, code), max(most, code)
		if s := state(t); s != v1alpha1.StateCompleted {
			worst = s
		}
		if state(t) == v1alpha1.StateCancelled {
			signal = max(signal, int32(syscall.SIGKILL))
		}
	}
	switch {
	case signal > 0 && most == 0:
		return fmt.Sprintf("Mixed, MaxSignal [%d]", signal)
	case signal > 0:
		return fmt.Sprintf("Mixed, MaxExitCode [%d]", most)
	case least == 0 && most > 0 || worst == v1alpha1.StateCompleted && slices.ContainsFunc(family, hasFailedTask):
		worst = "Mixed"
	}
	return fmt.Sprintf("%s, ExitCode [%d-%d]", worst, least, most)
}

// taskSubject returns the subject of a mail about one task.
func taskSubject(subject string, b *v1alpha1.BatchJob) string {
	id, task, ok := array.Task(b)
	if !ok {
		return subject
	}
	plain := fmt.Sprintf("Slurm Job_id=%d ", b.Spec.JobID)
	return strings.Replace(subject, plain, fmt.Sprintf("Slurm Array Task Job_id=%d_%d (%d) ", id, task.Index,
		b.Spec.JobID), 1)
}
