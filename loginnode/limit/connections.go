package limit

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Reasons why a connection is refused or dropped, for the metrics and the audit log.
const (
	ReasonPenalty   = "penalty"
	ReasonStartups  = "startups"
	ReasonPerSource = "startups of one source"
)

// Outcome is how a connection ended that had not logged in before.
type Outcome int

// The outcomes; LoggedIn ends the time before the login, not the connection.
const (
	LoggedIn Outcome = iota
	NoAttempt
	AuthFailed
	GraceExceeded
	Crashed
)

// Connections decides which connections are accepted, and counts those that have not
// logged in. When there are too many, the oldest one of the address with the most of
// them is dropped, and not the new one: a client that logs in needs only moments,
// whereas the connections of an attacker grow old. It is safe for concurrent use.
type Connections struct {
	startups  Startups
	penalties Penalties
	shared    []netip.Prefix
	now       func() time.Time
	dice      func() int

	mu      sync.Mutex
	pending int
	sources map[netip.Prefix]*source
	waiting map[*source]bool // those with pending connections
}

// source is the state of an address.
type source struct {
	pending []*Pending // oldest first
	until   time.Time  // the penalty's end
	login   time.Time  // the last login
}

// Pending is a connection that has not logged in.
type Pending struct {
	limiter *Connections
	addr    netip.Addr
	block   netip.Prefix
	began   time.Time
	drop    func(reason string)
	over    bool // it has logged in, ended, or been dropped
}

// NewConnections returns a limiter with complete configurations. The addresses in
// shared have any number of clients (a NAT, nodes without a PROXY protocol): they get
// no penalties and no limit of their own.
func NewConnections(s Startups, p Penalties, shared []netip.Prefix, now func() time.Time) *Connections {
	return &Connections{
		startups: s, penalties: p, shared: shared, now: now,
		dice: func() int { return rand.IntN(100) }, sources: map[netip.Prefix]*source{}, waiting: map[*source]bool{},
	}
}

// Admit accepts a connection, or returns the reason why not. drop is called at most
// once, from another goroutine's Admit, with the reason, if the connection is dropped
// before it has logged in; it must return at once.
func (c *Connections) Admit(a netip.Addr, drop func(reason string)) (p *Pending, refused string) {
	c.mu.Lock()
	block := c.block(a)
	s := c.source(block)
	if c.refuses(a, s) {
		c.mu.Unlock()
		return nil, ReasonPenalty
	}
	p = &Pending{limiter: c, addr: a, block: block, began: c.now(), drop: drop}
	var victims []func()
	if len(s.pending) >= c.startups.PerSource && !contains(c.shared, a) {
		victims = append(victims, c.evict(s, ReasonPerSource))
	}
	full := c.startups.drops(c.pending, c.dice())
	s.pending = append(s.pending, p)
	c.waiting[s] = true
	c.pending++
	if full {
		victims = append(victims, c.evict(c.largest(), ReasonStartups))
	}
	refused = ""
	if p.over { // its own address has no older one
		p, refused, victims = nil, ReasonStartups, nil
	}
	c.mu.Unlock()
	for _, drop := range victims {
		drop()
	}
	return p, refused
}

// largest returns the source with the most pending connections; of several, the one
// with the oldest connection. There is at least one.
func (c *Connections) largest() *source {
	var best *source
	for s := range c.waiting {
		switch {
		case best == nil, len(s.pending) > len(best.pending):
			best = s
		case len(s.pending) == len(best.pending) && s.pending[0].began.Before(best.pending[0].began):
			best = s
		}
	}
	return best
}

// evict removes the oldest connection of a source and returns its drop function.
func (c *Connections) evict(s *source, reason string) func() {
	p := s.pending[0]
	c.remove(p, s)
	return func() { p.drop(reason) }
}

// remove takes a connection out of the count; c.mu is held.
func (c *Connections) remove(p *Pending, s *source) {
	p.over = true
	c.pending--
	if i := slices.Index(s.pending, p); i >= 0 {
		s.pending = slices.Delete(s.pending, i, i+1)
	}
	if len(s.pending) == 0 {
		delete(c.waiting, s)
	}
}

// Done ends the time before the login. Only the first call counts, and none after the
// connection was dropped: dropped connections cause no penalty.
func (p *Pending) Done(how Outcome) {
	c := p.limiter
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.over {
		return
	}
	s := c.source(p.block)
	c.remove(p, s)
	if how == LoggedIn {
		s.login = c.now()
	} else {
		c.penalize(p.addr, s, how)
	}
	c.forget(p.block, s)
}

// Pending returns how many connections have not logged in.
func (c *Connections) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pending
}
