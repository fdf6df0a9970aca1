package backfill

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// decided counts the decisions that the properties were checked on.
var decided atomic.Int64

func counted(p Plan) Plan {
	decided.Add(int64(len(p.Decisions)))
	return p
}

// TestMain has each property hold for 3,000 random cases; with BERTH_TEST_FULL
// set for 100,000. -rapid.checks says otherwise.
func TestMain(m *testing.M) {
	checks := "3000"
	if os.Getenv("BERTH_TEST_FULL") != "" {
		checks = "100000"
	}
	flag.Parse()
	if testing.Short() || raceDetector { // CI runs them a second time without
		checks = "200"
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	if testing.Verbose() {
		fmt.Printf("%d decisions checked\n", decided.Load())
	}
	os.Exit(code)
}

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
	s := &Snapshot{Options: Options{
		Reservations: rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "reservations"), coarse: rapid.Bool().Draw(t, "coarse")}}
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
			s.Nodes[i].Path = []string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "block")}
		}
		s.Nodes[i].Sockets = rapid.IntRange(1, 2).Draw(t, "sockets")
		if rapid.Bool().Draw(t, "part") {
			part.Add(i)
		}
	}
	if rapid.Bool().Draw(t, "reservation") {
		s.Blocks = append(s.Blocks, Block{Name: "r", Start: rapid.Int64Range(0, 30).Draw(t, "from"), Nodes: part, Flex: rapid.Bool().Draw(t, "flex")})
		s.Blocks[0].End = s.Blocks[0].Start + rapid.Int64Range(1, 60).Draw(t, "for")
		if rapid.Bool().Draw(t, "with licences") {
			s.Blocks[0].Licenses = []License{{"l", rapid.Int64Range(1, 2).Draw(t, "kept")}}
		}
	}
	if rapid.Bool().Draw(t, "outage") {
		s.Blocks = append(s.Blocks, Block{Start: 20, End: 40, Nodes: *set(0)})
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
		} else if one(6, "attracted") && j.Eligible == nil {
			j.Inside, j.Alternatives = []string{"r", ""}, []*NodeSet{nil}
		}
		if one(6, "group") {
			j.Group = 1
		}
		j.Contiguous = one(8, "contiguous")
		if one(6, "segments") {
			j.Segment, j.Segments = rapid.IntRange(1, 3).Draw(t, "segment"), Segments(rapid.IntRange(0, 2).Draw(t, "how"))
		}
		if one(8, "parts") {
			j.Parts = []Part{{&part, 1}}
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

// start moves what a plan starts from Pending to Running and returns how many.
func start(s *Snapshot, p Plan) int {
	started := 0
	for _, d := range p.Decisions {
		if !d.StartNow {
			continue
		}
		i := slices.IndexFunc(s.Pending, func(j Job) bool { return j.ID == d.ID })
		j := s.Pending[i]
		s.Pending = slices.Clone(s.Pending)
		if j.Copies > 1 {
			s.Pending[i].Copies--
		} else {
			s.Pending = slices.Delete(s.Pending, i, i+1)
		}
		r := Running{ID: j.ID, End: endOf(s.Now, d.Duration), Exclusive: j.Exclusive,
			User: j.User, UserExclusive: j.UserExclusive, Share: j.Share, Licenses: j.Licenses, Reservation: j.reservation(d.Choice)}
		r.End = min(r.End, lastsIn(s, r.Reservation))
		for _, a := range d.Nodes {
			r.Held = append(r.Held, Held{Node: a.Node, CPUs: a.CPUs, Memory: a.Memory, GRES: a.GRES})
		}
		s.Running = append(s.Running, r)
		started++
	}
	return started
}

// lastsIn is when a job that starts now in the reservation must have ended.
func lastsIn(s *Snapshot, reservation string) int64 {
	for _, b := range s.Blocks {
		if reservation != "" && b.Name == reservation && !b.Flex && b.Start <= s.Now && s.Now < b.End {
			return b.End
		}
	}
	return Forever
}

// checkKept fails if jobs that start now, outside of the reservations, leave
// less of a licence than those keep.
func checkKept(t *rapid.T, s *Snapshot, started int) {
	for _, b := range s.Blocks {
		for _, l := range b.Licenses {
			free, inside, outside := int64(0), int64(0), false
			for i := range s.Licenses {
				if s.Licenses[i].Name == l.Name {
					free = s.Licenses[i].Total
				}
			}
			for i, r := range s.Running {
				for _, h := range r.Licenses {
					free -= h.Total
					if r.Reservation == b.Name {
						inside += h.Total
					} else if i >= len(s.Running)-started && min(r.End, b.End) > max(s.Now, b.Start) {
						outside = true
					}
				}
			}
			if outside && b.Start <= s.Now && free < l.Total-inside {
				t.Fatalf("%d of licence %s are free, reservation %s keeps %d", free, l.Name, b.Name, l.Total-inside)
			}
		}
	}
}

// checkHeld fails if the running jobs hold more than there is.
func checkHeld(t *rapid.T, s *Snapshot) {
	for i := range s.Nodes {
		checkNode(t, s, i)
	}
	for _, l := range s.Licenses {
		held := int64(0)
		for _, r := range s.Running {
			for _, h := range r.Licenses {
				if h.Name == l.Name {
					held += h.Total
				}
			}
		}
		if held > l.Total {
			t.Fatalf("%d of %d licences %s are held", held, l.Total, l.Name)
		}
	}
}

func checkNode(t *rapid.T, s *Snapshot, i int) {
	n := &s.Nodes[i]
	var apart, all CPUSet
	load, most := map[int]int{}, 2
	memory, gpus, jobs, exclusive := int64(0), int64(0), 0, false
	users, alone := map[int64]bool{}, false
	for _, r := range s.Running {
		for _, h := range r.Held {
			if h.Node != i {
				continue
			}
			if r.sharers() <= 1 {
				if all.Intersects(h.CPUs) {
					t.Fatalf("job %d shares CPUs %s of node %d", r.ID, h.CPUs, i)
				}
				apart.Union(h.CPUs)
			} else {
				for _, c := range h.CPUs.Members() {
					if load[c]++; load[c] > most || apart.Has(c) {
						t.Fatalf("job %d is one of %d on CPU %d of node %d", r.ID, load[c], c, i)
					}
				}
			}
			all.Union(h.CPUs)
			memory, jobs, exclusive = memory+h.Memory, jobs+1, exclusive || r.Exclusive
			users[r.User], alone = true, alone || r.UserExclusive
			for _, g := range h.GRES {
				gpus += g.Count
			}
		}
	}
	have := int64(0)
	for _, g := range n.GRES {
		have += g.Count
	}
	if all.Len() > n.CPUs || memory > n.Memory || gpus > have || (exclusive && jobs > 1) || (alone && len(users) > 1) {
		t.Fatalf("node %d over-committed: %s of %d CPUs, %d of %d MiB, %d of %d GPUs, %d jobs of %d users, exclusive %v, for one user %v",
			i, all, n.CPUs, memory, n.Memory, gpus, have, jobs, len(users), exclusive, alone)
	}
}

// checkBlocks fails if a job that starts now uses nodes that are kept from it.
func checkBlocks(t *rapid.T, s *Snapshot, j Job, d Decision) {
	if !d.StartNow {
		return
	}
	mine := j.reservation(d.Choice)
	end := min(endOf(s.Now, d.Duration), lastsIn(s, mine))
	if j.Deadline > 0 && end > j.Deadline {
		t.Fatalf("job %d would end at %d, its deadline is %d", j.ID, end, j.Deadline)
	}
	for _, b := range s.Blocks {
		for _, a := range d.Nodes {
			overlaps := b.Start < end && b.End > s.Now
			if own := b.Name != "" && b.Name == mine; own && !b.Flex && (!b.Nodes.Has(a.Node) || b.Start > s.Now || b.End <= s.Now) ||
				!own && overlaps && b.Nodes.Has(a.Node) {
				t.Fatalf("job %d of reservation %q starts on node %d, kept for %q in %d-%d, until %d", j.ID, j.Reservation, a.Node, b.Name, b.Start, b.End, end)
			}
		}
	}
	parts := 0
	for i, a := range d.Nodes {
		if len(j.Parts) > 0 && j.Parts[0].Nodes.Has(a.Node) {
			parts++
		}
		if j.Contiguous && len(j.Parts) == 0 && j.Segment == 0 && i > 0 && a.Node != d.Nodes[i-1].Node+1 {
			t.Fatalf("job %d wants neighbours and got %+v", j.ID, d.Nodes)
		}
	}
	inBlock := map[string]int{}
	for _, a := range d.Nodes {
		inBlock[strings.Join(s.Nodes[a.Node].Path, ".")]++
	}
	for block, n := range inBlock {
		if j.Segment > 0 && len(j.Parts) == 0 && (n%j.Segment != 0 || j.Segments == SegmentsApart && n > j.Segment) {
			t.Fatalf("job %d wants segments of %d nodes (%d) and got %d nodes of block %q", j.ID, j.Segment, j.Segments, n, block)
		}
	}
	if len(j.Parts) > 0 && parts < j.Parts[0].Count {
		t.Fatalf("job %d got %d of the %d nodes it must have", j.ID, parts, j.Parts[0].Count)
	}
}

// checkGroups fails if a group starts in part.
func checkGroups(t *rapid.T, s *Snapshot, p Plan) {
	starts, waits := 0, 0
	for _, d := range p.Decisions {
		i := slices.IndexFunc(s.Pending, func(j Job) bool { return j.ID == d.ID })
		switch {
		case s.Pending[i].Group == 0:
		case d.StartNow:
			starts++
		default:
			waits++
		}
	}
	if starts > 0 && waits > 0 {
		t.Fatalf("of a group %d start and %d do not", starts, waits)
	}
}

// checkGang fails if a decision gives a job less than it asked for.
func checkGang(t *rapid.T, s *Snapshot, j Job, d Decision) {
	if d.Nodes == nil {
		return
	}
	tasks, seen := 0, map[int]bool{}
	for _, a := range d.Nodes {
		if seen[a.Node] || a.Tasks < 1 || s.Nodes[a.Node].Unavailable || (j.ExactPerNode && a.Tasks != j.TasksPerNode) {
			t.Fatalf("job %d: bad assignment %+v", j.ID, a)
		}
		if a.Count < a.Tasks*max(1, j.CPUsPerTask) || d.StartNow && a.CPUs.Len() != a.Count {
			t.Fatalf("job %d: %d CPUs (%s) for %d tasks", j.ID, a.Count, a.CPUs, a.Tasks)
		}
		seen[a.Node] = true
		tasks += a.Tasks
	}
	if len(d.Nodes) < j.MinNodes || (j.MaxNodes > 0 && len(d.Nodes) > j.MaxNodes) || tasks != j.tasksWanted(len(d.Nodes)) {
		t.Fatalf("job %d got %d nodes and %d tasks, asked %+v", j.ID, len(d.Nodes), tasks, j)
	}
}

func TestPlanNeverOvercommitsNorSplitsAGang(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRich(t)
		for step := 0; len(s.Pending)+len(s.Running) > 0 && step < 40; step++ {
			p := counted(s.Plan())
			for _, d := range p.Decisions {
				i := slices.IndexFunc(s.Pending, func(j Job) bool { return j.ID == d.ID })
				checkGang(t, s, s.Pending[i], d)
				checkBlocks(t, s, s.Pending[i], d)
			}
			checkGroups(t, s, p)
			checkKept(t, s, start(s, p))
			checkHeld(t, s)
			if rapid.IntRange(0, 9).Draw(t, "failure") == 0 { // a node goes, and its jobs with it
				i := rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "failed")
				s.Nodes[i].Unavailable = !s.Nodes[i].Unavailable
				s.Running = slices.DeleteFunc(s.Running, func(r Running) bool {
					return slices.ContainsFunc(r.Held, func(h Held) bool { return h.Node == i })
				})
			}
			s.Now += rapid.Int64Range(1, 20).Draw(t, "pass")
			s.Running = slices.DeleteFunc(s.Running, func(r Running) bool {
				return r.End <= s.Now || rapid.IntRange(0, 5).Draw(t, "early") == 0
			})
		}
	})
}

