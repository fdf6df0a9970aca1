package history

import (
	"slices"
	"time"
)

func noTaskTwice(h *History, report func(string, ...any)) {
	for id, runs := range h.runs() {
		for _, r := range runs {
			if r.starts > 1 {
				report("job %d started step %s, task %d, %d times with restart count %d", id, r.Step, r.Proc, r.starts,
					r.Restart)
			}
		}
	}
}

// attemptsApart: before the next attempt starts, the last one is gone from every node.
func attemptsApart(h *History, report func(string, ...any)) {
	for id, list := range h.attempts() {
		for i, a := range list {
			for _, b := range list[i+1:] {
				if a.overlaps(b) {
					report("job %d: restart %d ran until %v, %v after restart %d started", id, a.Restart, stamp(a.last),
						a.last.Sub(b.first), b.Restart)
				}
			}
		}
	}
}

// nothingAfterTheEnd: accounting's end is the moment at which the job was ended, in whole
// seconds; its processes then have KillWait.
func nothingAfterTheEnd(h *History, report func(string, ...any)) {
	attempts := h.attempts()
	for i := range h.Records {
		r := &h.Records[i]
		if !IsFinal(r.State) || r.End.IsZero() {
			continue
		}
		for _, a := range attempts[r.ID] {
			allowed := 2*time.Second + h.faulty(r.End, a.last)
			if r.State != "COMPLETED" && r.State != "FAILED" {
				allowed += KillWait
			}
			if a.last.Sub(r.End) > allowed {
				report("job %d ended at %v, and restart %d ran until %v", r.ID, stamp(r.End), a.Restart, stamp(a.last))
			}
		}
	}
}

// dependenciesHold: whatever the other job was doing had ended before the dependent one
// started. Jobs that somebody requeued are left out, as they may start again afterwards.
func dependenciesHold(h *History, report func(string, ...any)) {
	attempts := h.attempts()
	records := h.recordsByTask()
	arrays := map[int64][]int64{} // array to the ids of its tasks
	for i := range h.Records {
		if r := &h.Records[i]; r.Array != 0 {
			arrays[r.Array] = append(arrays[r.Array], r.ID)
		}
	}
	for i := range h.Submissions {
		s := &h.Submissions[i]
		d := s.Job.Dependency
		mine := attempts[s.ID]
		if d.Kind == "aftercorr" {
			h.correlated(s, report)
			continue
		}
		if d.Kind == "" || s.ID == 0 || len(mine) == 0 || h.requested("requeue", d.On, d.On, mine[0].first) {
			continue
		}
		for _, on := range append(slices.Clone(arrays[d.On]), d.On) {
			for _, a := range attempts[on] {
				if d.Kind != "after" && a.last.After(mine[0].first) && !h.requeuedAfter(a, on, d.On, mine[0].first) {
					report("job %d (%s:%d) started at %v, and job %d ran until %v", s.ID, d.Kind, d.On,
						stamp(mine[0].first), on, stamp(a.last))
				}
			}
		}
		if r := records[recordKey{d.On, -1}]; len(r) == 1 && IsFinal(r[0].State) &&
			!h.requested("requeue", d.On, d.On, r[0].End) {
			if d.Kind == "afterok" && r[0].State != "COMPLETED" || d.Kind == "afternotok" && r[0].State == "COMPLETED" {
				report("job %d (%s:%d) ran, and job %d is %s", s.ID, d.Kind, d.On, d.On, r[0].State)
			}
		}
		if d.Kind == "after" {
			checkAfter(h, s, mine[0], report)
		}
	}
}

// requeuedAfter reports whether the attempt of a job, or of a task of the array, is one that a
// user requested after the given time, when jobs that waited for it may have started.
func (h *History) requeuedAfter(a *run, id, array int64, at time.Time) bool {
	return a.first.After(at) && a.Restart > 0 && h.requested("requeue", id, array, a.first)
}

// correlated checks aftercorr: each task waits for that of the other array with its number.
func (h *History) correlated(s *Submission, report func(string, ...any)) {
	type task struct{ array, number int64 }
	tasks := map[task][]*run{}
	for _, list := range h.attempts() {
		for _, a := range list {
			k := task{a.Array, a.Task}
			tasks[k] = append(tasks[k], a)
		}
	}
	on := s.Job.Dependency.On
	for _, number := range s.Job.Tasks {
		mine := tasks[task{s.ID, int64(number)}]
		if len(mine) == 0 || h.requested("requeue", on, on, mine[0].first) {
			continue
		}
		others := tasks[task{on, int64(number)}]
		if len(others) == 0 {
			report("task %d of array %d (aftercorr:%d) ran, and that of the other array never did", number, s.ID, on)
		}
		for _, o := range others {
			if o.last.After(mine[0].first) && !h.requeuedAfter(o, o.Job, on, mine[0].first) {
				report("task %d of array %d started at %v, and that of array %d ran until %v", number, s.ID,
					stamp(mine[0].first), on, stamp(o.last))
			}
		}
	}
}

