package backfill

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// events drives a Queue and a Snapshot of the same state side by side.
type events struct {
	q     *Queue
	s     *Snapshot
	next  int64
	plain bool // nothing that an exact profile cannot keep from cycle to cycle
}

func newEvents(t *rapid.T) *events {
	s := drawRich(t)
	s.Policy = drawPolicy(t, s.Policy.PlanAll)
	s.Overtime = rapid.Int64Range(0, 3).Draw(t, "overtime")
	s.Limits = []Limit{{Reason: "A", Quantity: QuantityJobs, Left: 2}, {Reason: "B", Quantity: QuantityCPUs, Left: 6}}
	m := &events{s: s, next: 100, plain: rapid.Bool().Draw(t, "plain")}
	if m.plain {
		s.AdvanceReservations = nil
	}
	for i := range s.Pending {
		m.enrich(t, &s.Pending[i])
	}
	m.q = NewQueue(deepCopy(s))
	return m
}

// drawPolicy draws any of the policies.
func drawPolicy(t *rapid.T, planAll bool) Policy {
	p := rapid.SampledFrom([]Policy{EASY(), SJBF(), LXBF(), FCFS(), Conservative()}).Draw(t, "policy")
	if p.Reservations > 0 {
		p.Reservations = rapid.SampledFrom([]int{1, 2, 5, maxSparse + 1}).Draw(t, "reservations")
	}
	p.PlanAll = planAll
	return p
}

// enrich draws the fields of a job that drawRich does not.
func (m *events) enrich(t *rapid.T, j *Job) {
	j.Partition = rapid.IntRange(0, 1).Draw(t, "partition")
	if rapid.IntRange(0, 5).Draw(t, "limited") == 0 {
		j.Limits = []int{rapid.IntRange(0, 1).Draw(t, "limit")}
	}
	if rapid.IntRange(0, 5).Draw(t, "choice") == 0 && j.Group == 0 {
		j.Eligible, j.Alternatives = set(0), []*NodeSet{set(0, 1, 2)}
	}
	if rapid.IntRange(0, 7).Draw(t, "held") == 0 {
		j.Blocked = "JobHeldUser"
	}
	if m.plain {
		j.UserExclusive, j.Share = false, 0
	}
}

func (m *events) arrive(t *rapid.T) {
	m.next++
	j := drawJob(t, m.next, len(m.s.Nodes))
	if rapid.IntRange(0, 6).Draw(t, "shares") == 0 {
		j.Share = rapid.IntRange(2, 3).Draw(t, "sharers")
	}
	j.UserExclusive = rapid.IntRange(0, 8).Draw(t, "user's") == 0
	m.enrich(t, &j)
	if rapid.IntRange(0, 6).Draw(t, "copies") == 0 {
		j.Copies = 3
	}
	m.s.Pending = append(slices.Clone(m.s.Pending), j)
	m.q.Submit(&j)
}

// change withdraws a pending job, or changes its priority.
func (m *events) change(t *rapid.T) {
	if len(m.s.Pending) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.s.Pending)-1).Draw(t, "which")
	j := m.s.Pending[i]
	m.s.Pending = slices.Delete(slices.Clone(m.s.Pending), i, i+1)
	m.q.Withdraw(j.ID)
	if rapid.Bool().Draw(t, "back") {
		j.Priority = rapid.Int64Range(0, 5).Draw(t, "new priority")
		m.s.Pending = append(m.s.Pending, j)
		m.q.Submit(&j)
	}
}

func (m *events) end(id int64) {
	m.s.Running = slices.DeleteFunc(slices.Clone(m.s.Running), func(r Running) bool { return r.ID == id })
	m.q.End(id)
}

// flip changes whether a node is available.
func (m *events) flip(t *rapid.T) {
	i := rapid.IntRange(0, len(m.s.Nodes)-1).Draw(t, "node")
	m.s.Nodes = slices.Clone(m.s.Nodes)
	m.s.Nodes[i].Unavailable = !m.s.Nodes[i].Unavailable
	m.q.SetUnavailable(i, m.s.Nodes[i].Unavailable)
}

