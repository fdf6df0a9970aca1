package limit

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// clock has the time of a test and a limiter that uses it.
type clock struct {
	*testing.T
	now     time.Time
	limiter *Connections
	dropped []string // addresses and reasons
}

func newClock(t *testing.T, s Startups, p Penalties, shared ...string) *clock {
	k := &clock{T: t, now: time.Unix(1e9, 0)}
	s.Complete()
	p.Complete()
	var blocks []netip.Prefix
	for _, b := range shared {
		blocks = append(blocks, netip.MustParsePrefix(b))
	}
	k.limiter = NewConnections(s, p, blocks, func() time.Time { return k.now })
	k.limiter.dice = func() int { return 0 }
	return k
}

// admit opens a connection from an address, later than all before; refused is the expected reason
// of its refusal.
func (k *clock) admit(addr, refused string) *Pending {
	k.Helper()
	k.now = k.now.Add(time.Millisecond)
	p, why := k.limiter.Admit(netip.MustParseAddr(addr), func(reason string) { k.dropped = append(k.dropped, addr+" "+reason) })
	if why != refused {
		k.Errorf("%s: got %q, want %q", addr, why, refused)
	}
	return p
}

// fail opens a connection, which ends with the outcome.
func (k *clock) fail(addr string, how Outcome) {
	k.Helper()
	k.admit(addr, "").Done(how)
}

func (k *clock) wantDropped(want ...string) {
	k.Helper()
	if !slices.Equal(k.dropped, want) {
		k.Errorf("dropped %q, want %q", k.dropped, want)
	}
	k.dropped = nil
}

const (
	attacker = "192.0.2.1"
	honest   = "192.0.2.2"
	third    = "192.0.2.3"
)

func TestFailedConnectionsArePenalisedOnce(t *testing.T) {
	k := newClock(t, Startups{}, Penalties{})
	p := k.admit(attacker, "")
	p.Done(AuthFailed)
	p.Done(Crashed) // it has ended already
	k.fail(attacker, AuthFailed)
	k.fail(attacker, NoAttempt)
	k.fail(attacker, AuthFailed) // 16 s minus the time that has passed
	k.admit(attacker, ReasonPenalty)
	k.admit(honest, "")
	k.now = k.now.Add(2 * time.Second)
	k.fail(attacker, GraceExceeded)
	k.admit(attacker, ReasonPenalty)
	k.now = k.now.Add(time.Minute)
	k.fail(attacker, Crashed)
	k.admit(attacker, ReasonPenalty)
	k.now = k.now.Add(90 * time.Second)
	k.admit(attacker, "")
	for range 1000 {
		k.limiter.penalize(netip.MustParseAddr(third), k.limiter.source(k.limiter.block(netip.MustParseAddr(third))), Crashed)
	}
	k.now = k.now.Add(10*time.Minute - 14*time.Second)
	k.admit(third, "") // the penalty has a maximum
}

func TestLoginIsNoPenaltyAndProtectsItsAddress(t *testing.T) {
	k := newClock(t, Startups{}, Penalties{})
	k.fail(attacker, AuthFailed)
	k.fail(attacker, AuthFailed)
	k.fail(attacker, LoggedIn)
	for range 100 { // by another client with the same address
		k.fail(attacker, AuthFailed)
	}
	k.admit(attacker, "").Done(LoggedIn)
	k.now = k.now.Add(25 * time.Hour)
	for range 4 {
		k.fail(attacker, AuthFailed)
	}
	k.admit(attacker, ReasonPenalty)
}

func TestSharedAddressesAreNotPenalised(t *testing.T) {
	k := newClock(t, Startups{PerSource: 2}, Penalties{Exempt: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}, "10.0.0.0/8")
	for range 10 {
		k.fail("10.1.1.1", Crashed)
		k.fail("198.51.100.1", Crashed)
	}
	for range 5 {
		k.admit("10.1.1.1", "")
	}
	k.wantDropped()
	for range 3 {
		k.admit("198.51.100.1", "") // exempt from penalties, and no more
	}
	k.wantDropped("198.51.100.1 " + ReasonPerSource)
	k = newClock(t, Startups{}, Penalties{Off: true})
	k.fail(attacker, Crashed)
	k.admit(attacker, "")
}

func TestHostHasABlockOfAddresses(t *testing.T) {
	k := newClock(t, Startups{}, Penalties{})
	k.fail("2001:db8::1", Crashed)
	k.admit("2001:db8::2", ReasonPenalty)
	k.admit("2001:db8:0:1::1", "")
}

// A client with many connections loses the oldest of them, and no other client is
// refused.
func TestAddressWithMostConnectionsMakesRoom(t *testing.T) {
	k := newClock(t, Startups{Begin: 4, Rate: 100, Full: 4, PerSource: 3}, Penalties{})
	first := k.admit(attacker, "")
	k.admit(attacker, "")
	k.admit(attacker, "")
	k.wantDropped()
	k.admit(attacker, "")
	k.wantDropped(attacker + " " + ReasonPerSource)
	first.Done(AuthFailed) // it was dropped, which is no penalty
	mine := k.admit(honest, "")
	k.admit(third, "")
	k.wantDropped(attacker + " " + ReasonStartups)
	k.admit(attacker, "") // the address with the most connections loses one for its own
	k.wantDropped(attacker + " " + ReasonStartups)
	if k.limiter.Pending() != 4 {
		t.Errorf("%d connections have not logged in", k.limiter.Pending())
	}
	mine.Done(LoggedIn)
	k.admit(honest, "").Done(LoggedIn)
	k.wantDropped()
}

// Of many addresses with one connection each, the oldest connection is dropped.
func TestManyAddressesMakeRoomByAge(t *testing.T) {
	k := newClock(t, Startups{Begin: 2, Rate: 100, Full: 2}, Penalties{})
	k.admit(attacker, "")
	k.admit(third, "")
	k.admit(honest, "")
	k.wantDropped(attacker + " " + ReasonStartups)
}

func TestEarlyDropIsRandom(t *testing.T) {
	k := newClock(t, Startups{Begin: 2, Rate: 50, Full: 4, PerSource: 10}, Penalties{})
	dice := 99
	k.limiter.dice = func() int { return dice }
	for range 4 {
		k.admit(attacker, "")
	}
	k.wantDropped() // the probabilities of 50 and 75 % are below the drawn number
	k.admit(attacker, "")
	k.wantDropped(attacker + " " + ReasonStartups) // full
	dice = 0
	k = newClock(t, Startups{Begin: 2, Rate: 50, Full: 4, PerSource: 10}, Penalties{})
	for range 3 {
		k.admit(attacker, "")
	}
	k.wantDropped(attacker + " " + ReasonStartups)
}

// An attacker with many addresses uses no more memory than this, and does not affect
// addresses from which users log in.
func TestRememberedAddressesAreBounded(t *testing.T) {
	k := newClock(t, Startups{}, Penalties{MaxSources: 100})
	k.fail(honest, LoggedIn)
	for i := range 1000 {
		k.fail(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}).String(), Crashed)
	}
	if n := len(k.limiter.sources); n > 100 {
		t.Errorf("%d sources are remembered", n)
	}
	k.fail(honest, Crashed)
	k.admit(honest, "")
	k.now = k.now.Add(48 * time.Hour)
	k.limiter.sweep()
	if n := len(k.limiter.sources); n != 1 { // honest's, whose connection is pending
		t.Errorf("%d sources are never forgotten", n)
	}
	if len(k.limiter.waiting) != 1 {
		t.Errorf("%d sources with connections", len(k.limiter.waiting))
	}
}
