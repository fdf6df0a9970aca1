package backfill

import "testing"

func cpuSet(t *testing.T, text string) CPUSet {
	t.Helper()
	s, err := ParseCPUSet(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// alignedNode returns a node with two NUMA nodes of four CPUs, of which the kubelet keeps CPU
// 0 for the system.
func alignedNode(t *testing.T, a Alignment) Node {
	return Node{
		Name: "n0", CPUs: 7, Memory: 1000, Alignment: a, NUMA: []CPUSet{cpuSet(t, "1-3"), cpuSet(t, "4-7")},
	}
}

// TestAlignment checks that no job starts on a node whose kubelet would refuse it, and that
// jobs get the CPUs that the kubelet will choose.
func TestAlignment(t *testing.T) {
	job := func(cpus int, memory int64) Job { return Job{CPUsPerTask: cpus, MemPerNode: memory} }
	for _, c := range []struct {
		name      string
		alignment Alignment
		taken     string // by a running job
		job       Job
		want      string // CPUs; "": the job does not start
	}{
		{"first NUMA node with enough", AlignSingle, "", job(2, 10), "1-2"},
		{"second NUMA node", AlignSingle, "1-2", job(2, 10), "4-5"},
		{"four in the second", AlignSingle, "1", job(4, 10), "4-7"},
		{"free on both together", AlignSingle, "1-2,4-5", job(3, 10), ""},
		{"more than one has", AlignSingle, "", job(5, 10), ""},
		{"no memory limit, no CPUs of its own", AlignSingle, "", job(5, 0), "0-4"},
		{"restricted, in one", AlignFewest, "1-2,4-5", job(3, 10), ""},
		{"restricted, needs two", AlignFewest, "", job(5, 10), "1,4-7"},
		{"restricted, free in two", AlignFewest, "1", job(5, 10), "2,4-7"},
		{"none", AlignNone, "0,2", job(3, 10), "1,3-4"},
		{"whole node", AlignSingle, "", Job{Exclusive: true, MemPerNode: 10}, ""},
		{"whole node, restricted", AlignFewest, "", Job{Exclusive: true, MemPerNode: 10}, "1-7"},
	} {
		s := Snapshot{Now: 1000, Nodes: []Node{alignedNode(t, c.alignment)}, Overtime: 1, Policy: DefaultPolicy()}
		if c.taken != "" {
			s.Running = []Running{{ID: 9, End: 5000, Allocation: []NodeAllocation{{CPUs: cpuSet(t, c.taken), Memory: 10}}}}
		}
		c.job.ID, c.job.Duration = 1, 100
		s.Pending = []Job{c.job}
		for _, coarse := range []bool{false, true} {
			s.Policy.forceCoarse = coarse
			d := s.Plan().Decisions[0]
			got := ""
			if d.StartNow {
				got = d.Nodes[0].CPUs.String()
			}
			if got != c.want {
				t.Errorf("%s (coarse %v): the job gets %q, want %q (%+v)", c.name, coarse, got, c.want, d)
			}
		}
	}
}

// TestReservedCPUs checks that reserved CPUs count for the number of NUMA nodes that a job may
// need: two NUMA nodes of four CPUs each, of which the kubelet reserves one.
func TestReservedCPUs(t *testing.T) {
	for _, c := range []struct {
		alignment Alignment
		cpus      int
		want      string // CPUs; "": the job does not start
	}{
		{AlignFewest, 3, "1-3"},
		{AlignFewest, 4, ""}, // one NUMA node would be enough, but none has four that are not reserved
		{AlignFewest, 5, "1-3,5-6"},
		{AlignFewest, 7, ""},
		{AlignSingle, 3, "1-3"},
		{AlignSingle, 4, ""},
	} {
		n := Node{Name: "n0", CPUs: 6, Memory: 1000, Alignment: c.alignment, NUMASize: 4,
			NUMA: []CPUSet{cpuSet(t, "1-3"), cpuSet(t, "5-7")}}
		s := Snapshot{Now: 1000, Nodes: []Node{n}, Overtime: 1, Policy: DefaultPolicy(),
			Pending: []Job{{ID: 1, CPUsPerTask: c.cpus, MemPerNode: 10, Duration: 100}}}
		d := s.Plan().Decisions[0]
		got := ""
		if d.StartNow {
			got = d.Nodes[0].CPUs.String()
		}
		if got != c.want {
			t.Errorf("%v, %d CPUs: the job gets %q, want %q", c.alignment, c.cpus, got, c.want)
		}
		if never := s.NeverRunnable(&s.Pending[0]) != ReasonNone; never != (c.want == "") {
			t.Errorf("%v, %d CPUs: never runnable: %t", c.alignment, c.cpus, never)
		}
	}
}

// TestAlignedElsewhere checks that a job starts on the node where its CPUs can be aligned, and
// that jobs of one plan do not count on the same CPUs.
func TestAlignedElsewhere(t *testing.T) {
	a, b := alignedNode(t, AlignSingle), alignedNode(t, AlignSingle)
	b.Name = "n1"
	s := Snapshot{Now: 1000, Nodes: []Node{a, b}, Overtime: 1, Policy: DefaultPolicy(), Running: []Running{
		{ID: 9, End: 5000, Allocation: []NodeAllocation{{CPUs: cpuSet(t, "1,4-5"), Memory: 10}}},
	}}
	for i := range 4 {
		s.Pending = append(s.Pending, Job{
			ID: int64(i + 1), Priority: int64(9 - i), CPUsPerTask: 3, MemPerNode: 10, Duration: 100, Tasks: 1,
		})
	}
	for _, coarse := range []bool{false, true} {
		s.Policy.forceCoarse = coarse
		var got []string
		for _, d := range s.Plan().Decisions {
			if d.StartNow {
				got = append(got, s.Nodes[d.Nodes[0].Node].Name+" "+d.Nodes[0].CPUs.String())
			} else if d.Start < 5000 && d.Start <= s.Now {
				t.Errorf("job %d is planned for %d", d.ID, d.Start)
			}
		}
		if len(got) != 2 || got[0] != "n1 1-3" || got[1] != "n1 4-6" {
			t.Errorf("coarse %v: %q", coarse, got)
		}
	}
}

// TestNeverAligned checks the reason of a job that no kubelet would accept.
func TestNeverAligned(t *testing.T) {
	s := Snapshot{Now: 1000, Nodes: []Node{alignedNode(t, AlignSingle)}, Overtime: 1}
	for cpus, want := range map[int]string{4: ReasonNone, 5: ReasonBadConstraints} {
		if got := s.NeverRunnable(&Job{CPUsPerTask: cpus, MemPerNode: 10}); got != want {
			t.Errorf("%d CPUs: %q, want %q", cpus, got, want)
		}
	}
}
