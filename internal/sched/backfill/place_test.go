package backfill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func set(members ...int) *NodeSet {
	s := &NodeSet{}
	for _, m := range members {
		s.Add(m)
	}
	return s
}

// outcome returns the decisions of the plan, one on each line.
func outcome(s *Snapshot) string {
	var out []string
	for _, d := range s.Plan().Decisions {
		out = append(out, show(s, d))
	}
	return strings.Join(out, "\n")
}

// checkPlan fails unless the plan of s is as wanted, with exact and with fixed slots.
func checkPlan(t *testing.T, name string, s Snapshot, want ...string) {
	t.Helper()
	for i := range s.Pending {
		j := &s.Pending[i]
		j.ID, j.Priority = int64(i+1), int64(100-i)
		if j.Duration == 0 {
			j.Duration = 100
		}
	}
	for _, coarse := range []bool{false, true} {
		s.Policy.forceCoarse = coarse
		if got := outcome(&s); got != strings.Join(want, "\n") {
			t.Errorf("%s (coarse %v):\n%s\nwant\n%s", name, coarse, got, strings.Join(want, "\n"))
		}
	}
}

// weighted returns four nodes of four CPUs in the order of their weights.
func weighted() []Node {
	n := nodes(4, 4)
	n = []Node{n[1], n[3], n[2], n[0]}
	for i, place := range []int{1, 3, 2, 0} {
		n[i].Position = place
	}
	return n
}

