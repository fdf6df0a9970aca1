package backfill

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"
)

// processorTime returns the processor time that the process has used so far. It
// is steadier than the clock on a busy machine.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fullMachine returns a machine on which every CPU is taken and a queue waits.
func fullMachine(nodeCount, pending int) *Snapshot {
	rnd := rand.New(rand.NewPCG(1, 2))
	s := &Snapshot{Nodes: nodes(nodeCount, 4)}
	for i := range s.Nodes {
		s.Running = append(s.Running, Running{ID: int64(i), End: 60 + rnd.Int64N(86400), Allocation: []NodeAllocation{held(i, 0, 4)}})
	}
	for i := range pending {
		j := Job{ID: int64(100000 + i), Priority: rnd.Int64N(1000), Submit: int64(i), Duration: 60 + rnd.Int64N(86400), MinNodes: 1 + rnd.IntN(8)}
		j.MaxNodes = j.MinNodes
		s.Pending = append(s.Pending, j)
	}
	return s
}

func BenchmarkPlanFullMachine(b *testing.B) {
	for _, c := range []struct{ nodes, pending int }{{4, 300}, {4, 1500}, {4, 10000}, {100, 1000}, {1000, 10000}, {10000, 10000}, {10000, 100000}} {
		s := fullMachine(c.nodes, c.pending)
		for _, o := range []Policy{DefaultPolicy(), {}} {
			policy := "default"
			if o.Reservations == 0 {
				policy = "conservative"
			}
			b.Run(fmt.Sprintf("%s/nodes=%d/pending=%d", policy, c.nodes, c.pending), func(b *testing.B) {
				s.Policy = o
				before := processorTime()
				for b.Loop() {
					s.Plan()
				}
				b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
			})
		}
	}
}

// BenchmarkGang measures how long it takes to place a job of 1,000 nodes on an
// empty machine of 5,000.
func BenchmarkGang(b *testing.B) {
	s := &Snapshot{Nodes: nodes(5000, 4), Policy: DefaultPolicy()}
	q := NewQueue(s)
	q.Decide(0)
	for b.Loop() {
		q.Submit(&Job{ID: 1, Duration: 3600, MinNodes: 1000, MaxNodes: 1000, CPUsPerTask: 4})
		if d := q.Decide(1); len(d) != 1 || len(d[0].Nodes) != 1000 {
			b.Fatal("not started")
		}
		q.Withdraw(1)
	}
}

// BenchmarkQueueEvent measures what one event costs: a job ends, another is
// submitted, and those that can start do. It reports the median and the 99th percentile.
func BenchmarkQueueEvent(b *testing.B) {
	for _, c := range []struct{ nodes, pending int }{{1000, 10000}, {10000, 100000}} {
		for _, kind := range []string{"full", "mixed"} {
			b.Run(fmt.Sprintf("%s/nodes=%d/pending=%d", kind, c.nodes, c.pending), func(b *testing.B) {
				s := fullMachine(c.nodes, c.pending)
				if kind == "mixed" {
					s = mixed(c.nodes, c.pending)
				}
				s.Policy = DefaultPolicy()
				benchmarkQueue(b, s)
			})
		}
	}
}

func benchmarkQueue(b *testing.B, s *Snapshot) {
	q := NewQueue(s)
	rnd := rand.New(rand.NewPCG(3, 4))
	var running []int64
	for i := range s.Running {
		running = append(running, s.Running[i].ID)
	}
	now, next := int64(0), int64(1_000_000)
	event := func() {
		now++
		i := rnd.IntN(len(running))
		q.End(running[i])
		running[i] = running[len(running)-1]
		running = running[:len(running)-1]
		j := s.Pending[rnd.IntN(len(s.Pending))]
		j.ID, next = next, next+1
		q.Submit(&j)
		for _, d := range q.Decide(now) {
			r := &Running{ID: d.ID, End: endOf(now, d.Duration)}
			for _, a := range d.Nodes {
				r.Allocation = append(r.Allocation, NodeAllocation{Node: a.Node, CPUs: a.CPUs, Memory: a.Memory, GRES: a.GRES})
			}
			q.Withdraw(d.ID)
			q.Start(r)
			running = append(running, d.ID)
		}
	}
	event()
	took := make([]time.Duration, 0, 1<<16)
	for b.Loop() {
		before := processorTime()
		event()
		took = append(took, processorTime()-before)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-cpu-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-cpu-us")
}

// mixed returns a machine of five partitions, whose queue requests many different
// resources: CPUs, memory, tasks, devices.
func mixed(nodeCount, pending int) *Snapshot {
	s := fullMachine(nodeCount, pending)
	rnd := rand.New(rand.NewPCG(5, 6))
	parts := make([]*NodeSet, 5)
	for i := range parts {
		parts[i] = &NodeSet{}
		for n := range nodeCount {
			if rnd.IntN(2) == 0 {
				parts[i].Add(n)
			}
		}
	}
	for i := range s.Nodes {
		if i%4 == 0 {
			s.Nodes[i].GRES = []GRES{{Name: "gpu", Type: "a100", Count: 4}}
		}
	}
	for i := range s.Pending {
		j := &s.Pending[i]
		p := rnd.IntN(len(parts))
		j.Partition, j.Eligible = p, parts[p]
		j.CPUsPerTask, j.MemPerNode = 1+rnd.IntN(4), int64(rnd.IntN(8))*500
		switch rnd.IntN(4) {
		case 0:
			j.Tasks, j.MinNodes, j.MaxNodes = 1+rnd.IntN(16), 1, 0
		case 1:
			j.GRES, j.MinNodes, j.MaxNodes = []GRES{{Name: "gpu", Count: 1}}, 1, 1
		}
	}
	return s
}

func BenchmarkPlanMixed(b *testing.B) {
	for _, c := range []struct{ nodes, pending int }{{1000, 10000}, {10000, 10000}} {
		s := mixed(c.nodes, c.pending)
		for _, all := range []bool{false, true} {
			s.Policy = Policy{Reservations: 1, PlanAll: all}
			b.Run(fmt.Sprintf("nodes=%d/pending=%d/all=%v", c.nodes, c.pending, all), func(b *testing.B) {
				before := processorTime()
				for b.Loop() {
					s.Plan()
				}
				b.ReportMetric(float64((processorTime()-before).Microseconds())/float64(b.N)/1000, "cpu-ms/op")
			})
		}
	}
}
