package history

import (
	"slices"
	"testing"
	"time"
)

// at returns the time that many seconds after the beginning of the history.
func at(seconds float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// submitted is an accepted submission of job id at second t, which takes 0.1 s.
func submitted(id int64, t float64, change ...func(*Job)) Submission {
	s := Submission{Name: "job" + string(rune('a'+id%26)), User: "anna", Call: at(t), Return: at(t + 0.1), ID: id,
		Job: Job{Nodes: 1, CPUs: 2, Run: time.Second}}
	for _, c := range change {
		c(&s.Job)
	}
	return s
}

// ran returns the marks of an attempt of a job between two seconds, with the exit code 0.
func ran(id, restart int64, from, to float64) []Mark {
	m := Mark{Kind: "start", Job: id, Restart: restart, Node: "n1", Step: "batch", At: at(from)}
	marks := []Mark{m}
	m.Kind = "beat"
	for t := from + 0.25; t < to; t += 0.25 {
		m.At = at(t)
		marks = append(marks, m)
	}
	m.Kind, m.At = "end", at(to)
	return append(marks, m)
}

// killed returns the marks of an attempt that was killed: without the end mark.
func killed(id, restart int64, from, to float64) []Mark {
	marks := ran(id, restart, from, to)
	marks[len(marks)-1].Kind = "beat"
	return marks
}

func ended(id int64, state string, start, end float64) Record {
	return Record{ID: id, Name: submitted(id, 0).Name, User: "anna", State: state, Start: at(start), End: at(end)}
}

// two returns a correct history of the jobs 1 and 2, which ran one after the other.
func two(change ...func(*History)) *History {
	h := &History{
		Submissions: []Submission{submitted(1, 0), submitted(2, 1)},
		Marks:       append(ran(1, 0, 2, 3), ran(2, 0, 4, 5)...),
		Records:     []Record{ended(1, "COMPLETED", 2, 3), ended(2, "COMPLETED", 4, 5)},
		Nodes:       map[string]Node{"n1": {CPUs: 4, GPUs: 2}},
		Licenses:    map[string]int64{"lic": 1},
	}
	for _, c := range change {
		c(h)
	}
	return h
}

// job changes what job i (from 0) requested.
func job(i int, change func(*Job)) func(*History) {
	return func(h *History) { change(&h.Submissions[i].Job) }
}

// marks replaces what the jobs wrote.
func marks(lists ...[]Mark) func(*History) {
	return func(h *History) {
		h.Marks = nil
		for _, l := range lists {
			h.Marks = append(h.Marks, l...)
		}
	}
}

// done adds an operation that takes 0.1 s.
func done(verb string, id int64, t float64) func(*History) {
	return func(h *History) {
		h.Operations = append(h.Operations, Operation{Verb: verb, Job: id, Task: -1, Call: at(t), Return: at(t + 0.1)})
	}
}

func state(i int, s string) func(*History) { return func(h *History) { h.Records[i].State = s } }

func fault(kind string, from, to float64) func(*History) {
	return func(h *History) { h.Faults = append(h.Faults, Fault{Kind: kind, Begin: at(from), End: at(to)}) }
}

// placed adds the CPUs and the GPUs of an attempt of a job on n1.
func placed(id, restart int64, cpus, gpus []int64) func(*History) {
	return func(h *History) {
		h.Placements = append(h.Placements, Placement{Job: id, Restart: restart, Nodes: []Share{{Node: "n1", CPUs: cpus,
			GPUs: gpus}}})
	}
}

func depends(kind string) func(*Job) { return func(j *Job) { j.Dependency = Dependency{kind, 1} } }

// array makes job 1 an array of the tasks 1 and 2; the second has job 2's marks.
func array(throttle int) func(*History) {
	return func(h *History) {
		h.Submissions = h.Submissions[:1]
		h.Submissions[0].Job.Tasks, h.Submissions[0].Job.Throttle = []int{1, 2}, throttle
		for i := range h.Marks {
			h.Marks[i].Array, h.Marks[i].Task = 1, h.Marks[i].Job
		}
		for i := range h.Records {
			h.Records[i].Array, h.Records[i].Tasks, h.Records[i].Name = 1, []int{i + 1}, h.Submissions[0].Name
		}
	}
}

// corresponding makes the jobs 1 and 2 task 1 of two arrays; the second starts at that
// second and depends on the first.
func corresponding(start float64) func(*History) {
	return func(h *History) {
		h.Marks = append(ran(1, 0, 2, 3), ran(2, 0, start, start+1)...)
		for i := range h.Marks {
			h.Marks[i].Array, h.Marks[i].Task = h.Marks[i].Job, 1
		}
		for i := range h.Submissions {
			h.Submissions[i].Job.Tasks = []int{1}
		}
		h.Submissions[1].Job.Dependency = Dependency{"aftercorr", 1}
	}
}

// suspended leaves out the marks of job 1 between the two seconds.
func suspended(from, to float64) func(*History) {
	return func(h *History) {
		h.Marks = slices.DeleteFunc(h.Marks, func(m Mark) bool {
			return m.Job == 1 && m.At.After(at(from)) && m.At.Before(at(to))
		})
	}
}

// together are the marks of the jobs 1 and 2 at the same time.
var together = marks(ran(1, 0, 2, 4), ran(2, 0, 3, 5))

// cases has, for each promise, histories that keep it and that break it.
var cases = []struct {
	promise string
	broken  bool
	history *History
}{
	{"every accepted job is recorded", false, two()},
	{"every accepted job is recorded", false, two(func(h *History) {
		h.Submissions = append(h.Submissions, Submission{Name: "refused", Exit: 1})
	})},
	{"every accepted job is recorded", true, two(func(h *History) { h.Records = h.Records[:1] })},
	{"every accepted job is recorded", true, two(func(h *History) { h.Submissions[0].ID = 0 })},
	{"every accepted job is recorded", false, two(array(0))},
	{"every accepted job is recorded", true, two(array(0), func(h *History) { h.Records[1].Tasks = []int{1} })},

	{"a job has one final state", false, two(state(0, "CANCELLED by 1000"), done("cancel", 1, 1))},
	{"a job has one final state", true, two(state(0, "RUNNING"))},
	{"a job has one final state", true, two(func(h *History) { h.Records = append(h.Records, h.Records[0]) })},

	{"a submission makes one job", false, two(func(h *History) { h.Submissions[0].ID, h.Submissions[0].Exit = 0, 1 })},
	{"a submission makes one job", true, two(func(h *History) {
		r := ended(3, "COMPLETED", 4, 5)
		r.Name = h.Submissions[0].Name
		h.Records = append(h.Records, r)
	})},
	{"a submission makes one job", true, two(func(h *History) { h.Submissions = h.Submissions[1:] })},

	{"the final state is what happened", false, two(state(0, "FAILED"), fault("node", 2, 3), marks(killed(1, 0, 2, 3)),
		state(1, "CANCELLED"), done("cancel", 2, 1))},
	{"the final state is what happened", true, two(marks(ran(2, 0, 4, 5)))},
	{"the final state is what happened", true, two(marks(killed(1, 0, 2, 3), ran(2, 0, 4, 5)))},
	{"the final state is what happened", true, two(state(0, "FAILED"))},
	{"the final state is what happened", true, two(state(0, "FAILED"), marks(killed(1, 0, 2, 3), ran(2, 0, 4, 5)))},
	{"the final state is what happened", true, two(state(0, "NODE_FAIL"))},
	{"the final state is what happened", false, two(state(0, "NODE_FAIL"), fault("node", 2.5, 9))},
	{"the final state is what happened", true, two(state(1, "CANCELLED"))},
	{"the final state is what happened", true, two(state(1, "CANCELLED"), done("cancel", 1, 1))},
	{"the final state is what happened", true, two(state(1, "CANCELLED"), done("cancel", 2, 8))},
	{"the final state is what happened", false, two(state(1, "CANCELLED"), done("suspend", 2, 4.5), done("cancel", 2, 8))},
	{"the final state is what happened", true, two(state(1, "CANCELLED"), done("suspend", 2, 4.5))},
	{"the final state is what happened", true, two(state(0, "TIMEOUT"))},
	{"the final state is what happened", true, two(state(0, "TIMEOUT"),
		job(0, func(j *Job) { j.Limit = time.Minute }))},

	{"no task runs twice without a requeue", false, two(marks(killed(1, 0, 2, 3), ran(1, 1, 3, 4), ran(2, 0, 4, 5)))},
	{"no task runs twice without a requeue", true, two(marks(killed(1, 0, 2, 3), ran(1, 0, 3, 4), ran(2, 0, 4, 5)))},

	{"attempts do not overlap", false, two(marks(killed(1, 0, 2, 3), ran(1, 1, 3.5, 4)))},
	{"attempts do not overlap", true, two(marks(killed(1, 0, 2, 4), ran(1, 1, 3.5, 5)))},

	{"nothing runs after its end", false, two(marks(ran(1, 0, 2, 3.9)))},
	{"nothing runs after its end", true, two(marks(ran(1, 0, 2, 9)))},
	{"nothing runs after its end", false, two(marks(ran(1, 0, 2, 9)), state(0, "TIMEOUT"))},
	{"nothing runs after its end", true, two(marks(ran(1, 0, 2, 30)), state(0, "TIMEOUT"))},

	{"dependencies hold", false, two(job(1, depends("afterok")))},
	{"dependencies hold", false, two(job(1, depends("afternotok")), state(0, "FAILED"))},
	{"dependencies hold", true, two(job(1, depends("afterok")), state(0, "FAILED"))},
	{"dependencies hold", true, two(job(1, depends("afternotok")))},
	{"dependencies hold", true, two(job(1, depends("afterany")), together)},
	{"dependencies hold", false, two(job(1, depends("after")), together)},
	{"dependencies hold", true, two(job(1, depends("after")), marks(ran(2, 0, 4, 5)))},
	{"dependencies hold", false, two(job(1, depends("after")), marks(ran(2, 0, 4, 5)), done("cancel", 1, 1))},
	{"dependencies hold", false, two(job(1, depends("afterany")), together, done("requeue", 1, 1))},
	{"dependencies hold", false, two(job(1, depends("afterany")), marks(ran(1, 0, 2, 3), ran(2, 0, 4, 6), ran(1, 1, 5, 7)),
		done("requeue", 1, 4.5))},
	{"dependencies hold", true, two(job(1, depends("afterany")), marks(ran(1, 0, 2, 3), ran(2, 0, 4, 6), ran(1, 1, 5, 7)))},
	{"dependencies hold", true, two(job(1, depends("afterany")), marks(ran(1, 0, 2, 5), ran(2, 0, 4, 6), ran(1, 1, 6, 7)),
		done("requeue", 1, 5.5))},

	{"dependencies hold", false, two(corresponding(4))},
	{"dependencies hold", true, two(corresponding(2.5))},
	{"dependencies hold", true, two(corresponding(4), func(h *History) {
		h.Marks = slices.DeleteFunc(h.Marks, func(m Mark) bool { return m.Job == 1 })
	})},

	{"no job starts before its time", false, two(job(1, func(j *Job) { j.Begin = at(4) }))},
	{"no job starts before its time", true, two(job(1, func(j *Job) { j.Begin = at(4.5) }))},

	{"no held job starts", false, two(job(1, func(j *Job) { j.Held = true }), done("release", 2, 3.9))},
	{"no held job starts", true, two(job(1, func(j *Job) { j.Held = true }))},
	{"no held job starts", true, two(job(1, func(j *Job) { j.Held = true }), done("release", 2, 4.5))},
	{"no held job starts", false, two(done("hold", 2, 1.5))},
	{"no held job starts", true, two(done("hold", 2, 1.5), func(h *History) {
		h.Sightings = []Sighting{{2, at(2), at(2.1), "PENDING"}}
	})},

	{"singletons run one at a time", false, two(singletons)},
	{"singletons run one at a time", true, two(singletons, together)},

	{"an array's throttle holds", false, two(array(1))},
	{"an array's throttle holds", false, two(together, array(2))},
	{"an array's throttle holds", true, two(together, array(1))},

	{"no CPU is shared", false, two(together, placed(1, 0, []int64{0, 1}, nil), placed(2, 0, []int64{2, 3}, nil))},
	{"no CPU is shared", false, two(placed(1, 0, []int64{0, 1}, nil), placed(2, 0, []int64{0, 1}, nil))},
	{"no CPU is shared", true, two(together, placed(1, 0, []int64{0, 1}, nil), placed(2, 0, []int64{1, 2}, nil))},

	{"no CPU is shared", false, two(marks(ran(1, 0, 2, 9), ran(2, 0, 4, 5)), suspended(3, 6),
		placed(1, 0, []int64{0}, nil), placed(2, 0, []int64{0}, nil))},

	{"no GPU is shared", false, two(together, placed(1, 0, nil, []int64{0}), placed(2, 0, nil, []int64{1}))},
	{"no GPU is shared", true, two(together, placed(1, 0, nil, []int64{0}), placed(2, 0, nil, []int64{0}))},
	{"no GPU is shared", true, two(together, func(h *History) {
		for i := range h.Marks {
			h.Marks[i].GPUs = "1"
		}
	})},

	{"no node is overcommitted", false, two(together)},
	{"no node is overcommitted", true, two(together, job(0, func(j *Job) { j.CPUs = 3 }))},
	{"no node is overcommitted", true, two(func(h *History) { h.Marks[0].Node = "n9" })},

	{"licenses suffice", false, two(licensed)},
	{"licenses suffice", true, two(licensed, together)},

	{"time limits hold", false, two(limited, marks(ran(1, 0, 2, 70)))},
	{"time limits hold", true, two(limited, marks(ran(1, 0, 2, 80)))},
	{"time limits hold", false, two(limited, marks(ran(1, 0, 2, 80)), fault("scheduler", 60, 70))},

	{"ids are unique and increase", false, two()},
	{"ids are unique and increase", true, two(func(h *History) { h.Submissions[1].ID = 1 })},
	{"ids are unique and increase", true, two(func(h *History) {
		h.Submissions[0].ID, h.Submissions[1].ID = 2, 1
	})},
	{"ids are unique and increase", false, two(func(h *History) {
		h.Submissions[0].ID, h.Submissions[1].ID = 2, 1
		h.Submissions[1].Call = h.Submissions[0].Call
	})},

	{"nothing is stuck", false, two(func(h *History) { h.Queue = []Row{{ID: 1, State: "COMPLETED"}} })},
	{"nothing is stuck", true, two(func(h *History) { h.Queue = []Row{{ID: 1, State: "COMPLETING"}} })},

	{"nothing is left behind", false, two()},
	{"nothing is left behind", true, two(func(h *History) { h.Left = []string{"a pod"} })},
}

func singletons(h *History) {
	for i := range h.Submissions {
		h.Submissions[i].Name, h.Submissions[i].Job.Singleton = "only", true
	}
}

func licensed(h *History) {
	for i := range h.Submissions {
		h.Submissions[i].Job.License = "lic"
	}
}

func limited(h *History) { h.Submissions[0].Job.Limit = time.Minute }

func TestPromisesAreCheckedOnCorrectAndWrongHistories(t *testing.T) {
	for i, c := range cases {
		var found []string
		for _, v := range Check(c.history) {
			if v.Promise == c.promise {
				found = append(found, v.Text)
			}
		}
		if (len(found) > 0) != c.broken {
			t.Errorf("case %d, %q: broken is %v, found %q", i, c.promise, c.broken, found)
		}
	}
}

// TestEveryPromiseHasBothHistories keeps the table above complete.
func TestEveryPromiseHasBothHistories(t *testing.T) {
	for _, p := range Promises {
		var kept, broken bool
		for _, c := range cases {
			if c.promise == p.Name {
				kept, broken = kept || !c.broken, broken || c.broken
			}
		}
		if !kept || !broken {
			t.Errorf("promise %q: a history that keeps it: %v, one that breaks it: %v", p.Name, kept, broken)
		}
	}
	for _, c := range cases {
		known := false
		for _, p := range Promises {
			known = known || p.Name == c.promise
		}
		if !known {
			t.Errorf("no promise is called %q", c.promise)
		}
	}
}

func TestCorrectHistoryBreaksNoPromise(t *testing.T) {
	for _, h := range []*History{{}, two(), two(array(2)), two(together)} {
		if found := Check(h); len(found) > 0 {
			t.Errorf("found %v", found)
		}
	}
}

func TestNextStart(t *testing.T) {
	h := two()
	h.Placements = []Placement{{Job: 1, At: at(1.5)}, {Job: 2, At: at(3.5)}}
	if placed, started, ok := NextStart(h, at(2.5)); placed != time.Second || started != 1500*time.Millisecond || !ok {
		t.Errorf("placed after %v, started after %v, %v", placed, started, ok)
	}
	if _, _, ok := NextStart(h, at(4)); ok {
		t.Error("a job started after the last one")
	}
}