func TestPlacement(t *testing.T) {
	paths := nodes(4, 4)
	for i, p := range []string{"a.1", "a.2", "b.1", "b.1"} {
		paths[i].TopologyPath = strings.Split(p, ".")
		paths[i].TopologyPath[1] = p
	}
	for _, c := range []struct {
		name  string
		nodes []Node
		jobs  []Job
		want  []string
	}{
		{"parts", nodes(4, 4), []Job{{MinNodes: 3, ConstraintCounts: []ConstraintCount{{set(2, 3), 2}, {set(0, 3), 1}}}}, []string{"now n1:1/1 n3:1/1 n4:1/1"}},
		{"parts on nodes of different sizes", append(nodes(1, 1), Node{Name: "n2", CPUs: 4, Memory: 100}), []Job{{MinNodes: 1, MaxNodes: 1, Tasks: 2, ConstraintCounts: []ConstraintCount{{set(0, 1), 1}}}}, []string{"now n2:2/2"}},
		{"parts that cannot be", nodes(4, 4), []Job{{ConstraintCounts: []ConstraintCount{{set(2), 2}}}}, []string{"never (BadConstraints)"}},
		// As Slurm 22.05.8 placed them on nodes of four CPUs.
		{"more tasks than CPUs", nodes(1, 4), []Job{{Tasks: 9, Overcommit: true}}, []string{"now n1:9/1"}},
		{"more tasks than any node has", nodes(1, 4), []Job{{Tasks: 513, CPUsPerTask: 3, Overcommit: true}}, []string{"now n1:513/3"}},
		{"overcommitted evenly", nodes(2, 4), []Job{{Tasks: 9, MinNodes: 2, MaxNodes: 2, Overcommit: true}}, []string{"now n1:5/1 n2:4/1"}},
		{"overcommitted range", nodes(4, 4), []Job{{Tasks: 9, MinNodes: 2, MaxNodes: 3, Overcommit: true}}, []string{"now n1:3/1 n2:3/1 n3:3/1"}},
		{"overcommitted per node", nodes(2, 4), []Job{{TasksPerNode: 3, MinNodes: 2, ExactPerNode: true, Overcommit: true}}, []string{"now n1:3/1 n2:3/1"}},
		{"overcommitted per core", nodes(1, 4), []Job{{Tasks: 6, TasksPerCore: 1, TasksPerSocket: 2, Overcommit: true}}, []string{"now n1:6/1"}},
		{"more per node than CPUs", nodes(2, 4), []Job{{TasksPerNode: 6, MinNodes: 2, ExactPerNode: true, Overcommit: true}}, []string{"never (BadConstraints)"}},
		{"more than per node allows", nodes(4, 4), []Job{{Tasks: 12, TasksPerNode: 3, MinNodes: 2, MaxNodes: 2, Overcommit: true}}, []string{"never (BadConstraints)"}},
		{"a task too large", nodes(1, 4), []Job{{Tasks: 2, CPUsPerTask: 5, Overcommit: true}}, []string{"never (BadConstraints)"}},
		{"overcommitted beside others", nodes(1, 4), []Job{{CPUsPerTask: 3}, {Tasks: 50, Overcommit: true}}, []string{"now n1:1/3", "now n1:50/1"}},
		{"contiguous", nodes(4, 4), []Job{{CPUsPerTask: 4, Required: []int{1}}, {MinNodes: 2, CPUsPerTask: 4, Contiguous: true}},
			[]string{"now n2:1/4", "now n3:1/4 n4:1/4"}},
		{"two below one switch", paths, []Job{{MinNodes: 2}}, []string{"now n3:1/1 n4:1/1"}},
		{"three on two switches", paths, []Job{{MinNodes: 3, Switches: 2}}, []string{"now n1:1/1 n3:1/1 n4:1/1"}},
		{"a switch to wait for", paths, []Job{{CPUsPerTask: 4, Required: []int{2}}, {MinNodes: 2, CPUsPerTask: 4, Switches: 1}},
			[]string{"now n3:1/4", "at 100 n3:1/4 n4:1/4 (Resources)"}},
		{"until it takes any", paths, []Job{{CPUsPerTask: 4, Required: []int{2}}, {MinNodes: 2, CPUsPerTask: 4, Switches: 1, SwitchesUntil: 40}},
			[]string{"now n3:1/4", "at 40 n1:1/4 n2:1/4 (Resources)"}},
		// Nodes of weights 1 1 5 10 in the order n2 n4 n3 n1, as Slurm 22.05.8 gave them.
		{"one of weights", weighted(), []Job{{CPUsPerTask: 4}}, []string{"now n2:1/4"}},
		{"two of weights", weighted(), []Job{{MinNodes: 2, CPUsPerTask: 4}}, []string{"now n2:1/4 n4:1/4"}},
		{"three of weights", weighted(), []Job{{MinNodes: 3, CPUsPerTask: 4}}, []string{"now n2:1/4 n3:1/4 n4:1/4"}},
		{"a range of weights", weighted(), []Job{{MinNodes: 1, MaxNodes: 3, Tasks: 3, Exclusive: true}}, []string{"now n2:1/4 n3:1/4 n4:1/4"}},
		{"the heaviest by name", weighted(), []Job{{MinNodes: 2, CPUsPerTask: 4, Required: []int{3}}}, []string{"now n1:1/4 n2:1/4"}},
		{"tasks over weights", weighted(), []Job{{Tasks: 6}}, []string{"now n2:4/4 n4:2/2"}},
		{"neighbours whatever they weigh", weighted(), []Job{{MinNodes: 2, CPUsPerTask: 4, Contiguous: true}}, []string{"now n1:1/4 n2:1/4"}},
		{"three neighbours", weighted(), []Job{{MinNodes: 3, CPUsPerTask: 4, Contiguous: true}}, []string{"now n1:1/4 n2:1/4 n3:1/4"}},
		{"wide", nodes(4, 4), []Job{{Tasks: 6, SpreadJob: true}}, []string{"now n1:2/2 n2:2/2 n3:1/1 n4:1/1"}},
		{"narrow", nodes(4, 4), []Job{{MinNodes: 1, MaxNodes: 3, Tasks: 5, UseMinNodes: true}}, []string{"now n1:4/4 n2:1/1"}},
		{"more nodes than there are", nodes(4, 4), []Job{{MinNodes: 5}}, []string{"never (BadConstraints)"}},
		{"sockets", nodes(4, 4), []Job{{SocketsPerNode: 2}}, []string{"never (BadConstraints)"}},
	} {
		checkPlan(t, c.name, Snapshot{Nodes: c.nodes, Pending: c.jobs}, c.want...)
	}
}

