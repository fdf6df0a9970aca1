// Package podnet gives pods their network. As root a pod has a network
// namespace with one end of a veth pair; the other ends meet on a bridge whose
// address, the gateway, is this machine. Without root pods share the machine's
// network and each has an address of its own in 127.0.0.0/8.
package podnet

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Config of a Network.
type Config struct {
	// Key identifies the cluster on this machine (its state directory):
	// names of links derive from it, and what a crashed owner of the same key
	// left is removed.
	Key string
	// Root: may make network namespaces and links.
	Root bool
	// Prefix is the range of the pods' addresses as root, a /16 to /28;
	// zero: a free /20 inside 10.0.0.0/8.
	Prefix netip.Prefix
	// Isolated: pods reach one another and the gateway only. Otherwise they reach
	// what this machine reaches. Without root it has no effect.
	Isolated bool
}

// Network is an open pod network. Safe for concurrent use.
type Network struct {
	cfg     Config
	bridge  string
	mac     net.HardwareAddr // the bridge's
	prefix  netip.Prefix
	gateway netip.Addr
	egress  egress
	mtu     int // of the pods' links

	mu     sync.Mutex
	taken  map[netip.Addr]bool
	last   netip.Addr
	serial uint32
	relays []net.Listener
	links  sync.WaitGroup

	outside *netlink.Handle // a socket in the machine's own network; nil without root
}

// Open creates the bridge (as root) and removes what a crashed owner of the same key
// left.
func Open(cfg Config) (*Network, error) {
	n := &Network{cfg: cfg, taken: map[netip.Addr]bool{}, mtu: 1500}
	if !cfg.Root {
		n.openLoopback()
		return n, nil
	}
	if err := n.openBridge(); err != nil {
		return nil, err
	}
	outside, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, errors.Join(err, n.closeBridge())
	}
	n.outside = outside
	if !cfg.Isolated {
		n.openEgress()
	}
	return n, nil
}

// Egress returns nil if pods reach what this machine reaches, or were not meant to, else
// an error that says why they reach this machine only.
func (n *Network) Egress() error { return n.egress.err }

// Sweep removes what a crashed owner of the same key left. The network must not
// be open.
func Sweep(cfg Config) error {
	if !cfg.Root {
		return nil
	}
	n := &Network{cfg: cfg}
	return errors.Join(n.closeEgress(), n.closeBridge())
}

// Gateway is the address at which pods reach this machine: the bridge's, or
// 127.0.0.1. Servers on it are reachable from pods only.
func (n *Network) Gateway() netip.Addr { return n.gateway }

// Prefix is the range that pods' addresses are taken from.
func (n *Network) Prefix() netip.Prefix { return n.prefix }

// Close ends relays and removes the bridge. Pods must be gone.
func (n *Network) Close() error {
	n.mu.Lock()
	relays := n.relays
	n.relays = nil
	n.mu.Unlock()
	for _, l := range relays {
		_ = l.Close()
	}
	n.links.Wait()
	if !n.cfg.Root {
		return nil
	}
	n.outside.Close()
	return errors.Join(n.closeEgress(), n.closeBridge())
}

// linkPrefix returns the first 8 letters of the name of every link of this network.
func linkPrefix(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "bt" + hex.EncodeToString(sum[:3])
}
