package history

import (
	"slices"
	"strings"
	"time"
)

// final are the states in which a job ends (squeue(1), JOB STATE CODES).
var final = []string{
	"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY",
}

// IsFinal reports whether a job in the state has ended.
func IsFinal(state string) bool {
	state, _, _ = strings.Cut(state, " ") // "CANCELLED by 1000"
	return slices.Contains(final, state)
}

// recordKey identifies what has one record: a job, or a task of an array.
type recordKey struct {
	id   int64
	task int
}

// recordsByTask returns the records of each job (task -1), and of each array task.
func (h *History) recordsByTask() map[recordKey][]*Record {
	out := map[recordKey][]*Record{}
	for i := range h.Records {
		r := &h.Records[i]
		if r.Array == 0 {
			k := recordKey{r.ID, -1}
			out[k] = append(out[k], r)
		}
		for _, t := range r.Tasks {
			k := recordKey{r.Array, t}
			out[k] = append(out[k], r)
		}
	}
	return out
}

// tasksOf returns the keys of the records that a submission results in.
func tasksOf(s *Submission) []recordKey {
	if s.Job.Tasks == nil {
		out := make([]recordKey, 0, 1+s.Job.Components)
		for i := range max(1, s.Job.Components) {
			out = append(out, recordKey{s.ID + int64(i), -1})
		}
		return out
	}
	var out []recordKey
	for _, t := range s.Job.Tasks {
		out = append(out, recordKey{s.ID, t})
	}
	return out
}

func acceptedIsRecorded(h *History, report func(string, ...any)) {
	records := h.recordsByTask()
	for i := range h.Submissions {
		s := &h.Submissions[i]
		if s.ID == 0 {
			if s.Exit == 0 && !s.Job.Interactive {
				report("%s of %s was accepted without an id: %q", s.Name, s.User, s.Answer)
			}
			continue
		}
		for _, k := range tasksOf(s) {
			if len(records[k]) == 0 {
				report("job %d (task %d, %s) was accepted and is not in accounting", k.id, k.task, s.Name)
			}
		}
	}
}

func oneFinalState(h *History, report func(string, ...any)) {
	stuck := map[int64]bool{}
	for _, r := range h.Queue {
		stuck[r.ID] = true // reported by another promise
	}
	for k, list := range h.recordsByTask() {
		if len(list) != 1 {
			report("job %d (task %d) has %d records, not one", k.id, k.task, len(list))
		}
		for _, r := range list {
			if !IsFinal(r.State) && !stuck[r.ID] {
				report("job %d (task %d, %s) is not in the queue and is recorded as %s", k.id, k.task, r.Name, r.State)
			}
		}
	}
}

// oneJobPerSubmission: a submission whose answer was lost may have made a job, but no
// submission makes two.
func oneJobPerSubmission(h *History, report func(string, ...any)) {
	submissions := h.submissionsByName()
	made := map[string]map[recordKey]bool{}
	for k, list := range h.recordsByTask() {
		for _, r := range list {
			if made[r.Name] == nil {
				made[r.Name] = map[recordKey]bool{}
			}
			made[r.Name][k] = true
		}
	}
	for name, keys := range made {
		may := 0
		for _, s := range submissions[name] {
			may += len(tasksOf(s))
		}
		switch {
		case may == 0:
			report("nobody submitted the job %q of accounting", name)
		case len(keys) > may:
			report("%d jobs have the name %q, of which %d were submitted", len(keys), name, may)
		}
	}
}

// stateIsTrue compares the recorded state with what the job wrote, and with what was done
// to it.
func stateIsTrue(h *History, report func(string, ...any)) {
	attempts, of := h.attempts(), h.submissionOf()
	for i := range h.Records {
		r := &h.Records[i]
		s := of(r.ID, r.Array)
		if s == nil || s.Job.Interactive || len(r.Tasks) > 1 {
			continue
		}
		var last *run
		if list := attempts[r.ID]; len(list) > 0 {
			last = list[len(list)-1]
		}
		state, _, _ := strings.Cut(r.State, " ")
		end := h.latestEnd(r)
		switch {
		case state == "COMPLETED" && (last == nil || !last.ended || last.exit != 0):
			report("job %d is recorded as COMPLETED, and its script did not end with 0", r.ID)
		case state == "FAILED" && last != nil && last.ended && last.exit == 0:
			report("job %d is recorded as FAILED (%d), and its script ended with 0", r.ID, r.Exit)
		case state == "FAILED" && (last == nil || !last.ended) &&
			!h.disturbed(since(last, s), end) &&
			!h.requested("cancel", r.ID, r.Array, end):
			report("job %d is recorded as FAILED (%d) without a fault, and its script did not end", r.ID, r.Exit)
		case state == "NODE_FAIL" && !h.disturbed(since(last, s), end):
			report("job %d is recorded as NODE_FAIL, and no fault was injected", r.ID)
		case state == "CANCELLED" && !h.requested("cancel", r.ID, r.Array, end):
			report("job %d is recorded as %s, and nobody cancelled it", r.ID, r.State)
		case state == "TIMEOUT" && s.Job.Limit == 0:
			report("job %d is recorded as TIMEOUT, and has no limit", r.ID)
		case state == "TIMEOUT" && last != nil && r.End.Sub(r.Start) < s.Job.Limit:
			report("job %d is recorded as TIMEOUT after %v of %v", r.ID, r.End.Sub(r.Start), s.Job.Limit)
		}
	}
}

// latestEnd returns the time by which the job of the record had ended. Records have whole seconds,
// and a job that was suspended when it ended is recorded to have ended when it was suspended, as
// in Slurm: it can have ended at any later time.
func (h *History) latestEnd(r *Record) time.Time {
	end := r.End.Add(time.Second)
	if !h.requested("suspend", r.ID, r.Array, end) {
		return end
	}
	for _, o := range h.Operations {
		end = later(end, o.Return)
	}
	return end
}

// since returns when the last attempt started, or when the job was submitted.
func since(last *run, s *Submission) time.Time {
	if last != nil {
		return last.first
	}
	return s.Call
}

func idsIncrease(h *History, report func(string, ...any)) {
	var accepted []*Submission
	seen := map[int64]string{}
	for i := range h.Submissions {
		s := &h.Submissions[i]
		if s.ID == 0 {
			continue
		}
		if other, ok := seen[s.ID]; ok {
			report("id %d was given to %s and to %s", s.ID, other, s.Name)
		}
		seen[s.ID] = s.Name
		accepted = append(accepted, s)
	}
	slices.SortFunc(accepted, func(a, b *Submission) int { return a.Call.Compare(b.Call) })
	byReturn := slices.Clone(accepted)
	slices.SortFunc(byReturn, func(a, b *Submission) int { return a.Return.Compare(b.Return) })
	var highest *Submission // of those that had returned before
	next := 0
	for _, s := range accepted {
		for ; next < len(byReturn) && byReturn[next].Return.Before(s.Call); next++ {
			if b := byReturn[next]; highest == nil || b.ID > highest.ID {
				highest = b
			}
		}
		if highest != nil && highest.ID > s.ID {
			report("%s got id %d after %s had got %d", s.Name, s.ID, highest.Name, highest.ID)
		}
	}
}

func nothingStuck(h *History, report func(string, ...any)) {
	for _, r := range h.Queue {
		if !IsFinal(r.State) {
			report("job %d (%s) is still %s (%s)", r.ID, r.Name, r.State, r.Reason)
		}
	}
}

func nothingLeft(h *History, report func(string, ...any)) {
	for _, what := range h.Left {
		report("%s", what)
	}
}
