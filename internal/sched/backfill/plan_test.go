package backfill

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func nodes(n, cpus int) []Node {
	out := make([]Node, n)
	for i := range out {
		out[i] = Node{Name: fmt.Sprintf("n%d", i+1), CPUs: cpus, Memory: 4000}
	}
	return out
}

// show writes a decision as "now n1:4 n2:1", "at 60 n1:4 (Resources)" or "never (why)".
func show(s *Snapshot, d Decision) string {
	var b strings.Builder
	switch {
	case d.StartNow:
		b.WriteString("now")
	case d.Start > 0:
		fmt.Fprintf(&b, "at %d", d.Start)
	default:
		b.WriteString("never")
	}
	for _, a := range d.Nodes {
		fmt.Fprintf(&b, " %s:%d/%d", s.Nodes[a.Node].Name, a.Tasks, a.CPUCount)
	}
	if d.Reason != "" {
		fmt.Fprintf(&b, " (%s)", d.Reason)
	}
	return b.String()
}

// The placements are those of Slurm 22.05.8 on four nodes of four CPUs.
func TestLayoutIsSlurms(t *testing.T) {
	for _, c := range []struct {
		flags string
		job   Job
		want  string
	}{
		{"-N3 -n8", Job{MinNodes: 3, MaxNodes: 3, Tasks: 8}, "now n1:4/4 n2:3/3 n3:1/1"},
		{"-n5", Job{Tasks: 5}, "now n1:4/4 n2:1/1"},
		{"-n6 -N2", Job{MinNodes: 2, MaxNodes: 2, Tasks: 6}, "now n1:4/4 n2:2/2"},
		{"-N3 --ntasks-per-node=1", Job{MinNodes: 3, MaxNodes: 3, TasksPerNode: 1, ExactPerNode: true}, "now n1:1/1 n2:1/1 n3:1/1"},
		{"-n9", Job{Tasks: 9}, "now n1:4/4 n2:4/4 n3:1/1"},
		{"-N4 -n5", Job{MinNodes: 4, MaxNodes: 4, Tasks: 5}, "now n1:2/2 n2:1/1 n3:1/1 n4:1/1"},
		{"-N2-4 -n3", Job{MinNodes: 2, MaxNodes: 4, Tasks: 3}, "now n1:1/1 n2:1/1 n3:1/1"},
		{"-N1-3 -n9", Job{MinNodes: 1, MaxNodes: 3, Tasks: 9}, "now n1:4/4 n2:4/4 n3:1/1"},
		{"-n3 -c2", Job{Tasks: 3, CPUsPerTask: 2}, "now n1:2/4 n2:1/2"},
		{"-N3", Job{MinNodes: 3, MaxNodes: 3}, "now n1:1/1 n2:1/1 n3:1/1"},
		{"-n6 --ntasks-per-node=2", Job{Tasks: 6, TasksPerNode: 2}, "now n1:2/2 n2:2/2 n3:2/2"},
		{"-N3 -c2", Job{MinNodes: 3, MaxNodes: 3, CPUsPerTask: 2}, "now n1:1/2 n2:1/2 n3:1/2"},
		{"-n2 -w n3", Job{Tasks: 2, Required: []int{2}}, "now n3:2/2"},
		{"-N2 -w n4 -n2", Job{MinNodes: 2, MaxNodes: 2, Tasks: 2, Required: []int{3}}, "now n1:1/1 n4:1/1"},
		{"-N1 --exclusive", Job{MinNodes: 1, MaxNodes: 1, Exclusive: true}, "now n1:1/4"},
		{"-N5", Job{MinNodes: 5, MaxNodes: 5}, "never (BadConstraints)"},
	} {
		c.job.ID, c.job.Duration = 1, 60
		s := Snapshot{Now: 1000, Nodes: nodes(4, 4), Pending: []Job{c.job}}
		if got := show(&s, s.Plan().Decisions[0]); got != c.want {
			t.Errorf("%s: got %s, want %s", c.flags, got, c.want)
		}
	}
}

