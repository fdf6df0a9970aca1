package backfill

import "pgregory.net/rapid"

func drawJob(t *rapid.T, id int64, nodes int) Job {
	j := Job{
		ID: id, Priority: rapid.Int64Range(0, 5).Draw(t, "priority"), Submit: id,
		Duration:   rapid.Int64Range(1, 50).Draw(t, "duration"),
		MinNodes:   rapid.IntRange(1, nodes+1).Draw(t, "nodes"),
		MemPerNode: rapid.Int64Range(0, 10).Draw(t, "memory"), CPUsPerTask: rapid.IntRange(0, 3).Draw(t, "cpus"),
		Exclusive: rapid.IntRange(0, 5).Draw(t, "exclusive") == 0,
	}
	switch rapid.IntRange(0, 3).Draw(t, "shape") {
	case 0:
		j.MaxNodes = j.MinNodes
	case 1:
		j.MaxNodes = j.MinNodes + rapid.IntRange(0, 2).Draw(t, "more")
		j.Tasks = rapid.IntRange(j.MinNodes, 12).Draw(t, "tasks")
	case 2:
		j.MinNodes, j.Tasks = 1, rapid.IntRange(1, 12).Draw(t, "tasks")
	case 3:
		j.MaxNodes, j.TasksPerNode, j.ExactPerNode = j.MinNodes, rapid.IntRange(1, 3).Draw(t, "each"), true
	}
	if rapid.IntRange(0, 4).Draw(t, "gpu") == 0 {
		j.GRES = []GRES{{Name: "gpu", Count: rapid.Int64Range(1, 2).Draw(t, "gpus")}}
	}
	if rapid.IntRange(0, 8).Draw(t, "begin") == 0 {
		j.Begin = rapid.Int64Range(1, 40).Draw(t, "at")
	}
	return j
}

func drawSnapshot(t *rapid.T) *Snapshot {
	s := &Snapshot{Policy: Policy{
		Reservations: rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "reservations"), forceCoarse: rapid.Bool().Draw(t, "coarse")}}
	for range rapid.IntRange(1, 5).Draw(t, "nodes") {
		n := Node{CPUs: rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "size"), Memory: 20, ThreadsPerCore: rapid.IntRange(1, 2).Draw(t, "threads"),
			Unavailable: rapid.IntRange(0, 9).Draw(t, "down") == 0, UsedCPUs: rapid.IntRange(0, 1).Draw(t, "used")}
		if rapid.Bool().Draw(t, "gpus") {
			n.GRES = []GRES{{Name: "gpu", Type: "a", Count: 1}, {Name: "gpu", Type: "b", Count: 2}}
		}
		s.Nodes = append(s.Nodes, n)
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "jobs") {
		s.Pending = append(s.Pending, drawJob(t, int64(i+1), len(s.Nodes)))
	}
	return s
}

// drawRich is drawSnapshot with everything that jobs and clusters may have.
func drawRich(t *rapid.T) *Snapshot {
	s := drawSnapshot(t)
	s.Licenses = []License{{"l", 2}}
	var part NodeSet
	blocks := rapid.Bool().Draw(t, "blocks")
	for i := range s.Nodes {
		if blocks {
			s.Nodes[i].TopologyPath = []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "block")}
		}
		s.Nodes[i].Sockets = rapid.IntRange(1, 2).Draw(t, "sockets")
		if rapid.Bool().Draw(t, "part") {
			part.Add(i)
		}
	}
	if rapid.Bool().Draw(t, "reservation") {
		s.AdvanceReservations = append(s.AdvanceReservations, AdvanceReservation{Name: "r", Start: rapid.Int64Range(0, 30).Draw(t, "from"), Nodes: part, Flex: rapid.Bool().Draw(t, "flex")})
		s.AdvanceReservations[0].End = s.AdvanceReservations[0].Start + rapid.Int64Range(1, 60).Draw(t, "for")
		if rapid.Bool().Draw(t, "with licences") {
			s.AdvanceReservations[0].Licenses = []License{{"l", rapid.Int64Range(1, 2).Draw(t, "kept")}}
		}
	}
	if rapid.Bool().Draw(t, "cores") {
		b := AdvanceReservation{Name: "c", Start: rapid.Int64Range(0, 30).Draw(t, "from"), Cores: map[int]CPUSet{}}
		b.End = b.Start + rapid.Int64Range(1, 60).Draw(t, "for")
		for i := range s.Nodes {
			var some CPUSet
			threads := max(1, s.Nodes[i].ThreadsPerCore)
			cores := s.Nodes[i].CPUs / threads
			first := rapid.IntRange(0, cores).Draw(t, "first")
			some.AddRange(first*threads, rapid.IntRange(first, cores).Draw(t, "last")*threads)
			if some.Len() > 0 {
				b.Cores[i] = some
			}
		}
		s.AdvanceReservations = append(s.AdvanceReservations, b)
	}
	if rapid.Bool().Draw(t, "outage") {
		s.AdvanceReservations = append(s.AdvanceReservations, AdvanceReservation{Start: 20, End: 40, Nodes: *set(0)})
	}
	one := func(of int, label string) bool { return rapid.IntRange(1, of).Draw(t, label) == 1 }
	for i := range s.Pending {
		j := &s.Pending[i]
		j.User = rapid.Int64Range(1, 3).Draw(t, "user")
		j.UserExclusive = one(6, "user's")
		if one(5, "shares") {
			j.Share = 2
		}
		if one(5, "licence") {
			j.Licenses = []License{{"l", rapid.Int64Range(1, 2).Draw(t, "licences")}}
		}
		if one(4, "less time") {
			j.MinDuration = rapid.Int64Range(1, j.Duration).Draw(t, "least")
		}
		if one(8, "deadline") {
			j.Deadline = rapid.Int64Range(1, 200).Draw(t, "by")
		}
		if one(6, "reserved") {
			j.Reservation = "r"
		} else if one(6, "cores'") {
			j.Reservation = "c"
		} else if one(6, "attracted") && j.Eligible == nil {
			j.ChoiceReservations, j.Alternatives = []string{"r", ""}, []*NodeSet{nil}
		}
		if one(6, "group") {
			j.Group = 1
		}
		j.Contiguous = one(8, "contiguous")
		if one(6, "segments") {
			j.Segment, j.SegmentLayout = rapid.IntRange(1, 3).Draw(t, "segment"), SegmentLayout(rapid.IntRange(0, 2).Draw(t, "how"))
		}
		if one(8, "parts") {
			j.ConstraintCounts = []ConstraintCount{{&part, 1}}
		}
		if one(6, "copies") {
			j.Copies = 3
		}
		if j.Group != 0 {
			j.Copies = 0
		}
	}
	return s
}