func TestPlanIsDeterministicAndLeavesTheSnapshotAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRich(t)
		start(s, s.Plan())
		before := deepCopy(s)
		first := counted(s.Plan())
		if !reflect.DeepEqual(before, s) {
			t.Fatal("Plan changed the snapshot")
		}
		slices.Reverse(s.Pending)
		if again := s.Plan(); !reflect.DeepEqual(first, again) {
			t.Fatalf("two plans of one snapshot differ:\n%+v\n%+v", first, again)
		}
	})
}

// What one search teaches the next changes no plan.
func TestSearchesLearnNothingWrong(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		if rapid.Bool().Draw(t, "rich") {
			s = drawRich(t)
		}
		s.Options.PlanAll = rapid.Bool().Draw(t, "all")
		start(s, s.Plan())
		learning := counted(s.Plan())
		s.Options.forgetful = true
		if plain := s.Plan(); !reflect.DeepEqual(learning, plain) {
			t.Fatalf("with what was learned:\n%+v\nwithout:\n%+v", learning, plain)
		}
	})
}

func deepCopy(s *Snapshot) *Snapshot {
	c := *s
	c.Nodes, c.Pending, c.Running = slices.Clone(s.Nodes), slices.Clone(s.Pending), slices.Clone(s.Running)
	for i := range c.Running {
		c.Running[i].Held = slices.Clone(c.Running[i].Held)
		for k := range c.Running[i].Held {
			c.Running[i].Held[k].CPUs = c.Running[i].Held[k].CPUs.Clone()
		}
	}
	return &c
}