func held(node, from, to int) NodeAllocation {
	h := NodeAllocation{Node: node}
	h.CPUs.AddRange(from, to)
	return h
}

func TestBackfillFillsTheHoleAndDelaysNobody(t *testing.T) {
	s := Snapshot{
		Now: 0, Nodes: nodes(2, 4),
		Running: []Running{{ID: 1, End: 100, Allocation: []NodeAllocation{held(0, 0, 4)}}},
		Pending: []Job{
			{ID: 2, Priority: 9, MinNodes: 2, MaxNodes: 2, CPUsPerTask: 4, Duration: 50},
			{ID: 3, Priority: 8, Tasks: 4, Duration: 101},
			{ID: 4, Priority: 7, Tasks: 4, Duration: 100},
		},
	}
	want := []string{"at 100 n1:1/4 n2:1/4 (Resources)", "at 150 n1:4/4 (Priority)", "now n2:4/4"}
	for i, d := range s.Plan().Decisions {
		if got := show(&s, d); got != want[i] {
			t.Errorf("job %d: got %s, want %s", d.ID, got, want[i])
		}
	}
	s.Policy.NoBackfill = true
	if d := s.Plan().Decisions[2]; d.StartNow || d.Reason != ReasonPriority {
		t.Errorf("without backfill job 4 must wait for its turn, got %s", show(&s, d))
	}
}