// begin starts some of the jobs that were decided to start, with new ids, as tasks of
// arrays have; the start of the others fails.
func (m *events) begin(t *rapid.T, starts []Decision) {
	for _, d := range starts {
		if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
			continue
		}
		p := Plan{Decisions: []Decision{d}}
		start(m.s, p)
		m.next++
		r := &m.s.Running[len(m.s.Running)-1]
		r.ID = m.next
		run := *r
		m.q.Start(&run)
		m.q.Withdraw(d.ID)
		if i := slices.IndexFunc(m.s.Pending, func(j Job) bool { return j.ID == d.ID }); i >= 0 {
			j := m.s.Pending[i]
			m.q.Submit(&j)
		}
	}
}

func starting(p Plan) (out []Decision) {
	for _, d := range p.Decisions {
		if d.StartNow {
			out = append(out, d)
		}
	}
	return out
}

// After any events and under every policy, a Queue decides what a full plan decides,
// and so does a plan of its snapshot.
func TestQueueDecidesAsAPlanDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newEvents(t)
		for range rapid.IntRange(1, 25).Draw(t, "events") {
			switch rapid.IntRange(0, 8).Draw(t, "event") {
			case 0, 1, 2:
				m.arrive(t)
			case 3:
				m.change(t)
			case 4, 5:
				if n := len(m.s.Running); n > 0 {
					m.end(m.s.Running[rapid.IntRange(0, n-1).Draw(t, "ends")].ID)
				}
			case 6:
				m.flip(t)
			case 7:
				m.s.Limits = slices.Clone(m.s.Limits)
				m.s.Limits[0].Left = rapid.Int64Range(0, 4).Draw(t, "left")
				m.q.SetLimits(m.s.Limits)
			default:
				m.s.Now += rapid.Int64Range(1, 15).Draw(t, "pass")
			}
			plan := counted(m.s.Plan())
			if frozen := m.q.Snapshot(m.s.Now).Plan(); !reflect.DeepEqual(frozen, plan) {
				t.Fatalf("at %d the frozen queue is planned so:\n%+v\nthe snapshot so:\n%+v", m.s.Now, frozen, plan)
			}
			got, want := slices.Clone(m.q.Decide(m.s.Now)), starting(plan)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("at %d the queue starts\n%+v\nthe plan\n%+v", m.s.Now, got, want)
			}
			m.begin(t, got)
		}
	})
}

// The CPUs that were chosen for a job that then exceeds a limit are free for the jobs
// behind it.
func TestJobOverItsLimitTakesNoCPUs(t *testing.T) {
	s := &Snapshot{Nodes: nodes(2, 4), Policy: DefaultPolicy(), Limits: []Limit{{Reason: "QOSGrpNodeLimit", Quantity: QuantityNodes, Left: 1}}}
	s.Pending = []Job{
		{ID: 1, Priority: 2, Duration: 60, MinNodes: 1, MaxNodes: 2, Limits: []int{0}},
		{ID: 2, Priority: 1, Duration: 60, MinNodes: 2, MaxNodes: 2, CPUsPerTask: 4},
	}
	d := s.Plan().Decisions
	if d[0].StartNow || d[0].Reason != "QOSGrpNodeLimit" || !d[1].StartNow {
		t.Errorf("decisions %+v", d)
	}
}

// A Queue decides incrementally only under policies whose reservations are few.
func TestIncremental(t *testing.T) {
	var some CPUSet
	some.AddRange(0, 2)
	for _, c := range []struct {
		name string
		s    Snapshot
		want bool
	}{
		{"one reservation", Snapshot{Policy: Policy{Reservations: 1}}, true},
		{"one for each", Snapshot{}, false},
		{"in order", Snapshot{Policy: FCFS()}, true},
		{"nodes are kept", Snapshot{Policy: Policy{Reservations: 1}, AdvanceReservations: []AdvanceReservation{{Name: "r", Nodes: *set(0)}}}, true},
		{"cores are kept", Snapshot{Policy: Policy{Reservations: 1}, AdvanceReservations: []AdvanceReservation{{Name: "r", Cores: map[int]CPUSet{0: some}}}}, false},
	} {
		if got := c.s.Incremental(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
