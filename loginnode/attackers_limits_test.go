package loginnode_test

import (
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/limit"
)

// manyKeys returns OpenSSH's client, which offers four wrong keys before the right one, as a
// client with several keys in its agent does.
func (n *node) manyKeys(p *person, right bool, command string) *exec.Cmd {
	var args []string
	for _, name := range []string{"other1", "other2", "other3", "other4"} {
		_, file := n.writeKey(name)
		args = append(args, "-i", file)
	}
	if right {
		args = append(args, "-i", p.keyFile)
	}
	n.options(p) // writes known_hosts
	return exec.Command("ssh", append(append([]string{"-F", "/dev/null"}, args...),
		"-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile="+n.dir+"/known_hosts", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
		"-p", n.port(), p.Name+"@127.0.0.1", command)...)
}

// noneEarly waits for the end of all connections that have not logged in, because they are
// penalised when they end.
func (n *node) noneEarly() {
	n.t.Helper()
	eventually.Holds(n.t, "the connections' end", func() bool { return n.metric("berth_login_early_connections") == "0" })
}

// A client that offers several keys before the right one can log in any number of times:
// a connection that has logged in is no failure.
func TestSeveralKeysBeforeTheRightOneAreNoFailure(t *testing.T) {
	have(t, "ssh")
	n := start(t, func(c *loginnode.Config) { c.Penalties = limit.Penalties{} })
	for i := range 4 {
		if out, err := n.manyKeys(n.ann(), true, "echo in").CombinedOutput(); err != nil || string(out) != "in\n" {
			t.Fatalf("login %d: %v %s", i, err, out)
		}
	}
}

// A connection that fails costs one penalty, however many keys it offered.
func TestFailedConnectionIsOnePenalty(t *testing.T) {
	have(t, "ssh")
	n := start(t, func(c *loginnode.Config) {
		c.Penalties = limit.Penalties{AuthFail: 10 * time.Second, Min: 15 * time.Second}
	})
	fails := func() {
		t.Helper()
		if out, err := n.manyKeys(n.ann(), false, "echo in").CombinedOutput(); err == nil {
			t.Fatalf("the login succeeded without a key: %s", out)
		}
		n.noneEarly()
	}
	fails()
	if r := n.audit.find(t, "refused"); len(r) != 0 {
		t.Fatalf("refused after one failed connection: %+v", r)
	}
	fails()
	if out, err := n.ssh(n.ann(), "true").CombinedOutput(); err == nil {
		t.Errorf("no penalty after two: %s", out)
	}
}

// An attacker with the address of another user, who logs in with OpenSSH's client, does
// not lock out users there: neither with wrong keys nor with connections that it only
// keeps open.
func TestAttackerBehindSharedAddressLocksNobodyOut(t *testing.T) {
	have(t, "ssh")
	n := start(t, func(c *loginnode.Config) {
		c.Penalties = limit.Penalties{AuthFail: time.Minute}
		c.Startups = limit.Startups{Begin: 100, Rate: 100, Full: 100, PerSource: 20}
	})
	in := func(when string) {
		t.Helper()
		if out, err := n.ssh(n.ann(), "echo", "in").CombinedOutput(); err != nil || string(out) != "in\n" {
			t.Fatalf("%s: %v %s", when, err, out)
		}
	}
	in("before")
	for range 3 {
		if out, err := n.manyKeys(n.ann(), false, "true").CombinedOutput(); err == nil {
			t.Fatalf("the login succeeded: %s", out)
		}
	}
	in("after failures of another one")
	for range 60 {
		c := dialRaw(t, n.addr)
		defer c.Close()
	}
	// All of them must arrive before the login: 20 that arrive later would make the limiter drop it.
	refused := func(count int) func() bool {
		return func() bool {
			r := n.audit.find(t, "refused")
			return len(r) == count && r[0].Reason == limit.ReasonPerSource
		}
	}
	eventually.Holds(t, "the attacker's oldest connections to be dropped", refused(40))
	if got := n.metric("berth_login_early_connections"); got != "20" {
		t.Errorf("%s connections are kept", got)
	}
	in("beside silent connections")
	eventually.Holds(t, "one more to be dropped for it", refused(41))
}

// Addresses that many clients share are never penalised, even before any client has logged
// in from there.
func TestNodeAddressesAreNotPenalised(t *testing.T) {
	n := start(t, func(c *loginnode.Config) {
		c.Penalties = limit.Penalties{AuthFail: time.Minute}
		c.SharedSources = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	for range 3 {
		if _, err := n.dial("ann", newKey(t)); err == nil {
			t.Fatal("the login succeeded")
		}
	}
	if got := n.output(n.ann(), "echo in"); got != "in" {
		t.Error(got)
	}
}

// A user who logs in too often waits and is then refused; others log in as usual. A
// stranger who knows a user's public key uses up nothing of the user's limits.
func TestOneUsersLoginsAreThrottled(t *testing.T) {
	needRoot(t)
	n := start(t, func(c *loginnode.Config) { c.LoginRate = limit.Rate{PerSecond: 0.05, Burst: 5} })
	for range 20 {
		if _, err := n.dial("ann", &forger{Signer: n.ann().key, real: n.eve().key}); err == nil {
			t.Fatal("a login with an unproven key succeeded")
		}
	}
	for i := range 5 {
		if got := n.output(n.ann(), "echo in"); got != "in" {
			t.Fatalf("login %d: %q", i, got)
		}
	}
	if c, err := n.dial("ann", n.ann().key); err == nil {
		if s, err := c.NewSession(); err == nil && s.Run("true") == nil {
			t.Error("a sixth login at once")
		}
		c.Close()
	}
	eventually.Holds(t, "the audit record", func() bool {
		r := n.audit.find(t, "refused")
		return len(r) == 1 && r[0].User == "ann" && strings.Contains(r[0].Reason, "logins a second")
	})
	if got := n.output(n.bob(), "echo in"); got != "in" {
		t.Errorf("another user: %q", got)
	}
}

// The sessions that a user starts on one connection are throttled, too.
func TestOneUsersSessionsAreThrottled(t *testing.T) {
	n := start(t, func(c *loginnode.Config) { c.SessionRate = limit.Rate{PerSecond: 0.05, Burst: 3} })
	c := n.login(n.ann())
	for range 3 {
		run(t, c, "true")
	}
	if _, err := c.NewSession(); err == nil || !strings.Contains(err.Error(), "too many sessions at a time") {
		t.Errorf("a fourth session: %v", err)
	}
	if isRoot() && n.output(n.bob(), "echo in") != "in" {
		t.Error("another user is refused as well")
	}
}

// Connections that never send anything use at most the few resources that are reserved
// for them.
func TestHalfOpenConnectionsCostLittle(t *testing.T) {
	n := start(t)
	before := openFiles(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	var held []net.Conn
	for range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 500 {
				c, err := net.Dial("tcp", n.addr)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				held = append(held, c)
				mu.Unlock()
			}
		}()
	}
	all.Wait()
	eventually.Holds(t, "all but 100 to be dropped", func() bool { return len(n.audit.find(t, "refused")) == 1900 })
	if got := n.metric("berth_login_early_connections"); got != "100" {
		t.Errorf("%s are kept", got)
	}
	if got := n.output(n.ann(), "echo in"); got != "in" {
		t.Errorf("beside them: %q", got)
	}
	for _, c := range held {
		c.Close()
	}
	eventually.Holds(t, "their descriptors to go", func() bool { return openFiles(t) <= before+20 })
}
