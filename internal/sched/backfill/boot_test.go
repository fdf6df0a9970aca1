package backfill

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// bootNodes returns running nodes and then nodes that have to boot, with one CPU each.
func bootNodes(running int, boots ...int64) []Node {
	out := nodes(running+len(boots), 1)
	for i, b := range boots {
		out[running+i].Boot = b
	}
	return out
}

// busy returns jobs of one CPU that run on the first nodes, by their ends.
func busy(ends ...int64) []Running {
	var out []Running
	for i, end := range ends {
		var cpus CPUSet
		cpus.Add(0)
		out = append(out, Running{ID: int64(1000 + i), End: end,
			Allocation: []NodeAllocation{{Node: i, CPUs: cpus}}})
	}
	return out
}

func oneNode(id int64) Job { return Job{ID: id, Submit: id, Duration: 600, MinNodes: 1, MaxNodes: 1} }

func gang(id int64, n int) Job {
	return Job{ID: id, Submit: id, Duration: 600, MinNodes: n, MaxNodes: n}
}

func TestJobsGetNodesThatBoot(t *testing.T) {
	limited := oneNode(1)
	limited.Limits = []int{0}
	waits := oneNode(1)
	waits.Begin = 50
	reserved := oneNode(1)
	reserved.Reservation = "r"
	urgent := oneNode(1)
	urgent.Deadline = 650
	array := oneNode(1)
	array.Copies = 3
	for name, c := range map[string]struct {
		nodes   []Node
		running []Running
		jobs    []Job
		want    []string
	}{
		"a node boots": {bootNodes(0, 100), nil, []Job{oneNode(1)}, []string{"now n1:1/1 boots 100"}},
		"nodes that run come first": {bootNodes(1, 100), nil, []Job{oneNode(1), oneNode(2)},
			[]string{"now n1:1/1", "now n2:1/1 boots 100"}},
		"a gang boots what it lacks": {bootNodes(1, 100, 200, 300), nil, []Job{gang(1, 3)},
			[]string{"now n1:1/1 n2:1/1 n3:1/1 boots 200"}},
		"a gang that cannot be complete boots nothing": {bootNodes(1, 100), busy(5000), []Job{gang(1, 2)},
			[]string{"at 5000 n1:1/1 n2:1/1 (Resources)"}},
		"a node that is free sooner is awaited": {bootNodes(1, 100), busy(60), []Job{oneNode(1)},
			[]string{"at 60 n1:1/1 (Resources)"}},
		"by one job": {bootNodes(1, 100, 100), busy(60), []Job{oneNode(1), oneNode(2), oneNode(3)},
			[]string{"at 60 n1:1/1 (Resources)", "now n2:1/1 boots 100", "now n3:1/1 boots 100"}},
		"by one task of an array": {bootNodes(1, 100, 100), busy(60), []Job{array},
			[]string{"at 60 n1:1/1 (Resources)", "now n2:1/1 boots 100", "now n3:1/1 boots 100"}},
		"a node that is free later is not awaited": {bootNodes(1, 100), busy(101), []Job{oneNode(1)},
			[]string{"now n2:1/1 boots 100"}},
		"not for a job over a limit": {bootNodes(0, 100), nil, []Job{limited}, []string{"never (QOSMaxJobs)"}},
		"not for a job that begins later": {bootNodes(0, 10), nil, []Job{waits},
			[]string{"at 50 n1:1/1 (BeginTime)"}},
		"not for a job of a reservation": {bootNodes(0, 100), nil, []Job{reserved},
			[]string{"at 100 n1:1/1 (ReqNodeNotAvail, May be reserved for other job)"}},
		"not after a deadline": {bootNodes(0, 100), nil, []Job{urgent}, []string{"never (Resources)"}},
		"the soonest first":    {bootNodes(0, 30, 100), nil, []Job{oneNode(1)}, []string{"now n1:1/1 boots 30"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Snapshot{Nodes: c.nodes, Running: c.running, Pending: c.jobs, Policy: DefaultPolicy(),
				Limits: []Limit{{Reason: "QOSMaxJobs", Quantity: QuantityJobs}}}
			if reserved.Reservation == c.jobs[0].Reservation {
				all := NodeSet{}
				all.Add(0)
				s.AdvanceReservations = []AdvanceReservation{{Name: "r", End: Forever, Nodes: all}}
			}
			var got []string
			for _, d := range s.Plan().Decisions {
				text := show(s, d)
				if d.Boot > 0 {
					text += fmt.Sprint(" boots ", d.Boot)
				}
				got = append(got, text)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// The next cycle, in which the first job holds the node that boots for it, does not give the
// node to another job, and a job that fits beside it shares its boot.
func TestNodesThatBootAreShared(t *testing.T) {
	s := &Snapshot{Nodes: nodes(2, 4), Policy: DefaultPolicy()}
	s.Nodes[0].Boot, s.Nodes[1].Boot = 40, 100
	var cpus CPUSet
	cpus.AddRange(0, 2)
	s.Running = []Running{{ID: 1, End: 640, Allocation: []NodeAllocation{{Node: 0, CPUs: cpus}}}}
	s.Pending = []Job{{ID: 2, Duration: 60, MinNodes: 1, Tasks: 2}, {ID: 3, Duration: 60, MinNodes: 1, Tasks: 3}}
	p := s.Plan()
	if d := p.Decisions[0]; !d.StartNow || d.Nodes[0].Node != 0 || d.Boot != 40 || d.Nodes[0].CPUs.String() != "2-3" {
		t.Errorf("job 2: %+v", d)
	}
	if d := p.Decisions[1]; !d.StartNow || d.Nodes[0].Node != 1 || d.Boot != 100 {
		t.Errorf("job 3: %+v", d)
	}
}

// With nodes that boot, a Queue starts the jobs that a plan starts, and nothing is
// over-committed.
func TestQueueBootsWhatThePlanBoots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRich(t)
		for i := range s.Nodes {
			if rapid.Bool().Draw(t, "boots") {
				s.Nodes[i].Boot = rapid.Int64Range(1, 60).Draw(t, "boot")
			}
		}
		p := s.Plan()
		for _, d := range p.Decisions {
			i := slices.IndexFunc(s.Pending, func(j Job) bool { return j.ID == d.ID })
			checkGang(t, s, s.Pending[i], d)
			if boot := slices.MaxFunc(append([]Assignment{{Node: -1}}, d.Nodes...), func(a, b Assignment) int {
				return int(bootAt(s, a) - bootAt(s, b))
			}); d.StartNow && bootAt(s, boot) != d.Boot {
				t.Fatalf("job %d waits %d seconds for %+v", d.ID, d.Boot, d.Nodes)
			}
			d.Duration = addDurations(d.Duration, d.Boot)
			checkReservations(t, s, s.Pending[i], d)
		}
		checkGroups(t, s, p)
		q := NewQueue(s)
		var started []Decision
		for _, d := range p.Decisions {
			if d.StartNow {
				started = append(started, d)
			}
		}
		got := q.Decide(s.Now)
		if len(got) != len(started) {
			t.Fatalf("the queue starts %+v\nthe plan %+v", got, started)
		}
		for i := range got {
			if got[i].ID != started[i].ID || got[i].Boot != started[i].Boot {
				t.Fatalf("the queue starts %+v\nthe plan %+v", got, started)
			}
		}
		start(s, p)
		checkHeld(t, s)
	})
}

func bootAt(s *Snapshot, a Assignment) int64 {
	if a.Node < 0 {
		return 0
	}
	return s.Nodes[a.Node].Boot
}
