package podnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Pod is the network of one pod.
type Pod struct {
	Address netip.Addr

	network *Network
	ns      *os.File       // nil: the machine's network
	known   *netlink.Neigh // the machine's permanent entry for the pod; nil: none
	once    sync.Once
}

// Attach returns the network of a new pod: an address and, as root, a network namespace.
func (n *Network) Attach() (*Pod, error) {
	addr, err := n.allocate()
	if err != nil {
		return nil, err
	}
	p := &Pod{Address: addr, network: n}
	if !n.cfg.Root {
		return p, nil
	}
	n.mu.Lock()
	n.serial++
	host := fmt.Sprintf("%sv%x", n.bridge, n.serial&0xffffff)
	n.mu.Unlock()
	if err := p.attach(host); err != nil {
		p.Close()
		return nil, fmt.Errorf("network of a pod: %w", err)
	}
	return p, nil
}

// HostNetwork returns the network of a pod that shares the machine's network.
func (n *Network) HostNetwork() *Pod {
	return &Pod{Address: n.gateway, network: &Network{taken: map[netip.Addr]bool{}}}
}

// Namespace returns the pod's network namespace, which is open until Close, or nil if the pod
// has that of the machine.
func (p *Pod) Namespace() *os.File { return p.ns }

// Close releases the address. The kernel removes the namespace and its links after the end
// of the last process in it.
func (p *Pod) Close() {
	p.once.Do(func() {
		if p.ns != nil {
			_ = p.ns.Close()
		}
		if p.known != nil {
			_ = p.network.outside.NeighDel(p.known) // the kernel may have removed it with the link
		}
		p.network.release(p.Address)
	})
}

// attach creates the namespace and its link, whose outer end is named host.
func (p *Pod) attach(host string) error {
	bridge, err := netlink.LinkByName(p.network.bridge)
	if err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	made := make(chan error, 1)
	go func() {
		// The thread changes its namespace. It is unlocked only if it has returned to its own;
		// otherwise the runtime terminates it with this goroutine.
		runtime.LockOSThread()
		home, err := inNewNamespace(func(ns *os.File) error {
			p.ns = ns
			return p.configure(host, bridge.Attrs().Index)
		})
		if home {
			runtime.UnlockOSThread()
		}
		made <- err
	}()
	return <-made
}

// inNewNamespace runs f on this locked thread in a new network namespace, and reports
// whether the thread has returned to its own namespace.
func inNewNamespace(f func(ns *os.File) error) (home bool, err error) {
	before, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return true, err
	}
	defer before.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return true, fmt.Errorf("new network namespace: %w", err)
	}
	ns, err := os.Open("/proc/thread-self/ns/net")
	if err == nil {
		err = f(ns)
	}
	if back := unix.Setns(int(before.Fd()), unix.CLONE_NEWNET); back != nil {
		return false, errors.Join(err, back)
	}
	return true, err
}

// noAddress is IN6_ADDR_GEN_MODE_NONE of linux/if_link.h.
const noAddress = 1

// configure creates and configures the link. It runs on a thread in the pod's namespace.
func (p *Pod) configure(host string, bridge int) error {
	inside, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer inside.Close()
	if err := p.makeVeth(host, bridge); err != nil {
		return err
	}
	lo, err := inside.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := inside.LinkSetUp(lo); err != nil {
		return err
	}
	eth, err := inside.LinkByName("eth0")
	if err != nil {
		return err
	}
	addr := &netlink.Addr{IPNet: ipNet(p.Address, p.network.prefix.Bits())}
	if err := inside.AddrAdd(eth, addr); err != nil {
		return err
	}
	_ = inside.LinkSetIP6AddrGenMode(eth, noAddress) // so that no address is announced on all ports
	if err := inside.LinkSetUp(eth); err != nil {
		return err
	}
	if err := p.network.addRoutes(inside, eth); err != nil {
		return fmt.Errorf("routes: %w", err)
	}
	p.addNeighbours(inside, eth, bridge)
	return nil
}

// addNeighbours adds permanent entries for the machine and the pod to each other's
// neighbour tables. The kernel's table, which all namespaces of the machine share,
// has at most 1,024 learned entries (net.ipv4.neigh.default.gc_thresh3): with more than
// about 500 pods, some could not be reached. If the kernel refuses the permanent entries,
// they are learned.
func (p *Pod) addNeighbours(inside *netlink.Handle, eth netlink.Link, bridge int) {
	known := func(link int, ip netip.Addr, mac net.HardwareAddr) *netlink.Neigh {
		return &netlink.Neigh{
			LinkIndex: link, Family: netlink.FAMILY_V4, State: netlink.NUD_PERMANENT, IP: ip.AsSlice(),
			HardwareAddr: mac,
		}
	}
	_ = inside.NeighSet(known(eth.Attrs().Index, p.network.gateway, p.network.mac))
	if out := known(bridge, p.Address, eth.Attrs().HardwareAddr); p.network.outside.NeighSet(out) == nil {
		p.known = out
	}
}

// makeVeth creates the veth pair, with a socket in the machine's namespace, so that the
// outer end is created as a port of the bridge and up.
func (p *Pod) makeVeth(host string, bridge int) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MasterIndex, attrs.Flags = host, bridge, net.FlagUp
	attrs.MTU = p.network.mtu
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerMTU = "eth0", uint32(p.network.mtu)
	veth.PeerNamespace = netlink.NsFd(p.ns.Fd())
	if err := p.network.outside.LinkAdd(veth); err != nil {
		return fmt.Errorf("link %s: %w", host, err)
	}
	return nil
}

// Dial connects to a port of the pod at localhost, as a process of the pod would.
func (p *Pod) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	var d net.Dialer
	local := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	if p.ns == nil {
		c, err := d.DialContext(ctx, "tcp", netip.AddrPortFrom(p.Address, port).String())
		if err != nil {
			c, err = d.DialContext(ctx, "tcp", local)
		}
		return c, err
	}
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread()
		var r result
		home, err := p.inside(func() { r.conn, r.err = d.DialContext(ctx, "tcp", local) })
		if home {
			runtime.UnlockOSThread()
		}
		r.err = errors.Join(err, r.err)
		done <- r
	}()
	r := <-done
	return r.conn, r.err
}

// inside runs f on this locked thread inside the pod's namespace.
func (p *Pod) inside(f func()) (home bool, err error) {
	before, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return true, err
	}
	defer before.Close()
	if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return true, err
	}
	f()
	if err := unix.Setns(int(before.Fd()), unix.CLONE_NEWNET); err != nil {
		return false, err
	}
	return true, nil
}

func isNoDevice(err error) bool { return errors.Is(err, unix.ENODEV) }
