package limit

import (
	"net/netip"
	"time"
)

// block returns the block of addresses that counts as one with an address.
func (c *Connections) block(a netip.Addr) netip.Prefix {
	bits := c.penalties.NetV6Bits
	if a.Is4() {
		bits = c.penalties.NetV4Bits
	}
	p, err := a.Prefix(bits)
	if err != nil {
		return netip.PrefixFrom(a, a.BitLen())
	}
	return p
}

// refuses reports whether connections from the address are refused for now.
func (c *Connections) refuses(a netip.Addr, s *source) bool {
	p := &c.penalties
	return !p.Off && s.until.Sub(c.now()) >= p.Min && !c.trusted(s) && !contains(p.Exempt, a) && !contains(c.shared, a)
}

// trusted reports whether a user has recently logged in from there.
func (c *Connections) trusted(s *source) bool {
	return !s.login.IsZero() && c.now().Sub(s.login) < c.penalties.Trust
}

// penalize adds to a source's penalty; c.mu is held.
func (c *Connections) penalize(a netip.Addr, s *source, how Outcome) {
	p := &c.penalties
	if p.Off || contains(c.shared, a) {
		return
	}
	now := c.now()
	if s.until.Before(now) {
		s.until = now
	}
	s.until = s.until.Add(map[Outcome]time.Duration{
		NoAttempt: p.NoAuth, AuthFailed: p.AuthFail, GraceExceeded: p.Grace, Crashed: p.Crash,
	}[how])
	if limit := now.Add(p.Max); s.until.After(limit) {
		s.until = limit
	}
}

// source returns the state of a block, which may be empty; c.mu is held.
func (c *Connections) source(block netip.Prefix) *source {
	s := c.sources[block]
	if s == nil {
		s = &source{}
		if len(c.sources) >= c.penalties.MaxSources {
			c.sweep()
		}
		c.sources[block] = s
	}
	return s
}

// sweep removes an eighth of the sources: first those with penalties only, and last
// those that are trusted, because memory matters more than a penalty, and a penalty
// less than trust.
func (c *Connections) sweep() {
	for block, s := range c.sources {
		c.forget(block, s)
	}
	for _, trusted := range []bool{false, true} {
		for block, s := range c.sources {
			if len(c.sources) <= c.penalties.MaxSources*7/8 {
				return
			}
			if len(s.pending) == 0 && c.trusted(s) == trusted {
				delete(c.sources, block)
			}
		}
	}
}

// forget deletes a source of which there is nothing to remember.
func (c *Connections) forget(block netip.Prefix, s *source) {
	if len(s.pending) == 0 && !s.until.After(c.now()) && !c.trusted(s) {
		delete(c.sources, block)
	}
}
