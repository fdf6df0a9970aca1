package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/wire"
)

// leaderAddress is the annotation of the lease with the address of its holder, as JSON.
const leaderAddress = "berth.hpc/leader-address"

// address is where the holder of the lease listens.
type address struct {
	Holder  string `json:"holder"`
	Address string `json:"address"` // host:port
}

// dialTimeout is how long a connection to the leader may take.
const dialTimeout = 2 * time.Second

// successor notices within a second that the leader's process has ended, so that nobody
// waits for the end of its lease. It keeps a connection to the leader. Where the kernel
// closes that connection and refuses the next one, no process listens there any more. If
// the lease is not renewed either, it is released in the name of the dead process.
//
// A leader that was stopped, or whose machine or network failed, refuses nothing: its
// lease has to expire.
type successor struct {
	leases   coordinationclient.LeaseInterface
	retry    time.Duration // between two renewals of a leader
	identity string
	log      *slog.Logger
	known    string // the last holder of the lease that accepted a connection
	isOwn    func(address string) bool
	// released is called after the lease of a dead leader was released.
	released func()
}

// run follows one leader after the other until ctx ends.
func (s *successor) run(ctx context.Context) {
	for ctx.Err() == nil {
		if a, ok := s.leader(ctx); ok && s.refuses(ctx, a) && s.release(ctx, a) {
			s.log.Info("the leader's process has ended; its lease was released", "leader", a.Holder)
			s.released()
		}
		pause(ctx, s.retry)
	}
}

// leader returns the address of the leader, if it is another process and has one.
func (s *successor) leader(ctx context.Context) (address, bool) {
	l, err := s.leases.Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || holder(l) == "" || holder(l) == s.identity {
		return address{}, false
	}
	var a address
	err = json.Unmarshal([]byte(l.Annotations[leaderAddress]), &a)
	return a, err == nil && a.Holder == holder(l)
}

func holder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// follow is how long a connection to one leader is kept before the lease is read again.
const follow = 8 * time.Second

// refuses connects to the leader, and reports whether the connection ended and the next
// one was refused, or the first one at an address of this process's own network. It
// returns false if the leader cannot be reached at all, and from time to time.
func (s *successor) refuses(ctx context.Context, a address) bool {
	conn, err := connect(ctx, a.Address)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED) && (s.known == a.Holder || s.isOwn(a.Address))
	}
	if s.known != a.Holder {
		s.known = a.Holder
		s.log.Info("following the leader", "leader", a.Holder, "address", a.Address)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if conn.SetReadDeadline(time.Now().Add(follow)) != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1)) // nothing is sent, so it ends with the connection
	if err == nil || os.IsTimeout(err) || ctx.Err() != nil {
		return false
	}
	// The kernel closes the files of a process that ends one after the other.
	for range 10 {
		if s.gone(ctx, a) {
			return true
		}
		pause(ctx, s.retry/20)
	}
	return false
}

// isOwnAddress reports whether the address belongs to the network that this process is in,
// for instance because the leader's container was started again in its pod. Where such an
// address is refused, no process listens there. Every network has the loopback addresses.
func isOwnAddress(at string) bool {
	ap, err := netip.ParseAddrPort(at)
	if err != nil || ap.Addr().IsLoopback() {
		return false
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr() == ap.Addr().Unmap()
	})
}

// gone reports whether nobody listens at the leader's address.
func (s *successor) gone(ctx context.Context, a address) bool {
	conn, err := connect(ctx, a.Address)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// connect opens a connection with TLS, which the leader's server closes after a while
// without requests. Nothing is sent, so the certificate does not matter.
func connect(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // see above
	return d.DialContext(ctx, "tcp", address)
}

// release releases the lease, unless it is renewed within one and a half renewal
// intervals or the leader listens again. It reports whether it has released it.
func (s *successor) release(ctx context.Context, a address) bool {
	before, err := s.leases.Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || holder(before) != a.Holder {
		return false
	}
	pause(ctx, s.retry*3/2)
	l, err := s.leases.Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || l.ResourceVersion != before.ResourceVersion {
		return false
	}
	if !s.gone(ctx, a) {
		return false
	}
	nobody, second := "", int32(1)
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &nobody, &second
	_, err = s.leases.Update(ctx, l, metav1.UpdateOptions{}) // refused if it was renewed meanwhile
	return err == nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// publishAddress writes into the lease where this leader listens, for its successors. In a
// pod that is the pod's address; a listener on every address of a machine has none that
// is known.
func publishAddress(ctx context.Context, cfg *Config, c client.Client, at net.Addr) error {
	t, ok := at.(*net.TCPAddr)
	if !ok {
		return nil
	}
	host := t.IP.String()
	if t.IP.IsUnspecified() {
		if cfg.Pod == "" {
			return nil
		}
		p := &corev1.Pod{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: wire.SystemNamespace, Name: cfg.Pod}, p); err != nil {
			return fmt.Errorf("address of this pod: %w", err)
		}
		host = p.Status.PodIP
	}
	own, err := json.Marshal(address{cfg.Identity, net.JoinHostPort(host, strconv.Itoa(t.Port))})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{leaderAddress: string(own)}}})
	if err != nil {
		return err
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: wire.SystemNamespace, Name: leaseName}}
	return c.Patch(ctx, l, client.RawPatch(types.MergePatchType, patch))
}
