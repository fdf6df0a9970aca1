package podnet

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink"
)

// openBridge removes leftovers of a crashed owner, chooses a range of addresses that this
// machine does not use, and creates the bridge.
func (n *Network) openBridge() error {
	n.bridge = linkPrefix(n.cfg.Key)
	if err := errors.Join(n.closeEgress(), n.closeBridge()); err != nil {
		return fmt.Errorf("leftover network %s: %w", n.bridge, err)
	}
	prefix, err := n.choosePrefix()
	if err != nil {
		return err
	}
	n.prefix, n.gateway = prefix, prefix.Addr().Next()
	n.last = n.gateway

	attrs := netlink.NewLinkAttrs()
	attrs.Name = n.bridge
	// A fixed hardware address: otherwise the bridge uses that of a port and changes it
	// when the port is removed, which invalidates the pods' neighbour tables.
	sum := sha256.Sum256([]byte("bridge " + n.cfg.Key))
	attrs.HardwareAddr = net.HardwareAddr{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]}
	n.mac = attrs.HardwareAddr
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("bridge %s: %w", n.bridge, err)
	}
	addr := &netlink.Addr{IPNet: ipNet(n.gateway, n.prefix.Bits())}
	if err := netlink.AddrAdd(bridge, addr); err != nil {
		return errors.Join(fmt.Errorf("address of bridge %s: %w", n.bridge, err), n.closeBridge())
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return errors.Join(fmt.Errorf("bridge %s: %w", n.bridge, err), n.closeBridge())
	}
	return nil
}

// closeBridge removes all links of this network, and with them the pods' ends.
func (n *Network) closeBridge() error {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return err
	}
	var errs []error
	for _, l := range links {
		if !strings.HasPrefix(l.Attrs().Name, linkPrefix(n.cfg.Key)) {
			continue
		}
		// The link may disappear at the same time with its network namespace.
		var missing netlink.LinkNotFoundError
		if err := netlink.LinkDel(l); err != nil && !errors.As(err, &missing) && !isNoDevice(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// choosePrefix returns the first unused /20 of 10.0.0.0/8, starting at one that depends on
// the key, or the configured prefix if that is unused.
func (n *Network) choosePrefix() (netip.Prefix, error) {
	used, err := usedPrefixes()
	if err != nil {
		return netip.Prefix{}, err
	}
	if n.cfg.Prefix.IsValid() {
		for _, u := range used {
			if u.Overlaps(n.cfg.Prefix) {
				return netip.Prefix{}, fmt.Errorf("pod network %s is in use on this machine (%s)", n.cfg.Prefix, u)
			}
		}
		return n.cfg.Prefix.Masked(), nil
	}
	sum := sha256.Sum256([]byte(n.cfg.Key))
	start := int(sum[0])<<4 | int(sum[1])>>4
next:
	for i := range 1 << 12 {
		k := (start + i) % (1 << 12)
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(k >> 4), byte(k<<4) & 0xf0, 0}), 20)
		for _, u := range used {
			if u.Overlaps(p) {
				continue next
			}
		}
		return p, nil
	}
	return netip.Prefix{}, errors.New("no free address range for pods in 10.0.0.0/8")
}

// usedPrefixes returns the IPv4 ranges of the addresses and routes of this machine, except
// the default route.
func usedPrefixes() ([]netip.Prefix, error) {
	var used []netip.Prefix
	add := func(n *net.IPNet) {
		if n == nil {
			return
		}
		a, ok := netip.AddrFromSlice(n.IP.To4())
		if bits, _ := n.Mask.Size(); ok && bits > 0 {
			used = append(used, netip.PrefixFrom(a, bits).Masked())
		}
	}
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	for _, a := range addrs {
		add(a.IPNet)
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("routes of this machine: %w", err)
	}
	for _, r := range routes {
		add(r.Dst)
	}
	return used, nil
}

func ipNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, 32)}
}
