package loginnode

import (
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// Startups bounds the connections that have not logged in (sshd_config(5),
// MaxStartups): from Begin on, Rate percent of new ones are dropped, more as
// they grow, and all of them at Full. PerSource bounds those of one address.
type Startups struct {
	Begin, Rate, Full int // 0: 100, 30, 400
	PerSource         int // 0: 100
}

func (s *Startups) complete() {
	s.Begin, s.Rate, s.Full = or(s.Begin, 100), or(s.Rate, 30), or(s.Full, 400)
	s.PerSource = or(s.PerSource, 100)
}

// drops tells whether to drop a connection when n others have not logged in;
// dice is a random number in [0, 100).
func (s *Startups) drops(n, dice int) bool {
	switch {
	case n < s.Begin:
		return false
	case n >= s.Full || s.Rate >= 100:
		return true
	}
	p := s.Rate + (100-s.Rate)*(n-s.Begin)/max(1, s.Full-s.Begin)
	return dice < p
}

// Penalties make an address wait that misbehaves (sshd_config(5),
// PerSourcePenalties). Its connections are closed while its penalty exceeds
// Min. Durations of 0 mean the defaults.
type Penalties struct {
	Off        bool
	AuthFail   time.Duration // a refused attempt; 5 s
	NoAuth     time.Duration // gone without an attempt; 1 s
	Grace      time.Duration // out of time; 10 s
	Crash      time.Duration // provoked a defect; 90 s
	Min, Max   time.Duration // 15 s, 10 min
	MaxSources int           // addresses that are remembered; 65536
	Exempt     []netip.Prefix
	NetV4Bits  int // addresses with so many bits in common are one; 32
	NetV6Bits  int // 64
}

func (p *Penalties) complete() {
	p.AuthFail, p.NoAuth = or(p.AuthFail, 5*time.Second), or(p.NoAuth, time.Second)
	p.Grace, p.Crash = or(p.Grace, 10*time.Second), or(p.Crash, 90*time.Second)
	p.Min, p.Max = or(p.Min, 15*time.Second), or(p.Max, 10*time.Minute)
	p.MaxSources = or(p.MaxSources, 65536)
	p.NetV4Bits, p.NetV6Bits = or(p.NetV4Bits, 32), or(p.NetV6Bits, 64)
}

// gate decides which connections are let in. It is safe for concurrent use.
type gate struct {
	startups  Startups
	penalties Penalties
	now       func() time.Time
	dice      func() int

	mu      sync.Mutex
	early   int // connections that have not logged in
	sources map[netip.Prefix]*source
}

// source is what is remembered of an address.
type source struct {
	early int
	until time.Time // the penalty's end
}

func newGate(s Startups, p Penalties, now func() time.Time) *gate {
	return &gate{startups: s, penalties: p, now: now, dice: func() int { return rand.IntN(100) }, sources: map[netip.Prefix]*source{}}
}

// block is what addresses are counted by.
func (g *gate) block(a netip.Addr) netip.Prefix {
	bits := g.penalties.NetV6Bits
	if a.Is4() {
		bits = g.penalties.NetV4Bits
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.PrefixFrom(a, a.BitLen())
	}
	return p
}

// enter lets a connection in, or says why not.
func (g *gate) enter(a netip.Addr) (refused string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.source(a)
	switch {
	case g.penalized(a, s):
		return "penalty"
	case s.early >= g.startups.PerSource:
		return "startups of one source"
	case g.startups.drops(g.early, g.dice()):
		return "startups"
	}
	g.early++
	s.early++
	return ""
}

// leave is called once for each connection that entered: when it has logged
// in, or ended.
func (g *gate) leave(a netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.early--
	s := g.source(a)
	s.early--
	g.forget(g.block(a), s)
}

// source finds or makes what is remembered; g.mu is held.
func (g *gate) source(a netip.Addr) *source {
	key := g.block(a)
	s := g.sources[key]
	if s == nil {
		s = &source{}
		if len(g.sources) >= g.penalties.MaxSources {
			g.sweep()
		}
		g.sources[key] = s
	}
	return s
}

// sweep forgets sources without a penalty; if all have one, some of them:
// memory is worth more than a penalty.
func (g *gate) sweep() {
	for key, s := range g.sources {
		g.forget(key, s)
	}
	for key, s := range g.sources {
		if len(g.sources) < g.penalties.MaxSources {
			return
		}
		if s.early == 0 {
			delete(g.sources, key)
		}
	}
}

func (g *gate) forget(key netip.Prefix, s *source) {
	if s.early == 0 && !s.until.After(g.now()) {
		delete(g.sources, key)
	}
}

func (g *gate) penalized(a netip.Addr, s *source) bool {
	if g.penalties.Off {
		return false
	}
	for _, p := range g.penalties.Exempt {
		if p.Contains(a) {
			return false
		}
	}
	return s.until.Sub(g.now()) >= g.penalties.Min
}

// punish adds to an address' penalty.
func (g *gate) punish(a netip.Addr, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, now := g.source(a), g.now()
	if s.until.Before(now) {
		s.until = now
	}
	s.until = s.until.Add(d)
	if limit := now.Add(g.penalties.Max); s.until.After(limit) {
		s.until = limit
	}
}