// A job of lower priority changes nothing for those before it: the plan of the
// whole queue begins with the plan of its head.
func TestLowerPriorityDelaysNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		start(s, s.Plan())
		whole := counted(s.Plan())
		n := rapid.IntRange(0, len(s.Pending)).Draw(t, "head")
		head := *s
		head.Pending = nil
		for _, d := range whole.Decisions[:n] {
			i := slices.IndexFunc(s.Pending, func(j Job) bool { return j.ID == d.ID })
			head.Pending = append(head.Pending, s.Pending[i])
		}
		got := head.Plan()
		if len(got.Decisions) > 0 && s.Options.Reservations >= 0 && !reflect.DeepEqual(got.Decisions, whole.Decisions[:n]) {
			t.Fatalf("later jobs changed the plan of earlier ones:\n%+v\n%+v", got.Decisions, whole.Decisions[:n])
		}
	})
}

// EASY's promise: the job at the head of the queue never starts later than it
// was first told, whatever is backfilled and however early jobs end.
func TestHeadKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		promise := map[int64]int64{}
		for step := 0; len(s.Pending) > 0 && step < 200; step++ {
			p := counted(s.Plan())
			if i := slices.IndexFunc(p.Decisions, func(d Decision) bool { return d.Start > 0 || d.StartNow }); i >= 0 {
				d := p.Decisions[i]
				if d.Reason != ReasonBeginTime {
					if told, ok := promise[d.ID]; ok && d.Start > told {
						t.Fatalf("job %d was promised %d and is now planned for %d", d.ID, told, d.Start)
					}
					promise[d.ID] = d.Start
				}
			}
			if start(s, p) == 0 && len(s.Running) == 0 && !slices.ContainsFunc(p.Decisions, func(d Decision) bool { return d.Start > s.Now }) {
				return // what is left can never run here
			}
			s.Now++
			s.Running = slices.DeleteFunc(s.Running, func(r Running) bool {
				return r.End <= s.Now || rapid.IntRange(0, 30).Draw(t, "early") == 0
			})
		}
	})
}

