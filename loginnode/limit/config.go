package limit

import (
	"net/netip"
	"time"
)

// Startups limits the connections that have not logged in (sshd_config(5),
// MaxStartups): from Begin on, each new one causes one to be dropped with a probability
// of Rate percent, which grows to 100 at Full. PerSource limits those of one address.
// Fields of 0 mean the defaults.
type Startups struct {
	Begin, Rate, Full int // 100, 30, 400
	PerSource         int // 100
}

// Complete fills in the defaults.
func (s *Startups) Complete() {
	s.Begin, s.Rate, s.Full = or(s.Begin, 100), or(s.Rate, 30), or(s.Full, 400)
	s.PerSource = or(s.PerSource, 100)
}

// drops reports whether one connection has to be dropped when another arrives and n
// have not logged in; dice is a random number in [0, 100).
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

// Penalties delay addresses whose connections end without a login (sshd_config(5),
// PerSourcePenalties). Each such connection adds one penalty, however many keys it
// offered; one that logs in adds none. New connections are refused while the penalty of
// the address is at least Min. Durations and numbers of 0 mean the defaults.
type Penalties struct {
	Off        bool
	AuthFail   time.Duration // ended after refused attempts; 5 s
	NoAuth     time.Duration // ended without an attempt; 1 s
	Grace      time.Duration // ran out of time; 10 s
	Crash      time.Duration // caused a panic; 90 s
	Min, Max   time.Duration // 15 s, 10 min
	MaxSources int           // addresses that are remembered; 65536
	Exempt     []netip.Prefix
	// Trust is how long an address is not refused after a login from it: those
	// behind one address are not locked out by one of them. 24 h.
	Trust     time.Duration
	NetV4Bits int // addresses with the same prefix of this length count as one; 32
	NetV6Bits int // 64
}

// Complete fills in the defaults.
func (p *Penalties) Complete() {
	p.AuthFail, p.NoAuth = or(p.AuthFail, 5*time.Second), or(p.NoAuth, time.Second)
	p.Grace, p.Crash = or(p.Grace, 10*time.Second), or(p.Crash, 90*time.Second)
	p.Min, p.Max = or(p.Min, 15*time.Second), or(p.Max, 10*time.Minute)
	p.MaxSources, p.Trust = or(p.MaxSources, 65536), or(p.Trust, 24*time.Hour)
	p.NetV4Bits, p.NetV6Bits = or(p.NetV4Bits, 32), or(p.NetV6Bits, 64)
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// contains reports whether one of the blocks has the address.
func contains(blocks []netip.Prefix, a netip.Addr) bool {
	for _, b := range blocks {
		if b.Contains(a) {
			return true
		}
	}
	return false
}
