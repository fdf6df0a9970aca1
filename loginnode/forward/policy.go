package forward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Policy is the policy for destinations of ssh -L, -D and -W. The zero value forbids
// the destinations of DefaultDeny and allows all others.
type Policy struct {
	// Off forbids all forwarding of TCP and Unix sockets.
	Off bool
	// Allow, if not empty, lists all allowed destinations; Deny takes precedence.
	Allow, Deny []Rule
	// Resolve resolves a name; nil: the machine's resolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Rule matches destinations: a block of addresses and a port, 0 for any.
type Rule struct {
	Block netip.Prefix
	Port  uint16
}

// ParseRule parses ADDRESS, BLOCK, ADDRESS:PORT, BLOCK:PORT, [V6]:PORT or *:PORT.
func ParseRule(s string) ([]Rule, error) {
	host, port := s, uint64(0)
	if i := strings.LastIndex(s, ":"); i >= 0 && (strings.Count(s, ":") == 1 || strings.Contains(s, "]:")) {
		var err error
		if port, err = strconv.ParseUint(s[i+1:], 10, 16); err != nil || port == 0 {
			return nil, fmt.Errorf("rule %q: bad port", s)
		}
		host = s[:i]
	}
	host = strings.Trim(host, "[]")
	if host == "*" {
		return []Rule{
			{netip.MustParsePrefix("0.0.0.0/0"), uint16(port)}, {netip.MustParsePrefix("::/0"), uint16(port)},
		}, nil
	}
	if block, err := netip.ParsePrefix(host); err == nil {
		return []Rule{{block.Masked(), uint16(port)}}, nil
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return nil, fmt.Errorf("rule %q: neither an address, a block, nor *:PORT", s)
	}
	addr = addr.Unmap()
	return []Rule{{netip.PrefixFrom(addr, addr.BitLen()), uint16(port)}}, nil
}

// DefaultDeny are the addresses of metadata services, which return the machine's
// credentials, and the ports of the kubelet and etcd.
func DefaultDeny() []Rule {
	var all []Rule
	for _, s := range []string{
		"169.254.0.0/16", "fe80::/10", "fd00:ec2::254", // link-local: metadata services of clouds
		"100.100.100.200", "168.63.129.16", "192.0.0.192", // those of Alibaba, Azure and Oracle
		"0.0.0.0/8", "::", // the kernel connects them to this machine
		"224.0.0.0/4", "ff00::/8", // multicast
		"*:10250", "*:10255", "*:10256", "*:2379", "*:2380", // kubelet, kube-proxy, etcd
	} {
		r, err := ParseRule(s)
		if err != nil {
			panic(err) // the list above is wrong
		}
		all = append(all, r...)
	}
	return all
}

func (r Rule) matches(a netip.AddrPort) bool {
	return (r.Port == 0 || r.Port == a.Port()) && r.Block.Contains(a.Addr())
}

// ErrForbidden is the error for a destination that the policy forbids.
var ErrForbidden = errors.New("the policy of this login node forbids it")

// Destination resolves a destination once and returns an address that may be dialed. A
// name with any forbidden address is forbidden, because its owner could otherwise
// decide which address is used.
func (p *Policy) Destination(ctx context.Context, host string, port uint32) (netip.AddrPort, error) {
	if p.Off || port == 0 || port > 65535 {
		return netip.AddrPort{}, ErrForbidden
	}
	addrs, err := p.resolve(ctx, host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	var first netip.AddrPort
	for _, a := range addrs {
		one := netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port))
		if !p.allowed(one) || !p.allowed(netip.AddrPortFrom(translated(one.Addr()), uint16(port))) {
			return netip.AddrPort{}, ErrForbidden
		}
		if !first.IsValid() || a.Unmap().Is4() && !first.Addr().Is4() {
			first = one
		}
	}
	if !first.IsValid() {
		return first, fmt.Errorf("%s has no address", host)
	}
	return first, nil
}

// nat64 are addresses that networks translate to IPv4 (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// translated returns the IPv4 address to which a network may translate another.
func translated(a netip.Addr) netip.Addr {
	if !nat64.Contains(a) {
		return a
	}
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

func (p *Policy) allowed(a netip.AddrPort) bool {
	hit := func(r Rule) bool { return r.matches(a) }
	if slices.ContainsFunc(p.Deny, hit) || slices.ContainsFunc(DefaultDeny(), hit) {
		return false
	}
	return len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, hit)
}

// Inside reports whether a port of a job's loopback interface may be connected to. Deny
// is about addresses that this machine reaches and does not apply; Allow does.
func (p *Policy) Inside(port uint32) bool {
	if p.Off || port == 0 || port > 65535 {
		return false
	}
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port))
	return len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, func(r Rule) bool { return r.matches(at) })
}

func (p *Policy) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return []netip.Addr{a}, nil
	}
	if len(host) > 253 || strings.ContainsAny(host, "/\x00 ") {
		return nil, fmt.Errorf("%q is not a host name", host)
	}
	if p.Resolve != nil {
		return p.Resolve(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// permitted reports whether permitopen= or permitlisten= of a key allow a destination;
// nil allows all. A rule is HOST:PORT or PORT, in which * stands for any.
func permitted(rules []string, host string, port uint32) bool {
	if rules == nil {
		return true
	}
	return slices.ContainsFunc(rules, func(rule string) bool {
		h, p := "*", rule
		if i := strings.LastIndex(rule, ":"); i >= 0 {
			h, p = strings.Trim(rule[:i], "[]"), rule[i+1:]
		}
		return (h == "*" || strings.EqualFold(h, host)) && (p == "*" || p == strconv.Itoa(int(port)))
	})
}
