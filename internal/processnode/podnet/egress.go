package podnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// egress gives pods access to all hosts that this machine can reach: the kernel forwards
// their packets with the machine's address (masquerade), and lets only replies back in.
type egress struct {
	// uplinks are the links of the machine's default routes.
	uplinks []netlink.Link
	// err is why the kernel does not forward for pods; nil: it does.
	err error
}

// formerlyOff is the prefix of the name of an empty chain, a mark for an uplink that did not
// forward before the first network was opened. The marks are in the kernel, so that after a
// crash a later process can turn forwarding off again when it removes the rules.
const formerlyOff = "formerly-off-"

// openEgress configures the machine to forward packets of pods to its uplinks.
func (n *Network) openEgress() {
	unlock := lockForwarding()
	defer unlock()
	if n.egress.uplinks, n.egress.err = uplinks(); n.egress.err != nil || len(n.egress.uplinks) == 0 {
		return
	}
	c, err := nftables.New()
	if err != nil {
		n.egress.err = fmt.Errorf("packet filter: %w", err)
		return
	}
	marked, err := markedUplinks(c)
	if err != nil {
		n.egress.err = err
		return
	}
	var guarded []string
	for _, l := range n.egress.uplinks {
		name := l.Attrs().Name
		n.mtu = min(n.mtu, l.Attrs().MTU)
		on, err := forwards(name)
		if err != nil {
			n.egress.err = err
			return
		}
		if !on || len(marked[name]) > 0 {
			guarded = append(guarded, name)
		}
	}
	// The rules come first, so that the machine never forwards any other packets.
	if n.egress.err = n.addRules(c, guarded); n.egress.err != nil {
		return
	}
	for _, name := range append(guarded, n.bridge) {
		if err := setForwarding(name, true); err != nil {
			n.egress.err = errors.Join(err, n.removeRules(c))
			return
		}
	}
}

// closeEgress removes the rules, including those of a crashed owner, and turns forwarding
// off again for uplinks that did not forward before, unless another network needs it.
func (n *Network) closeEgress() error {
	unlock := lockForwarding()
	defer unlock()
	c, err := nftables.New()
	if err != nil {
		return nil //nolint:nilerr // without a packet filter openEgress has changed nothing
	}
	return n.removeRules(c)
}

// removeRules is closeEgress for a caller that holds the lock.
func (n *Network) removeRules(c *nftables.Conn) error {
	table := linkPrefix(n.cfg.Key)
	marked, err := markedUplinks(c)
	if err != nil {
		return nil //nolint:nilerr // the kernel has no packet filter
	}
	var errs []error
	for link, tables := range marked {
		if len(tables) > 1 || tables[0] != table {
			continue
		}
		if err := setForwarding(link, false); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	tables, err := c.ListTablesOfFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("packet filter: %w", err))...)
	}
	for _, t := range tables {
		if t.Name == table {
			c.DelTable(t)
		}
	}
	if err := c.Flush(); err != nil {
		errs = append(errs, fmt.Errorf("packet filter: %w", err))
	}
	return errors.Join(errs...)
}

// lockForwarding serializes the opening and closing of networks, which read and change the
// same forwarding settings. If the lock file cannot be opened, it does nothing.
func lockForwarding() (unlock func()) {
	f, err := os.OpenFile("/run/berth-forwarding.lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return func() {}
	}
	_ = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	return func() { _ = f.Close() }
}

// markedUplinks returns, for each marked uplink, the tables with its mark.
func markedUplinks(c *nftables.Conn) (map[string][]string, error) {
	chains, err := c.ListChainsOfTableFamily(nftables.TableFamilyIPv4)
	if err != nil {
		return nil, fmt.Errorf("packet filter: %w", err)
	}
	marked := map[string][]string{}
	for _, chain := range chains {
		if link, ok := strings.CutPrefix(chain.Name, formerlyOff); ok {
			marked[link] = append(marked[link], chain.Table.Name)
		}
	}
	return marked, nil
}

// Machine returns the address of this machine in the hosts files of pods: that of its first
// uplink, at which servers on the machine usually listen, else the gateway.
func (n *Network) Machine() netip.Addr {
	if n.cfg.Isolated || n.outside == nil {
		return n.gateway
	}
	for _, l := range n.egress.uplinks {
		addrs, err := n.outside.AddrList(l, netlink.FAMILY_V4)
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok {
				return ip
			}
		}
	}
	return n.gateway
}

