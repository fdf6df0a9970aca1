// Package podnet provides the network of pods. As root, each pod has a network namespace
// with one end of a veth pair. The other ends are ports of a bridge, whose address, the
// gateway, belongs to this machine. Without root, pods share the machine's network, and
// each has its own address in 127.0.0.0/8.
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
	// Key identifies the cluster on this machine (its state directory). The names of links
	// are derived from it, and leftovers of a crashed owner with the same key are removed.
	Key string
	// Root: this process may create network namespaces and links.
	Root bool
	// Prefix is the range of the pods' addresses as root, a /16 to /28;
	// zero: a free /20 inside 10.0.0.0/8.
	Prefix netip.Prefix
	// Isolated: pods can reach only each other and the gateway. Otherwise they can reach all
	// hosts that this machine can reach. It has no effect without root.
	Isolated bool
}

// Network is an open pod network. It is safe for concurrent use.
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

// Open opens a network: as root, it removes leftovers of a crashed owner with the same key,
// and creates the bridge.
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

// Egress returns nil if pods can reach other hosts or are isolated, else the reason why they
// can reach only this machine.
func (n *Network) Egress() error { return n.egress.err }

// Sweep removes leftovers of a crashed owner with the same key. The network must not be
// open.
func Sweep(cfg Config) error {
	if !cfg.Root {
		return nil
	}
	n := &Network{cfg: cfg}
	return errors.Join(n.closeEgress(), n.closeBridge())
}

// Gateway returns the address at which pods reach this machine: that of the bridge, or
// 127.0.0.1. Other hosts cannot reach servers at this address.
func (n *Network) Gateway() netip.Addr { return n.gateway }

// Prefix returns the range of the pods' addresses.
func (n *Network) Prefix() netip.Prefix { return n.prefix }

// Close ends relays and removes the bridge. All pods must have been closed.
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

// linkPrefix returns the prefix, of 8 characters, of the names of all links of the network
// with the given key.
func linkPrefix(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "bt" + hex.EncodeToString(sum[:3])
}