func TestTimes(t *testing.T) {
	full := []Running{{ID: 50, End: 60, Allocation: []NodeAllocation{held(0, 0, 4)}}}
	for _, c := range []struct {
		name string
		s    Snapshot
		want []string
	}{
		{"less time to start earlier", Snapshot{Nodes: nodes(2, 4), Running: full, Pending: []Job{
			{MinNodes: 2, CPUsPerTask: 4}, {Duration: 200, MinDuration: 30}}},
			[]string{"at 60 n1:1/4 n2:1/4 (Resources)", "now n2:1/1"}},
		{"a deadline that holds", Snapshot{Nodes: nodes(1, 4), Running: full, Pending: []Job{{Deadline: 160}}}, []string{"at 60 n1:1/1 (Resources)"}},
		{"a deadline that cannot", Snapshot{Nodes: nodes(1, 4), Running: full, Pending: []Job{{Deadline: 159}}}, []string{"never (Resources)"}},
		{"a deadline that is over", Snapshot{Nodes: nodes(1, 4), Pending: []Job{{Deadline: 99}}}, []string{"never (DeadLine)"}},
		{"licenses", Snapshot{Nodes: nodes(2, 4), Licenses: []License{{"matlab", 2}}, Running: []Running{{ID: 50, End: 60, Licenses: []License{{"matlab", 1}}}},
			Pending: []Job{{Licenses: []License{{"matlab", 2}}}, {Licenses: []License{{"matlab", 1}}, Duration: 60}, {Licenses: []License{{"matlab", 3}}}}},
			[]string{"at 60 n1:1/1 (Licenses)", "now n1:1/1", "never (BadConstraints)"}},
		{"a reservation", Snapshot{Nodes: nodes(2, 4), AdvanceReservations: []AdvanceReservation{{Name: "r", Start: 50, End: 300, Nodes: *set(0)}},
			Pending: []Job{{Tasks: 4}, {Tasks: 4}, {Tasks: 4, Reservation: "r"}, {Tasks: 1, Duration: 50}, {Reservation: "x"}}},
			[]string{"now n2:4/4", "at 100 n2:4/4 (Resources)", "at 50 n1:4/4 (Reservation)", "now n1:1/1", "never (ReqNodeNotAvail, May be reserved for other job)"}},
		// As Slurm 22.05.8: a job starts in its reservation however long it asks
		// for, and is gone when that ends; others may be planned from then on.
		{"longer than its reservation", Snapshot{Nodes: nodes(1, 4), AdvanceReservations: []AdvanceReservation{{Name: "r", End: 60, Nodes: *set(0)}, {Name: "s", Start: 60, End: 90, Nodes: *set(0)}},
			Pending: []Job{{Tasks: 4, Reservation: "r"}, {Tasks: 4, Reservation: "s"}, {Tasks: 4, Duration: 50}}},
			[]string{"now n1:4/4", "at 60 n1:4/4 (Reservation)", "at 90 n1:4/4 (ReqNodeNotAvail, May be reserved for other job)"}},
		{"cores", Snapshot{Nodes: nodes(1, 4), AdvanceReservations: []AdvanceReservation{{Name: "r", Start: 0, End: 200, Cores: map[int]CPUSet{0: cpus(0, 2)}}},
			Pending: []Job{{Tasks: 2, Duration: 52, Reservation: "r"}, {Tasks: 1, Duration: 52}, {Tasks: 2, Duration: 52}, {Tasks: 1, Duration: 52, Reservation: "r"}, {Tasks: 4, Duration: 52}}},
			[]string{"now n1:2/2", "now n1:1/1", "at 52 n1:2/2 (Resources)", "at 52 n1:1/1 (Priority)", "at 200 n1:4/4 (Priority)"}},
		{"kept licenses", Snapshot{Nodes: nodes(2, 4), Licenses: []License{{"m", 5}}, AdvanceReservations: []AdvanceReservation{{Name: "r", Start: 0, End: 300, Licenses: []License{{"m", 4}}, AnyNodes: true}},
			Pending: []Job{{Licenses: []License{{"m", 2}}}, {Licenses: []License{{"m", 1}}}, {Licenses: []License{{"m", 3}}, Reservation: "r"}, {Licenses: []License{{"m", 2}}, Reservation: "r"}}},
			[]string{"at 300 n1:1/1 (Licenses)", "now n1:1/1", "now n1:1/1", "at 100 n1:1/1 (Licenses)"}},
		{"licenses kept from tomorrow on", Snapshot{Nodes: nodes(2, 4), Licenses: []License{{"m", 5}}, AdvanceReservations: []AdvanceReservation{{Name: "r", Start: 50, End: 300, Licenses: []License{{"m", 4}}}},
			Pending: []Job{{Licenses: []License{{"m", 2}}, Duration: 50}, {Licenses: []License{{"m", 2}}, Duration: 51}}},
			[]string{"now n1:1/1", "at 300 n1:1/1 (Licenses)"}},
		{"attracted", Snapshot{Nodes: nodes(3, 4), AdvanceReservations: []AdvanceReservation{{Name: "r", End: 300, Nodes: *set(1)}},
			Pending: []Job{{Tasks: 4, ChoiceReservations: []string{"r", ""}, Alternatives: []*NodeSet{nil}}, {Tasks: 4, MinNodes: 2, ChoiceReservations: []string{"r", ""}, Alternatives: []*NodeSet{nil}}, {CPUsPerTask: 4}}},
			[]string{"now n2:4/4", "now n1:3/3 n3:1/1", "at 100 n1:1/4 (Resources)"}},
		{"an outage without end", Snapshot{Nodes: nodes(1, 4), AdvanceReservations: []AdvanceReservation{{End: Forever, Nodes: *set(0)}}, Pending: []Job{{}}}, []string{"never (ReqNodeNotAvail)"}},
	} {
		checkPlan(t, c.name, c.s, c.want...)
	}
	s := Snapshot{Nodes: nodes(2, 4), Running: full, Pending: []Job{
		{ID: 1, Priority: 2, MinNodes: 2, CPUsPerTask: 4, Duration: 100}, {ID: 2, Duration: 200, MinDuration: 30}}}
	if d := s.Plan().Decisions[1]; d.Duration != 60 {
		t.Errorf("the job runs for %d s, want the 60 that there are", d.Duration)
	}
}