// checkAfter: after:ID waits until the other job has started or was cancelled.
func checkAfter(h *History, s *Submission, mine *run, report func(string, ...any)) {
	on := s.Job.Dependency.On
	of := h.submissionOf()(on, 0)
	if of == nil || of.Job.Tasks != nil || of.Job.Interactive || of.Job.Components > 0 ||
		h.requested("cancel", on, 0, mine.first) {
		return
	}
	// The script's first line comes after the start of the job, so only a job without any
	// run proves something.
	if len(h.attempts()[on]) == 0 && !h.disturbed(of.Call, mine.first) {
		report("job %d (after:%d) ran, and job %d never did", s.ID, on, on)
	}
}

// beginHolds: --begin=now+N counts whole seconds.
func beginHolds(h *History, report func(string, ...any)) {
	attempts := h.attempts()
	for i := range h.Submissions {
		s := &h.Submissions[i]
		if s.Job.Begin.IsZero() {
			continue
		}
		for _, a := range attempts[s.ID] {
			if a.first.Before(s.Job.Begin) {
				report("job %d started at %v, before %v", s.ID, stamp(a.first), stamp(s.Job.Begin))
			}
		}
	}
}

// holdHolds: a job that was submitted held, or was seen pending after it had been held,
// does not start before somebody releases it.
func holdHolds(h *History, report func(string, ...any)) {
	attempts := h.attempts()
	check := func(id int64, held time.Time) {
		until := time.Time{} // never
		for _, o := range h.Operations {
			if o.Verb == "release" && o.Job == id && o.Return.After(held) && (until.IsZero() || o.Call.Before(until)) {
				until = o.Call
			}
		}
		for _, a := range attempts[id] {
			if a.first.After(held) && (until.IsZero() || a.first.Before(until)) {
				report("job %d was held at %v and started at %v", id, stamp(held), stamp(a.first))
			}
		}
	}
	for i := range h.Submissions {
		if s := &h.Submissions[i]; s.Job.Held && s.ID != 0 {
			check(s.ID, s.Call)
		}
	}
	for _, o := range h.Operations {
		if o.Verb != "hold" || o.Exit != 0 {
			continue
		}
		for _, seen := range h.Sightings {
			if seen.Job == o.Job && seen.State == "PENDING" && seen.Call.After(o.Return) {
				check(o.Job, seen.Return)
				break
			}
		}
	}
}

// singletonsApart: jobs of one user with one name that all are singletons.
func singletonsApart(h *History, report func(string, ...any)) {
	type group struct{ name, user string }
	attempts := h.attempts()
	groups := map[group][]*run{}
	for i := range h.Submissions {
		if s := &h.Submissions[i]; s.Job.Singleton {
			k := group{s.Name, s.User}
			groups[k] = append(groups[k], attempts[s.ID]...)
		}
	}
	for k, list := range groups {
		for i, a := range list {
			for _, b := range list[i+1:] {
				if a.Job != b.Job && a.overlaps(b) {
					report("jobs %d and %d, singletons %q of %s, ran at the same time", a.Job, b.Job, k.name, k.user)
				}
			}
		}
	}
}

func throttleHolds(h *History, report func(string, ...any)) {
	arrays := map[int64][]*run{}
	for _, list := range h.attempts() {
		for _, a := range list {
			if a.Array != 0 {
				arrays[a.Array] = append(arrays[a.Array], a)
			}
		}
	}
	for i := range h.Submissions {
		s := &h.Submissions[i]
		if s.Job.Throttle == 0 {
			continue
		}
		peak(arrays[s.ID], func(*run) int64 { return 1 }, int64(s.Job.Throttle), func(n int64, at time.Time) {
			report("%d tasks of array %d ran at %v, of %d that may", n, s.ID, stamp(at), s.Job.Throttle)
		})
	}
}

// stamp formats a time as it is in the messages.
func stamp(t time.Time) string { return t.Format("15:04:05.000") }
