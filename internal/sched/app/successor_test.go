package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/berth-hpc/berth/internal/wire"
)

// led returns the lease of a leader at that address.
func led(at string) *coordinationv1.Lease {
	name, seconds := "old", int32(3600)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: wire.SystemNamespace, Name: leaseName, ResourceVersion: "1",
			Annotations: map[string]string{leaderAddress: `{"holder":"old","address":"` + at + `"}`}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds},
	}
}

// follower returns a successor of the leader that holds the lease.
func follower(l *coordinationv1.Lease) (*successor, coordinationclient.LeaseInterface) {
	leases := fake.NewClientset(l).CoordinationV1().Leases(wire.SystemNamespace)
	return &successor{leases: leases, retry: time.Millisecond, identity: "new", log: slog.New(slog.DiscardHandler),
		isOwn: func(string) bool { return false }}, leases
}

func holderOf(t *testing.T, leases coordinationclient.LeaseInterface) string {
	t.Helper()
	l, err := leases.Get(t.Context(), leaseName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return holder(l)
}

// peer is the server of a leader. connected has each connection after its handshake.
type peer struct {
	net.Listener
	connected chan net.Conn
}

func newPeer(t *testing.T) *peer {
	t.Helper()
	server := httptest.NewTLSServer(nil) // for its certificate
	defer server.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	p := &peer{Listener: l, connected: make(chan net.Conn, 8)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if c := tls.Server(conn, server.TLS); c.Handshake() == nil {
				p.connected <- c
			}
		}
	}()
	return p
}

func (p *peer) address() address { return address{"old", p.Addr().String()} }

func TestLeaseOfDeadLeaderIsReleased(t *testing.T) {
	p := newPeer(t)
	s, leases := follower(led(p.address().Address))
	ctx, cancel := context.WithCancel(t.Context())
	s.released = cancel
	ended := make(chan struct{})
	go func() { defer close(ended); s.run(ctx) }()
	conn := <-p.connected
	_ = p.Close()
	_ = conn.Close()
	<-ended
	if got := holderOf(t, leases); got != "" {
		t.Errorf("the lease is held by %q", got)
	}
}

func TestLeaderThatClosesConnectionIsNotReplaced(t *testing.T) {
	p := newPeer(t)
	s, _ := follower(led(""))
	go func() { _ = (<-p.connected).Close() }()
	if s.refuses(t.Context(), p.address()) {
		t.Error("a leader that listens counts as dead")
	}
}

func TestLeaderThatWasNeverConnectedIsNotReplaced(t *testing.T) {
	p := newPeer(t)
	_ = p.Close()
	s, _ := follower(led(""))
	if s.refuses(t.Context(), p.address()) {
		t.Error("a leader that was never connected counts as dead: a firewall may refuse connections")
	}
	s.known = p.address().Holder
	if !s.refuses(t.Context(), p.address()) {
		t.Error("a leader that was connected before and refuses connections now does not count as dead")
	}
}

// TestLeaderThatRenewsItsLeaseIsNotReplaced: a leader whose connections are refused lives if
// it renews its lease; a firewall may refuse them.
func TestLeaderThatRenewsItsLeaseIsNotReplaced(t *testing.T) {
	p := newPeer(t)
	_ = p.Close()
	for _, renewed := range []bool{true, false} {
		l := led("")
		client := fake.NewClientset(l)
		gets := 0
		client.PrependReactor("get", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
			if gets++; renewed && gets == 2 {
				l.ResourceVersion = "2"
			}
			return true, l.DeepCopy(), nil
		})
		s, _ := follower(led(""))
		s.leases = client.CoordinationV1().Leases(wire.SystemNamespace)
		if released := s.release(t.Context(), p.address()); released == renewed {
			t.Errorf("renewed: %v, and released: %v", renewed, released)
		}
	}
}

// TestHolderOfLeaseIsFollowed: the lease may still have the address of an earlier leader.
func TestHolderOfLeaseIsFollowed(t *testing.T) {
	l := led("127.0.0.1:1")
	s, _ := follower(l)
	if a, ok := s.leader(t.Context()); !ok || a.Address != "127.0.0.1:1" {
		t.Errorf("the leader is at %+v, %v", a, ok)
	}
	other := "other"
	l.Spec.HolderIdentity = &other
	s, _ = follower(l)
	if a, ok := s.leader(t.Context()); ok {
		t.Errorf("another leader is at %+v", a)
	}
	s.identity = other
	l.Annotations[leaderAddress] = `{"holder":"other","address":"127.0.0.1:1"}`
	s.leases = fake.NewClientset(l).CoordinationV1().Leases(wire.SystemNamespace)
	if _, ok := s.leader(t.Context()); ok {
		t.Error("it follows itself")
	}
}

// A process that was started at the address of the dead leader releases the lease, although it
// was never connected to that leader.
func TestLeaseOfDeadLeaderAtOwnAddressIsReleased(t *testing.T) {
	p := newPeer(t)
	_ = p.Close()
	s, leases := follower(led(p.address().Address))
	s.released = func() {}
	if s.refuses(t.Context(), p.address()) {
		t.Fatal("an unknown leader at another address counts as dead")
	}
	s.isOwn = func(string) bool { return true }
	if !s.refuses(t.Context(), p.address()) || !s.release(t.Context(), p.address()) {
		t.Fatal("the lease was not released")
	}
	if h := holderOf(t, leases); h != "" {
		t.Errorf("the lease is held by %q", h)
	}
}

func TestOwnAddresses(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLinkLocalUnicast() {
			continue
		}
		at := net.JoinHostPort(n.IP.String(), "6820")
		if want := !n.IP.IsLoopback(); isOwnAddress(at) != want {
			t.Errorf("isOwnAddress(%s) = %v", at, !want)
		}
	}
	for _, at := range []string{"192.0.2.1:6820", "[2001:db8::1]:6820", "", "scheduler:6820"} {
		if isOwnAddress(at) {
			t.Errorf("%q counts as an address of this machine", at)
		}
	}
}