func TestSharing(t *testing.T) {
	other := []Running{{ID: 50, End: 60, User: 1, Allocation: []NodeAllocation{held(0, 0, 1)}}}
	mine := []Running{{ID: 50, End: 60, User: 7, UserExclusive: true, Allocation: []NodeAllocation{held(0, 0, 1)}}}
	shared := []Running{{ID: 50, End: 60, Share: 2, Allocation: []NodeAllocation{held(0, 0, 4)}}}
	for _, c := range []struct {
		name string
		s    Snapshot
		want []string
	}{
		{"alone with another's job", Snapshot{Nodes: nodes(1, 4), Running: other, Pending: []Job{{User: 7, UserExclusive: true}}}, []string{"at 60 n1:1/1 (Resources)"}},
		{"alone with one's own", Snapshot{Nodes: nodes(1, 4), Running: mine, Pending: []Job{{User: 7, UserExclusive: true}, {User: 1}, {User: 7}}},
			[]string{"now n1:1/1", "at 100 n1:1/1 (Resources)", "now n1:1/1"}},
		{"CPUs for two", Snapshot{Nodes: nodes(1, 4), Running: shared, Pending: []Job{{Share: 2, Tasks: 3}, {Share: 2}, {Share: 2}, {}}},
			[]string{"now n1:3/3", "now n1:1/1", "at 60 n1:1/1 (Resources)", "at 60 n1:1/1 (Priority)"}},
	} {
		checkPlan(t, c.name, c.s, c.want...)
	}
}

