package limit

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// clock is a test's time and its limiter.
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

// admit is a connection from an address, later than all before; refused is why it
// is not let in.
func (k *clock) admit(addr, refused string) *Pending {
	k.Helper()
	k.now = k.now.Add(time.Millisecond)
	p, why := k.limiter.Admit(netip.MustParseAddr(addr), func(reason string) { k.dropped = append(k.dropped, addr+" "+reason) })
	if why != refused {
		k.Errorf("%s: got %q, want %q", addr, why, refused)
	}
	return p
}

// fail is a connection that ends so.
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
	stranger = "192.0.2.1"
	honest   = "192.0.2.2"
	third    = "192.0.2.3"
)

func TestFailedConnectionsArePenalisedOnce(t *testing.T) {
	k := newClock(t, Startups{}, Penalties{})
	p := k.admit(stranger, "")
	p.Done(AuthFailed)
	p.Done(Crashed) // it has ended already
	k.fail(stranger, AuthFailed)
	k.fail(stranger, NoAttempt)
	k.fail(stranger, AuthFailed) // 16 s minus the time that has passed
	k.admit(stranger, ReasonPenalty)
	k.admit(honest, "")
	k.now = k.now.Add(2 * time.Second)
	k.fail(stranger, GraceExceeded)
	k.admit(stranger, ReasonPenalty)
	k.now = k.now.Add(time.Minute)
	k.fail(stranger, Crashed)
	k.admit(stranger, ReasonPenalty)
	k.now = k.now.Add(90 * time.Second)
	k.admit(stranger, "")
	for range 1000 {
		k.limiter.penalize(netip.MustParseAddr(third), k.limiter.source(k.limiter.block(netip.MustParseAddr(third))), Crashed)
	}
	k.now = k.now.Add(10*time.Minute - 14*time.Second)
	k.admit(third, "") // the penalty has a maximum
}

func TestLoginIsNoPenaltyAndProtectsItsAddress(t *testing.T) {
	k := newClock(t, Startups{}, Penalties{})
	k.fail(stranger, AuthFailed)
	k.fail(stranger, AuthFailed)
	k.fail(stranger, LoggedIn)
	for range 100 { // by another client with the same address
		k.fail(stranger, AuthFailed)
	}
	k.admit(stranger, "").Done(LoggedIn)
	k.now = k.now.Add(25 * time.Hour)
	for range 4 {
		k.fail(stranger, AuthFailed)
	}
	k.admit(stranger, ReasonPenalty)
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
	k.fail(stranger, Crashed)
	k.admit(stranger, "")
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
	first := k.admit(stranger, "")
	k.admit(stranger, "")
	k.admit(stranger, "")
	k.wantDropped()
	k.admit(stranger, "")
	k.wantDropped(stranger + " " + ReasonPerSource)
	first.Done(AuthFailed) // it was dropped: no penalty
	mine := k.admit(honest, "")
	k.admit(third, "")
	k.wantDropped(stranger + " " + ReasonStartups)
	k.admit(stranger, "") // who has the most makes room for oneself
	k.wantDropped(stranger + " " + ReasonStartups)
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
	k.admit(stranger, "")
	k.admit(third, "")
	k.admit(honest, "")
	k.wantDropped(stranger + " " + ReasonStartups)
}

func TestEarlyDropIsRandom(t *testing.T) {
	k := newClock(t, Startups{Begin: 2, Rate: 50, Full: 4, PerSource: 10}, Penalties{})
	dice := 99
	k.limiter.dice = func() int { return dice }
	for range 4 {
		k.admit(stranger, "")
	}
	k.wantDropped() // 50 and 75 of 100 are above the dice
	k.admit(stranger, "")
	k.wantDropped(stranger + " " + ReasonStartups) // full
	dice = 0
	k = newClock(t, Startups{Begin: 2, Rate: 50, Full: 4, PerSource: 10}, Penalties{})
	for range 3 {
		k.admit(stranger, "")
	}
	k.wantDropped(stranger + " " + ReasonStartups)
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
		t.Errorf("%d sources are remembered for ever", n)
	}
	if len(k.limiter.waiting) != 1 {
		t.Errorf("%d sources with connections", len(k.limiter.waiting))
	}
}
