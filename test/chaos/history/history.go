// Package history records what users did on a cluster and what they could see of their
// jobs, and checks afterwards that the cluster kept its promises. It is pure: a history
// is data, and a promise is a function of it. All times are those of one machine.
package history

import (
	"cmp"
	"slices"
	"time"
)

// History is everything that is known about one run. The zero value is an empty history,
// which keeps every promise.
type History struct {
	Submissions []Submission
	Operations  []Operation
	// Marks are the lines that the jobs wrote themselves.
	Marks []Mark
	// Records is accounting at the end: sacct -X, which has each job once.
	Records []Record
	// Queue is the queue after everything was given the time to end.
	Queue []Row
	// Sightings are answers of squeue about single jobs.
	Sightings []Sighting
	// Placements are the allocations that a watch of the BatchJobs has seen. Some may be
	// missing: those that came and went while the watch was interrupted.
	Placements []Placement
	Faults     []Fault
	// Injected counts what was injected, by class and kind. Answers that were altered
	// throughout are here only: they are no excuse for anything.
	Injected map[string]map[string]int
	// Left lists what exists after all jobs have ended and should not.
	Left     []string
	Nodes    map[string]Node  // by name
	Licenses map[string]int64 // how many there are
}

// Node is what one node has.
type Node struct{ CPUs, GPUs int64 }

// Submission is one sbatch, srun or salloc from outside of a job.
type Submission struct {
	// Name is the job's name, which no other submission has, except those of a
	// singleton group.
	Name, User   string
	Args         []string
	Call, Return time.Time
	// Exit is the exit code. With another than 0 the job may exist nevertheless, because
	// the answer can be lost.
	Exit   int
	Answer string
	ID     int64 // 0: the answer has none
	Job    Job
}

// Job is what a submission requested.
type Job struct {
	Nodes, CPUs, GPUs int64 // CPUs and GPUs on each node
	License           string
	Run               time.Duration // how long the script runs
	ExitCode          int
	Limit             time.Duration // time limit; 0: none
	Begin             time.Time     // not before; zero: at once
	Held              bool
	Dependency        Dependency
	Singleton         bool
	Tasks             []int // of an array; nil: not an array
	Throttle          int   // how many tasks of the array run at the same time; 0: all
	Components        int   // of a heterogeneous job; 0: not one
	// Steps: the script's tasks are a step on every node, and write lines too.
	Steps bool
	// Interactive: the job has no script of its own (srun, salloc).
	Interactive bool
}

// Dependency is "kind:id", as in --dependency. The zero value is none.
type Dependency struct {
	Kind string
	On   int64
}

// Operation is one command about a job that exists: cancel, hold, release, requeue,
// suspend, resume, update.
type Operation struct {
	Verb, User   string
	Job          int64 // the id that the command named
	Task         int   // the array task that it named; -1: none
	Call, Return time.Time
	Exit         int
	Answer       string
}

// Mark is one line that a task of a job wrote: "start", "beat" while it runs, and "end".
type Mark struct {
	Kind        string
	At          time.Time
	Job         int64 // SLURM_JOB_ID
	Array, Task int64 // SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID; 0: not an array
	Restart     int64 // SLURM_RESTART_COUNT
	Name        string
	User        string
	Node        string
	Step        string // "batch" or the step's id
	Proc        int64
	GPUs        string // SLURM_JOB_GPUS
	Process     int64
	Exit        int // with "end": the script's exit code
}

// Record is one row of accounting.
type Record struct {
	ID         int64 // JobIDRaw
	Array      int64 // of an array task or of pending tasks; else 0
	Tasks      []int // array tasks of the row
	Name, User string
	State      string
	Exit       int
	Start, End time.Time // zero: unknown
}

// Row is one row of squeue.
type Row struct {
	ID            int64
	Name          string
	State, Reason string
}

// Sighting is an answer of squeue about a job.
type Sighting struct {
	Job          int64
	Call, Return time.Time
	State        string
}

// Placement is an allocation of one attempt of a job.
type Placement struct {
	Job     int64
	Attempt int64
	Restart int64
	Nodes   []Share
	At      time.Time
}

// Share is the part of a placement on one node.
type Share struct {
	Node   string
	CPUs   []int64 // their numbers
	GPUs   []int64 // their indexes
	Shared bool    // other jobs may have the same CPUs
}

// Fault is an injected fault.
type Fault struct {
	Kind, Target string
	Begin, End   time.Time // End: when the cluster was whole again
}

// Violation is a broken promise.
type Violation struct {
	Promise, Text string
}

// run is the life of one task of one attempt of a job, as its marks show it.
type run struct {
	Mark        // the start
	first, last time.Time
	marks       []time.Time // sorted
	ended       bool
	exit        int
	starts      int // how many lines say that it started
}

// silence is how long a running task may be without a mark. A longer pause proves nothing
// about what the task used meanwhile: it may have been suspended.
const silence = 2 * time.Second