func TestLimits(t *testing.T) {
	s := Snapshot{Nodes: nodes(2, 4),
		Limits:  []Limit{{Reason: "QOSMaxJobsPerUserLimit", Left: 2}, {Reason: "AssocGrpCpuLimit", Quantity: QuantityCPUs, Left: 3}, {Reason: "AssocGrpGRES", Quantity: QuantityGRES, GRES: "gpu", Left: 0}},
		Pending: []Job{{Limits: []int{0}}, {Tasks: 2, Limits: []int{0, 1}}, {Limits: []int{0}}, {Tasks: 2, Limits: []int{1}}, {Limits: []int{1}}, {Limits: []int{2}}}}
	checkPlan(t, "limits", s, "now n1:1/1", "now n1:2/2", "never (QOSMaxJobsPerUserLimit)", "never (AssocGrpCpuLimit)", "now n1:1/1", "now n2:1/1")
}

// Components of a group start at the same time, on nodes that fit all of them.
func TestGroupsStartTogether(t *testing.T) {
	s := Snapshot{Nodes: nodes(2, 4), Running: []Running{{ID: 50, End: 60, Allocation: []NodeAllocation{held(1, 0, 4)}}, {ID: 51, End: 80, Allocation: []NodeAllocation{held(0, 0, 1)}}},
		Pending: []Job{{Group: 9, Tasks: 3}, {Group: 9, CPUsPerTask: 4}, {Group: 8, Duration: 60}, {Group: 8, Duration: 60}, {}}}
	checkPlan(t, "a group waits", s, "at 60 n1:3/3 (Resources)", "at 60 n2:1/4 (Resources)", "at 160 n1:1/1 (Priority)", "at 160 n2:1/1 (Priority)", "at 80 n1:1/1 (Priority)")
	s.Running = s.Running[1:]
	checkPlan(t, "a group starts", s, "now n1:3/3", "now n2:1/4", "at 100 n1:1/1 (Resources)", "at 100 n2:1/1 (Resources)", "at 80 n1:1/1 (Priority)")
}

// Components never share a node, and those that require nodes get them.
func TestGroupsShareNoNode(t *testing.T) {
	s := Snapshot{Nodes: nodes(4, 4), Pending: []Job{{Group: 9}, {Group: 9, Tasks: 2}, {Group: 9, MinNodes: 2}, {}}}
	checkPlan(t, "a group", s, "now n1:1/1", "now n2:2/2", "now n3:1/1 n4:1/1", "now n1:1/1")
	s.Pending = []Job{{Group: 9}, {Group: 9, Required: []int{0}}, {Group: 9, Exclusive: true}}
	checkPlan(t, "a group with a required node", s, "now n2:1/1", "now n1:1/1", "now n3:1/4")
	s.Pending = []Job{{Group: 9, MinNodes: 4}, {Group: 9}, {}}
	checkPlan(t, "a group that is too large", s, "never (Resources)", "never (Resources)", "now n1:1/1")
	s.Running = []Running{{ID: 50, End: 60, Allocation: []NodeAllocation{held(1, 0, 4), held(2, 0, 4), held(3, 0, 4)}}}
	s.Pending = []Job{{Group: 9}, {Group: 9}}
	checkPlan(t, "a group that waits", s, "at 60 n1:1/1 (Resources)", "at 60 n2:1/1 (Resources)")
}

