package backfill

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
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

// TestMain checks each property on 3,000 random cases, or 100,000 if BERTH_TEST_FULL
// is set. The flag -rapid.checks overrides that.
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

func TestPlanNeverOvercommitsNorSplitsAGang(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRich(t)
		for step := 0; len(s.Pending)+len(s.Running) > 0 && step < 40; step++ {
			p := counted(s.Plan())
			for _, d := range p.Decisions {
				i := slices.IndexFunc(s.Pending, func(j Job) bool { return j.ID == d.ID })
				checkGang(t, s, s.Pending[i], d)
				checkReservations(t, s, s.Pending[i], d)
			}
			checkGroups(t, s, p)
			checkKept(t, s, start(s, p))
			checkHeld(t, s)
			if rapid.IntRange(0, 9).Draw(t, "failure") == 0 { // a node fails, and its jobs with it
				i := rapid.IntRange(0, len(s.Nodes)-1).Draw(t, "failed")
				s.Nodes[i].Unavailable = !s.Nodes[i].Unavailable
				s.Running = slices.DeleteFunc(s.Running, func(r Running) bool {
					return slices.ContainsFunc(r.Allocation, func(h NodeAllocation) bool { return h.Node == i })
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

// Bounds that searches share do not change the plan.
func TestSharedBoundsDoNotChangeThePlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		if rapid.Bool().Draw(t, "rich") {
			s = drawRich(t)
		}
		s.Policy.PlanAll = rapid.Bool().Draw(t, "all")
		start(s, s.Plan())
		shared := counted(s.Plan())
		s.Policy.noDominance = true
		if plain := s.Plan(); !reflect.DeepEqual(shared, plain) {
			t.Fatalf("with shared bounds:\n%+v\nwithout:\n%+v", shared, plain)
		}
	})
}

func deepCopy(s *Snapshot) *Snapshot {
	c := *s
	c.Nodes, c.Pending, c.Running = slices.Clone(s.Nodes), slices.Clone(s.Pending), slices.Clone(s.Running)
	for i := range c.Running {
		c.Running[i].Allocation = slices.Clone(c.Running[i].Allocation)
		for k := range c.Running[i].Allocation {
			c.Running[i].Allocation[k].CPUs = c.Running[i].Allocation[k].CPUs.Clone()
		}
	}
	return &c
}

// A job of lower priority does not change the plan of the jobs ahead of it.
func TestLowerPriorityDelaysNoJobAhead(t *testing.T) {
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
		if len(got.Decisions) > 0 && s.Policy.Reservations >= 0 && !reflect.DeepEqual(got.Decisions, whole.Decisions[:n]) {
			t.Fatalf("later jobs changed the plan of earlier ones:\n%+v\n%+v", got.Decisions, whole.Decisions[:n])
		}
	})
}

// Under EASY the job at the head of the queue never starts later than its first
// reservation, whatever is backfilled and however early jobs end.
func TestHeadStartsNoLaterThanItsReservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		reserved := map[int64]int64{}
		for step := 0; len(s.Pending) > 0 && step < 200; step++ {
			p := counted(s.Plan())
			if i := slices.IndexFunc(p.Decisions, func(d Decision) bool { return d.Start > 0 || d.StartNow }); i >= 0 {
				d := p.Decisions[i]
				if d.Reason != ReasonBeginTime {
					if first, ok := reserved[d.ID]; ok && d.Start > first {
						t.Fatalf("job %d had a reservation at %d and is now planned for %d", d.ID, first, d.Start)
					}
					reserved[d.ID] = d.Start
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

// No feasible job starves while no nodes fail.
func TestEveryPossibleJobRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSnapshot(t)
		for s.Now < 5000 && len(s.Pending) > 0 {
			p := counted(s.Plan())
			if start(s, p) == 0 && len(s.Running) == 0 {
				waits := func(d Decision) bool { return d.Reason != ReasonBadConstraints && d.Reason != ReasonNodeNotAvail }
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
			if d.Reason != ReasonBadConstraints && d.Reason != ReasonNodeNotAvail {
				t.Fatalf("job %d never ran: %+v", d.ID, d)
			}
		}
	})
}

// Starts now and reservations are the same on a sparse profile and on an exact one.
func TestSparseSlotsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawRich(t)
		s.Policy.forceCoarse = false
		s.Policy.Reservations = rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "reservations")
		if slices.ContainsFunc(s.Pending, func(j Job) bool { return j.Group != 0 }) {
			// An exact profile does not recompute the owners of a node when a group
			// that did not fit is unbooked, and admits fewer jobs.
			for i := range s.Pending {
				s.Pending[i].UserExclusive = false
			}
		}
		for range 4 {
			sparse := counted(s.Plan())
			s.Policy.forceExact = true
			exact := s.Plan()
			s.Policy.forceExact = false
			if !reflect.DeepEqual(sparse, exact) {
				t.Fatalf("at %d with boundaries where they are needed:\n%+v\nwith all:\n%+v", s.Now, sparse, exact)
			}
			start(s, sparse)
			s.Now += rapid.Int64Range(1, 20).Draw(t, "pass")
			s.Running = slices.DeleteFunc(s.Running, func(r Running) bool { return rapid.IntRange(0, 3).Draw(t, "ends") == 0 })
		}
	})
}