// Nothing that fits starves: on a healthy cluster every possible job runs.
func TestEveryPossibleJobRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		for s.Now < 5000 && len(s.Pending) > 0 {
			p := counted(s.Plan())
			if start(s, p) == 0 && len(s.Running) == 0 {
				waits := func(d Decision) bool { return d.Reason != ReasonBadConfig && d.Reason != ReasonNodeConfig }
				planned := func(d Decision) bool { return d.Start > s.Now }
				if slices.ContainsFunc(p.Decisions, waits) && !slices.ContainsFunc(p.Decisions, planned) {
					t.Fatalf("deadlock: nothing runs and nothing starts: %+v", p)
				}
				if !slices.ContainsFunc(p.Decisions, planned) {
					break // what is left is impossible
				}
			}
			s.Now++
			s.Running = slices.DeleteFunc(s.Running, func(r Running) bool { return r.End <= s.Now })
		}
		for _, d := range s.Plan().Decisions {
			if d.Reason != ReasonBadConfig && d.Reason != ReasonNodeConfig {
				t.Fatalf("job %d never ran: %+v", d.ID, d)
			}
		}
	})
}

// Who starts now and who has a reservation is decided on a sparse series, and
// so it is decided on one that has every instant.
func TestSparseSlotsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRich(t)
		s.Options.coarse = false
		s.Options.Reservations = rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "reservations")
		if slices.ContainsFunc(s.Pending, func(j Job) bool { return j.Group != 0 }) {
			// A series with every instant does not find out anew who is on a node
			// when a group that did not fit is taken back, and lets fewer in.
			for i := range s.Pending {
				s.Pending[i].UserExclusive = false
			}
		}
		for range 4 {
			sparse := counted(s.Plan())
			s.Options.exactly = true
			exact := s.Plan()
			s.Options.exactly = false
			if !reflect.DeepEqual(sparse, exact) {
				t.Fatalf("at %d with boundaries where they are needed:\n%+v\nwith all:\n%+v", s.Now, sparse, exact)
			}
			start(s, sparse)
			s.Now += rapid.Int64Range(1, 20).Draw(t, "pass")
			s.Running = slices.DeleteFunc(s.Running, func(r Running) bool { return rapid.IntRange(0, 3).Draw(t, "ends") == 0 })
		}
	})
}