// A job that has its nodes for itself has all of their generic resources.
func TestWholeNodesWithTheirGRES(t *testing.T) {
	s := Snapshot{Nodes: nodes(2, 4), Pending: []Job{{Exclusive: true}, {Exclusive: true, Tasks: 2, GRES: []GRES{{Name: "gpu", Count: 1}}}}}
	for i := range s.Nodes {
		s.Nodes[i].GRES = []GRES{{Name: "gpu", Type: "tesla", Count: 3}, {Name: "nic", Count: 1}}
		s.Nodes[i].UsedGRES = []GRES{{Name: "gpu", Count: 1}, {Name: "nic", Count: 1}}
	}
	for _, d := range s.Plan().Decisions {
		if !d.StartNow || !slices.Equal(d.Nodes[0].GRES, []GRES{{Name: "gpu", Type: "tesla", Count: 2}}) {
			t.Errorf("%+v", d)
		}
	}
}

func TestCoresBySockets(t *testing.T) {
	n := nodes(1, 16)
	n[0].Sockets, n[0].ThreadsPerCore = 2, 2
	for _, c := range []struct {
		name string
		job  Job
		want string
	}{
		{"one socket in turn with the other", Job{Tasks: 3, CPUsPerTask: 2}, "0-3,8-9"},
		{"one socket after the other", Job{Tasks: 3, CPUsPerTask: 2, CoreDistribution: CoresBlock}, "0-5"},
		{"two tasks a socket", Job{Tasks: 4, CPUsPerTask: 2, CoreDistribution: CoresBlock, TasksPerSocket: 2}, "0-3,8-11"},
		{"one thread a core", Job{Tasks: 2, NoMultithread: true}, "0-1,8-9"},
		{"one task a core", Job{Tasks: 2, TasksPerCore: 1}, "0-1,8-9"},
		{"half a core is a core", Job{}, "0-1"},
	} {
		c.job.ID, c.job.Duration = 1, 60
		s := Snapshot{Nodes: n, Pending: []Job{c.job}}
		if d := s.Plan().Decisions[0]; !d.StartNow || d.Nodes[0].CPUs.String() != c.want {
			t.Errorf("%s: %+v, want CPUs %s", c.name, d, c.want)
		}
	}
}

// cpus returns the CPUs from..to-1.
func cpus(from, to int) CPUSet {
	var s CPUSet
	s.AddRange(from, to)
	return s
}

// A job that does not ask for a number of nodes gets the first node that runs all of
// its tasks, else the first nodes, as Slurm 22.05.8 placed such jobs on four nodes of
// four CPUs.
func TestOneNodeIfOneWillDo(t *testing.T) {
	for _, c := range []struct {
		free  [4]int
		tasks int
		want  string
	}{
		{[4]int{1, 4, 4, 4}, 2, "now n2:2/2"},
		{[4]int{1, 3, 4, 2}, 3, "now n2:3/3"},
		{[4]int{1, 3, 4, 2}, 4, "now n3:4/4"},
		{[4]int{1, 3, 2, 2}, 4, "now n1:1/1 n2:3/3"},
		{[4]int{1, 2, 3, 4}, 5, "now n1:1/1 n2:2/2 n3:2/2"},
		{[4]int{4, 4, 4, 4}, 6, "now n1:4/4 n2:2/2"},
		{[4]int{1, 1, 1, 1}, 3, "now n1:1/1 n2:1/1 n3:1/1"},
		{[4]int{2, 1, 4, 3}, 6, "now n1:2/2 n2:1/1 n3:3/3"},
		{[4]int{1, 4, 4, 4}, 8, "now n1:1/1 n2:4/4 n3:3/3"},
	} {
		s := Snapshot{Nodes: nodes(4, 4)}
		var want []string
		for i, free := range c.free {
			if free < 4 {
				s.Pending = append(s.Pending, Job{CPUsPerTask: 4 - free, Required: []int{i}})
				want = append(want, fmt.Sprintf("now n%d:1/%d", i+1, 4-free))
			}
		}
		s.Pending = append(s.Pending, Job{Tasks: c.tasks})
		checkPlan(t, fmt.Sprint(c.free, " free, ", c.tasks, " tasks"), s, append(want, c.want)...)
	}
}
