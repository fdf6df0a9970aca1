package podnet

import (
	"crypto/sha256"
	"errors"
	"net/netip"
)

// ErrFull means that all addresses of the network are in use.
var ErrFull = errors.New("no free pod address")

// openLoopback sets the prefix to a /16 of 127.0.0.0/8 that depends on the key, so that two
// clusters of a machine rarely use the same one.
func (n *Network) openLoopback() {
	sum := sha256.Sum256([]byte(n.cfg.Key))
	second := 1 + sum[0]%254
	n.prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{127, second, 0, 0}), 16)
	n.gateway = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	n.last = n.prefix.Addr()
}

// allocate returns the next free address. An address is reused only after all others,
// so that late packets do not reach another pod.
func (n *Network) allocate() (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	first := n.prefix.Addr().Next()
	for a, start := n.last.Next(), n.last; ; a = a.Next() {
		if !n.prefix.Contains(a) {
			a = first
		}
		b := a.As4()
		free := !n.taken[a] && a != n.gateway && b[3] != 0 && b[3] != 255
		if free {
			n.taken[a] = true
			n.last = a
			return a, nil
		}
		if a == start {
			return netip.Addr{}, ErrFull
		}
	}
}

func (n *Network) release(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.taken, a)
}
