package simulation

import (
	"sync/atomic"
	"time"
)

// clock is the clock of a machine. It differs from that of the API server, which is the time
// of the simulation. Any goroutine may read it.
type clock struct{ offset atomic.Int64 } // in nanoseconds

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// newClock returns the clock of another machine.
func (s *simulation) newClock() *clock {
	c := &clock{}
	if s.clock > 0 && s.chance(2) {
		c.offset.Store(int64(s.between(-s.clock, s.clock)))
	}
	return c
}

// now is the time by the clock of the leader, which notes when users do something.
func (s *simulation) now() time.Time {
	if s.leader == nil {
		return time.Now()
	}
	return s.leader.clock.now()
}

// farJump is the largest of the rare long jumps. Tokens expire within it.
const farJump = 3 * time.Hour

// jump changes the clock of one machine, forward or back.
func (s *simulation) jump() {
	processes := s.former
	if s.leader != nil {
		processes = append(processes[:len(processes):len(processes)], s.leader)
	}
	far := s.clock
	if s.chance(10) {
		far = farJump
	}
	by := s.between(-far, far)
	p, ok := pick(s.random, processes)
	switch {
	case !ok || s.chance(4):
		s.machine.clockOf(nodeName(s.random.IntN(s.nodes))).offset.Add(int64(by))
		s.truth.seen["clocks of nodes jumped"]++
		return
	case p == s.leader:
		s.truth.seen["clocks of leaders jumped"]++
	default:
		s.truth.seen["clocks of former leaders jumped"]++
	}
	s.clockRead(p)
	p.clock.offset.Add(int64(by))
}

// clockRead notes what the clock of a process shows before it jumps or the process ends.
func (s *simulation) clockRead(p *process) {
	if t := p.clock.now(); t.After(s.latestRead) {
		s.latestRead = t
	}
}

// latest returns the latest time that the clock of a process has ever shown.
func (s *simulation) latest() time.Time {
	if s.processes == 0 {
		return time.Now()
	}
	t := s.latestRead
	for _, p := range append(s.former[:len(s.former):len(s.former)], s.leader) {
		if p != nil && p.clock.now().After(t) {
			t = p.clock.now()
		}
	}
	return t
}

// clockOf returns the clock of a node.
func (m *machine) clockOf(node string) *clock {
	if m.clocks[node] == nil {
		m.clocks[node] = &clock{}
	}
	return m.clocks[node]
}