// span is a time in which a run was certainly running.
type span struct{ from, to time.Time }

// spans returns when the run was certainly running.
func (r *run) spans() []span {
	var out []span
	for i, t := range r.marks {
		if i == 0 || t.Sub(r.marks[i-1]) > silence {
			out = append(out, span{t, t})
			continue
		}
		out[len(out)-1].to = t
	}
	return out
}

// runKey identifies a run.
type runKey struct {
	job, restart, proc int64
	step               string
}

// runs returns the runs of every job, in the order of their starts.
func (h *History) runs() map[int64][]*run {
	found := map[runKey]*run{}
	for _, m := range h.Marks {
		k := runKey{m.Job, m.Restart, m.Proc, m.Step}
		r := found[k]
		if r == nil {
			r = &run{Mark: m, first: m.At, last: m.At}
			found[k] = r
		}
		r.marks = append(r.marks, m.At)
		if m.At.Before(r.first) {
			r.first = m.At
		}
		if m.At.After(r.last) {
			r.last = m.At
		}
		switch m.Kind {
		case "start":
			r.starts++
		case "end":
			r.ended, r.exit = true, m.Exit
		}
	}
	byJob := map[int64][]*run{}
	for _, r := range found {
		slices.SortFunc(r.marks, time.Time.Compare)
		byJob[r.Job] = append(byJob[r.Job], r)
	}
	for _, list := range byJob {
		slices.SortFunc(list, func(a, b *run) int {
			return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.Restart, b.Restart), cmp.Compare(a.Step, b.Step),
				cmp.Compare(a.Proc, b.Proc))
		})
	}
	return byJob
}

// attempts joins the runs of each attempt of each job: the batch script and its steps.
func (h *History) attempts() map[int64][]*run {
	out := map[int64][]*run{}
	for id, runs := range h.runs() {
		byRestart := map[int64]*run{}
		for _, r := range runs {
			a := byRestart[r.Restart]
			if a == nil {
				c := *r
				byRestart[r.Restart] = &c
				out[id] = append(out[id], &c)
				continue
			}
			if r.last.After(a.last) {
				a.last = r.last
			}
			a.marks = append(slices.Clone(a.marks), r.marks...)
			slices.SortFunc(a.marks, time.Time.Compare)
			if r.Step == "batch" {
				a.ended, a.exit = r.ended, r.exit
			}
		}
	}
	return out
}

// overlaps reports whether both were certainly running at one time.
func (r *run) overlaps(o *run) bool {
	if !r.first.Before(o.last) || !o.first.Before(r.last) {
		return false
	}
	others := o.spans()
	for _, a := range r.spans() {
		for _, b := range others {
			if a.from.Before(b.to) && b.from.Before(a.to) {
				return true
			}
		}
	}
	return false
}

// submissionsByName has each submission by the name of its job; groups of singletons
// share theirs.
func (h *History) submissionsByName() map[string][]*Submission {
	out := map[string][]*Submission{}
	for i := range h.Submissions {
		s := &h.Submissions[i]
		out[s.Name] = append(out[s.Name], s)
	}
	return out
}

// submissionOf returns a function that finds the submission of a job by the id of the
// job, or of its array; nil: it is not known.
func (h *History) submissionOf() func(id, array int64) *Submission {
	byID := map[int64]*Submission{}
	for i := range h.Submissions {
		if s := &h.Submissions[i]; s.ID != 0 {
			byID[s.ID] = s
		}
	}
	return func(id, array int64) *Submission {
		if array != 0 {
			return byID[array]
		}
		return byID[id]
	}
}

// requested reports whether a command with the verb about the job, or about its array, was
// called before the time. Its exit code does not matter: the answer can be lost.
func (h *History) requested(verb string, id, array int64, before time.Time) bool {
	return slices.ContainsFunc(h.Operations, func(o Operation) bool {
		return o.Verb == verb && (o.Job == id || array != 0 && o.Job == array) && !o.Call.After(before)
	})
}

// disturbed reports whether a fault was active between the two times.
func (h *History) disturbed(from, to time.Time) bool {
	return slices.ContainsFunc(h.Faults, func(f Fault) bool { return !f.Begin.After(to) && !f.End.Before(from) })
}

// NextStart returns how long after the time the next job was placed, and how long until a
// job that was placed later than that wrote its first line; false: none did.
func NextStart(h *History, after time.Time) (placed, started time.Duration, ok bool) {
	var place, start time.Time
	later := map[int64]time.Time{}
	for _, p := range h.Placements {
		if p.At.After(after) {
			later[p.Job] = p.At
			place = first(place, p.At)
		}
	}
	for _, m := range h.Marks {
		if at, ok := later[m.Job]; ok && m.Kind == "start" && m.At.After(at) {
			start = first(start, m.At)
		}
	}
	return place.Sub(after), start.Sub(after), !place.IsZero() && !start.IsZero()
}

// first returns the earlier of two times; zero is none.
func first(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