func TestReasons(t *testing.T) {
	down := nodes(2, 4)
	down[1].Unavailable = true
	for _, c := range []struct {
		name string
		job  Job
		want string
	}{
		{"blocked", Job{Blocked: "Dependency"}, "never (Dependency)"},
		{"begin", Job{Begin: 500}, "at 500 n1:1/1 (BeginTime)"},
		{"down", Job{MinNodes: 2, MaxNodes: 2}, "never (ReqNodeNotAvail)"},
		{"too much memory", Job{MemPerNode: 4001}, "never (BadConstraints)"},
		{"no such gres", Job{GRES: []GRES{{Name: "gpu", Count: 1}}}, "never (BadConstraints)"},
	} {
		c.job.ID, c.job.Duration = 1, 60
		s := Snapshot{Nodes: down, Pending: []Job{c.job}}
		if got := show(&s, s.Plan().Decisions[0]); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestCoresAreNeverShared(t *testing.T) {
	n := nodes(1, 8)
	n[0].ThreadsPerCore = 2
	s := Snapshot{Nodes: n, Pending: []Job{{ID: 1, Priority: 2, Duration: 60}, {ID: 2, Priority: 1, Tasks: 3, Duration: 60}}}
	d := s.Plan().Decisions
	if a, b := d[0].Nodes[0].CPUs.String(), d[1].Nodes[0].CPUs.String(); a != "0-1" || b != "2-5" {
		t.Errorf("got CPUs %s and %s, want 0-1 and 2-5", a, b)
	}
}

func TestGPUsByTypeAndName(t *testing.T) {
	n := nodes(2, 4)
	n[0].GRES = []GRES{{"gpu", "a100", 2}, {"gpu", "v100", 1}}
	s := Snapshot{Nodes: n, Pending: []Job{
		{ID: 1, Priority: 3, Duration: 60, GRES: []GRES{{Name: "gpu", Type: "v100", Count: 1}}},
		{ID: 2, Priority: 2, Duration: 60, GRES: []GRES{{Name: "gpu", Count: 2}}},
		{ID: 3, Priority: 1, Duration: 60, GRES: []GRES{{Name: "gpu", Count: 1}}},
	}}
	d := s.Plan().Decisions
	if !d[0].StartNow || !d[1].StartNow || d[2].StartNow || d[2].Start != 60 {
		t.Errorf("got %s, %s, %s", show(&s, d[0]), show(&s, d[1]), show(&s, d[2]))
	}
	if g := d[1].Nodes[0].GRES; len(g) != 1 || g[0] != (GRES{"gpu", "a100", 2}) {
		t.Errorf("job 2 got %v, want two a100", g)
	}
}

func TestParseCPUSet(t *testing.T) {
	for _, text := range []string{"", "0", "0-3", "0-3,8", "5,7,64-130"} {
		s, err := ParseCPUSet(text)
		if err != nil || s.String() != text {
			t.Errorf("%q: got %q, %v", text, s.String(), err)
		}
	}
	for _, text := range []string{"-", "a", "3-1", "0-99999999", "-1", "1,,2"} {
		if _, err := ParseCPUSet(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestAlternativesServeWhoeverIsFree(t *testing.T) {
	var first, second NodeSet
	first.Add(0)
	second.Add(1)
	job := Job{ID: 5, Tasks: 4, Duration: 60, Eligible: &first, Alternatives: []*NodeSet{&second}}
	s := Snapshot{Nodes: nodes(2, 4), Pending: []Job{job}}
	plan := func() string {
		d := s.Plan().Decisions[0]
		return fmt.Sprintf("%s choice %d", show(&s, d), d.Choice)
	}
	if got := plan(); got != "now n1:4/4 choice 0" {
		t.Errorf("both free: %s", got)
	}
	s.Running = []Running{{ID: 1, End: 50, Allocation: []NodeAllocation{held(0, 0, 1)}}}
	if got := plan(); got != "now n2:4/4 choice 1" {
		t.Errorf("the first taken: %s", got)
	}
	s.Running = append(s.Running, Running{ID: 2, End: 40, Allocation: []NodeAllocation{held(1, 0, 1)}})
	if got := plan(); got != "at 40 n2:4/4 (Resources) choice 1" {
		t.Errorf("both taken: %s", got)
	}
	s.Nodes[1].CPUs = 3
	if got := plan(); got != "at 50 n1:4/4 (Resources) choice 0" {
		t.Errorf("the second too small: %s", got)
	}
	s.Nodes[0].Unavailable = true
	if got := plan(); got != "never (ReqNodeNotAvail) choice 0" {
		t.Errorf("the first down: %s", got)
	}
}

// A job with NoReserve delays no other job; its start is planned after those of the
// others.
func TestNoReserve(t *testing.T) {
	s := Snapshot{Now: 100, Nodes: nodes(1, 4), Policy: DefaultPolicy(), Running: []Running{{ID: 9, End: 200, Allocation: []NodeAllocation{held(0, 0, 2)}}},
		Pending: []Job{{ID: 1, Priority: 9, Duration: 60, Tasks: 4, NoReserve: true}, {ID: 2, Priority: 8, Duration: 500, Tasks: 2}}}
	if d := s.Plan().Decisions; d[0].StartNow || d[0].Start != 600 || !d[1].StartNow {
		t.Errorf("%+v", d)
	}
	s.Pending[0].NoReserve = false
	if d := s.Plan().Decisions; d[0].Start != 200 || d[1].StartNow {
		t.Errorf("with a reservation: %+v", d)
	}
}

// As many copies start as fit; the others get at most MaxCopyReservations
// reservations.
func TestCopies(t *testing.T) {
	s := Snapshot{Now: 100, Nodes: []Node{{Name: "a", CPUs: 4}, {Name: "b", CPUs: 4}}}
	s.Pending = []Job{{ID: 1, Priority: 2, Duration: 60, MinNodes: 1, Copies: 10000}, {ID: 2, Priority: 1, Duration: 60, MinNodes: 1}}
	started, waiting := 0, 0
	for _, d := range s.Plan().Decisions {
		switch {
		case d.ID == 2:
		case d.StartNow:
			started++
		default:
			waiting++
		}
	}
	if started != 8 || waiting != MaxCopyReservations {
		t.Errorf("%d copies start, %d decisions about others", started, waiting)
	}
	if s.Pending[0].Copies != 10000 {
		t.Error("the plan changed the snapshot")
	}
}

// A job that fits only on reserved nodes has ReasonReservedForOthers and is planned
// after the reservation; the jobs after it have reasons of their own.
func TestKeptForOthers(t *testing.T) {
	var first NodeSet
	first.Add(0)
	s := Snapshot{Now: 100, Nodes: nodes(2, 4), Policy: DefaultPolicy(),
		AdvanceReservations: []AdvanceReservation{{Name: "r", Start: 50, End: 500, Nodes: first}},
		Pending: []Job{
			{ID: 1, Priority: 9, Duration: 60, MinNodes: 2, MaxNodes: 2},
			{ID: 2, Priority: 8, Duration: 60, MinNodes: 1, Required: []int{0}},
			{ID: 3, Priority: 7, Duration: 60, Tasks: 4, Required: []int{1}},
			{ID: 4, Priority: 6, Duration: 60, Tasks: 4, Required: []int{1}},
		}}
	want := []string{ReasonReservedForOthers + " 500", ReasonReservedForOthers + " 500", " 100", "Resources 160"}
	for i, d := range s.Plan().Decisions {
		if got := fmt.Sprint(d.Reason, " ", d.Start); got != want[i] {
			t.Errorf("job %d: %s, want %s", d.ID, got, want[i])
		}
	}
	// Future maintenance delays long jobs and not short ones.
	s.AdvanceReservations = []AdvanceReservation{{Name: "m", Start: 200, End: 500, Nodes: *set(0, 1)}}
	s.Pending = []Job{{ID: 1, Priority: 9, Duration: 101, MinNodes: 1}, {ID: 2, Priority: 8, Duration: 100, MinNodes: 1}}
	if d := s.Plan().Decisions; d[0].Reason != ReasonReservedForOthers || d[0].Start != 500 || !d[1].StartNow {
		t.Errorf("%+v", d)
	}
}

// A group of one job gets a planned start.
func TestGroupOfOneIsPlannedBehindTheOthers(t *testing.T) {
	s := &Snapshot{Nodes: nodes(1, 4), Policy: DefaultPolicy(), Pending: []Job{
		{ID: 1, Duration: 100, Priority: 3, Tasks: 4}, {ID: 2, Duration: 100, Priority: 2, Tasks: 4}, {ID: 3, Duration: 100, Priority: 1, Tasks: 4, Group: 7}}}
	if d := s.Plan().Decisions; !d[0].StartNow || d[1].Start != 100 || d[2].Start < 200 {
		t.Errorf("decisions %+v", d)
	}
}

// A job without a time limit starts if it fits, by a plan and by a queue, also behind a job
// that waits.
func TestJobsWithoutATimeLimitStart(t *testing.T) {
	s := &Snapshot{Nodes: nodes(2, 4), Policy: DefaultPolicy(), Pending: []Job{
		{ID: 1, Priority: 9, Duration: Forever, MinNodes: 1},
		{ID: 2, Priority: 8, Duration: 10, MinNodes: 3}, // never runs
		{ID: 3, Priority: 7, Duration: Forever, MinNodes: 1, Partition: 1},
		{ID: 4, Priority: 6, Duration: 10, MinNodes: 2, CPUsPerTask: 4, Partition: 1}, // waits
		{ID: 5, Priority: 5, Duration: Forever, MinNodes: 1, Partition: 1},
	}}
	want := []int64{1, 3, 5}
	var planned, decided []int64
	for _, d := range s.Plan().Decisions {
		if d.StartNow {
			planned = append(planned, d.ID)
		}
	}
	for _, d := range NewQueue(s).Decide(0) {
		decided = append(decided, d.ID)
	}
	if !slices.Equal(planned, want) || !slices.Equal(decided, want) {
		t.Errorf("a plan starts %v, a queue %v, want %v", planned, decided, want)
	}
}
