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

// whole is what was told of an array as a whole.
type whole struct{ begun, ended bool }

// asWhole are the events that an array has once, unless each task's are wanted
// (sbatch(1), --mail-type).
func asWhole(kind string) bool { return kind == Begin || kind == End || kind == Fail }

// eachTask tells whether the job wants mail about every task of its array.
func eachTask(b *v1alpha1.BatchJob) bool {
	return slices.Contains(b.Spec.Job.Mail.Types, EachTask)
}

// ofArray takes in the change of a task, or of what is left of an array, where
// mail is wanted about the array as a whole. Its beginning is that of its first
// task, its end that of the last.
func (n *Notifier) ofArray(old, now *v1alpha1.BatchJob) {
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
	told := n.arrays[id]
	switch {
	case begins:
		if !told.begun && !slices.ContainsFunc(family,
			func(b *v1alpha1.BatchJob) bool { return b.Spec.JobID != now.Spec.JobID && b.Status.StartTime != nil }) {
			n.putArray(now, id, Begin, family)
		}
		told.begun, told.ended = true, false
	case !slices.ContainsFunc(family,
		func(b *v1alpha1.BatchJob) bool { return !status.JobState(state(b)).IsFinal() }) && !told.ended:
		told.ended = true
		bad := slices.ContainsFunc(family, func(b *v1alpha1.BatchJob) bool { return failed(state(b)) || lostOne(b) })
		if !bad || !n.putArray(now, id, Fail, family) {
			n.putArray(now, id, End, family)
		}
	}
	n.arrays[id] = told
}

// putArray sends an event of an array, if it is wanted.
func (n *Notifier) putArray(b *v1alpha1.BatchJob, id int64, event string, family []*v1alpha1.BatchJob) bool {
	if !slices.Contains(b.Spec.Job.Mail.Types, event) {
		return false
	}
	n.put(b, event, func(m *Message) { m.Subject = summary(b, id, event, family) })
	return true
}

// lostOne tells whether a task that did not complete is gone from the queue
// already.
func lostOne(b *v1alpha1.BatchJob) bool { return b.Status.Array != nil && b.Status.Array.Failed }

// forget drops what was told of arrays that are gone. n.mu is not held.
func (n *Notifier) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.arrays {
		if len(n.Family(id)) == 0 {
			delete(n.arrays, id)
		}
	}
}

// summary is the subject of a mail about an array, as Slurm has it.
func summary(b *v1alpha1.BatchJob, id int64, event string, family []*v1alpha1.BatchJob) string {
	text := fmt.Sprintf("Slurm Array Summary Job_id=%d_* (%d) Name=%s ", id, id, clean(b.Spec.Job.Name))
	if event == Begin {
		return text + "Began"
	}
	word := "Ended"
	if event == Fail {
		word = "Failed"
	}
	return text + word + ", " + ofTasks(family)
}

// ofTasks sums up how the tasks of an array ended, as Slurm has it: their exit
// codes, or, where signals ended some, the highest of these.
func ofTasks(family []*v1alpha1.BatchJob) string {
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
	case least == 0 && most > 0 || worst == v1alpha1.StateCompleted && slices.ContainsFunc(family, lostOne):
		worst = "Mixed"
	}
	return fmt.Sprintf("%s, ExitCode [%d-%d]", worst, least, most)
}

// taskSubject is the subject of a mail about one task.
func taskSubject(subject string, b *v1alpha1.BatchJob) string {
	id, task, ok := array.Task(b)
	if !ok {
		return subject
	}
	plain := fmt.Sprintf("Slurm Job_id=%d ", b.Spec.JobID)
	return strings.Replace(subject, plain, fmt.Sprintf("Slurm Array Task Job_id=%d_%d (%d) ", id, task.Index,
		b.Spec.JobID), 1)
}