// addRules creates the table with this network's rules. guarded are the uplinks that forward
// only for pods.
func (n *Network) addRules(c *nftables.Conn, guarded []string) error {
	t := c.AddTable(&nftables.Table{Name: n.bridge, Family: nftables.TableFamilyIPv4})
	nat := c.AddChain(&nftables.Chain{
		Name: "postrouting", Table: t, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	forward := c.AddChain(&nftables.Chain{
		Name: "forward", Table: t, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	rule := func(chain *nftables.Chain, parts ...[]expr.Any) {
		r := &nftables.Rule{Table: t, Chain: chain}
		for _, p := range parts {
			r.Exprs = append(r.Exprs, p...)
		}
		c.AddRule(r)
	}
	accept := []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	reject := []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: prohibited}}
	rule(nat, fromPrefix(n.prefix), link(expr.MetaKeyOIFNAME, expr.CmpOpNeq, n.bridge), []expr.Any{&expr.Masq{}})
	rule(forward, link(expr.MetaKeyIIFNAME, expr.CmpOpEq, n.bridge), accept)
	toPods := link(expr.MetaKeyOIFNAME, expr.CmpOpEq, n.bridge)
	known := expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED
	rule(forward, toPods, state(known), accept)
	rule(forward, toPods, reject) // other hosts cannot connect to pods
	for _, name := range guarded {
		rule(forward, link(expr.MetaKeyIIFNAME, expr.CmpOpEq, name), state(expr.CtStateBitNEW), reject)
		c.AddChain(&nftables.Chain{Name: formerlyOff + name, Table: t})
	}
	if err := c.Flush(); err != nil {
		return fmt.Errorf("packet filter: %w", err)
	}
	return nil
}

// addRoutes adds the routes of the pod's namespace: a default route through the machine if
// the machine forwards, else routes to the machine's own addresses only, so that
// connections to other hosts fail immediately instead of after a timeout.
func (n *Network) addRoutes(inside *netlink.Handle, eth netlink.Link) error {
	if n.cfg.Isolated {
		return nil
	}
	via := func(to *net.IPNet) error {
		return inside.RouteAdd(&netlink.Route{LinkIndex: eth.Attrs().Index, Gw: n.gateway.AsSlice(), Dst: to})
	}
	if n.egress.err == nil && len(n.egress.uplinks) > 0 {
		return via(nil)
	}
	addrs, err := n.outside.AddrList(nil, netlink.FAMILY_V4)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return err
	}
	for _, a := range addrs {
		ip, ok := netip.AddrFromSlice(a.IP.To4())
		if !ok || ip.IsLoopback() || n.prefix.Contains(ip) {
			continue
		}
		if err := via(ipNet(ip, 32)); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return nil
}

// uplinks returns the links of the machine's default routes.
func uplinks() ([]netlink.Link, error) {
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, fmt.Errorf("routes of this machine: %w", err)
	}
	var out []netlink.Link
	seen := map[int]bool{}
	for _, r := range routes {
		if bits := prefixLength(r.Dst); bits != 0 || r.LinkIndex == 0 || seen[r.LinkIndex] {
			continue
		}
		seen[r.LinkIndex] = true
		l, err := netlink.LinkByIndex(r.LinkIndex)
		if err != nil {
			return nil, fmt.Errorf("uplink: %w", err)
		}
		out = append(out, l)
	}
	return out, nil
}

func prefixLength(dst *net.IPNet) int {
	if dst == nil {
		return 0
	}
	bits, _ := dst.Mask.Size()
	return bits
}

// forwardingFile returns the path of the setting that forwards packets received from a link.
func forwardingFile(link string) string {
	return "/proc/sys/net/ipv4/conf/" + strings.ReplaceAll(link, "/", "_") + "/forwarding"
}

func forwards(link string) (bool, error) {
	data, err := os.ReadFile(forwardingFile(link))
	return strings.TrimSpace(string(data)) == "1", err
}

func setForwarding(link string, on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	return os.WriteFile(forwardingFile(link), []byte(value), 0)
}

// link matches packets by the name of their input or output link.
func link(key expr.MetaKey, op expr.CmpOp, name string) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: padded}}
}

// prohibited is the code of "communication administratively prohibited" (RFC 1812) in an
// ICMP message.
const prohibited = 13

// sourceAddress is the offset of the source in an IPv4 header (RFC 791), in bytes.
const sourceAddress = 12

// fromPrefix matches packets whose source is in the prefix.
func fromPrefix(p netip.Prefix) []expr.Any {
	mask := net.CIDRMask(p.Bits(), 32)
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: sourceAddress, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: p.Masked().Addr().AsSlice()},
	}
}

// state matches packets of connections in one of the states.
func state(bits uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{
			SourceRegister: 1, DestRegister: 1, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4),
		},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}
