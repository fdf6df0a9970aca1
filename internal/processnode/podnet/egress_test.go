package podnet

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// envNamespace is set in the process that runs a test in a network namespace.
const envNamespace = "PODNET_TEST_NAMESPACE"

// inMachine runs the test again in a network namespace of its own, which represents a machine, so
// that the rules and settings of the real machine do not change. It reports whether this is the
// process in the namespace.
func inMachine(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if os.Getenv(envNamespace) != "" {
		return true
	}
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), envNamespace+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// Addresses of the test: the machine's uplink, the router behind it, and a host beyond.
const machineAddress, routerAddress, beyond = "192.0.2.1", "192.0.2.2", "203.0.113.9"

// newUplink connects the machine to a namespace with a router and a host behind it, which also has
// a route to the pods, as an attacker in the network would.
func newUplink(t *testing.T, pods netip.Prefix) *os.File {
	t.Helper()
	lo, err := netlink.LinkByName("lo")
	check(t, err)
	check(t, netlink.LinkSetUp(lo))
	made := make(chan *os.File)
	go func() { // a thread that stays in the namespace
		runtime.LockOSThread()
		defer close(made)
		if unix.Unshare(unix.CLONE_NEWNET) == nil {
			if ns, err := os.Open("/proc/thread-self/ns/net"); err == nil {
				made <- ns
			}
		}
	}()
	world := <-made
	if world == nil {
		t.Fatal("no namespace")
	}
	veth := netlink.NewVeth(netlink.LinkAttrs{Name: "uplink0", MTU: 1400})
	veth.PeerName, veth.PeerNamespace = "eth0", netlink.NsFd(world.Fd())
	check(t, netlink.LinkAdd(veth))
	check(t, netlink.AddrAdd(veth, &netlink.Addr{IPNet: ipNet(netip.MustParseAddr(machineAddress), 24)}))
	check(t, netlink.LinkSetUp(veth))
	check(t, inside(world, func() error {
		eth, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return errors.Join(
			netlink.AddrAdd(eth, &netlink.Addr{IPNet: ipNet(netip.MustParseAddr(routerAddress), 24)}),
			netlink.LinkSetUp(eth), netlink.LinkSetUp(lo),
			netlink.AddrAdd(lo, &netlink.Addr{IPNet: ipNet(netip.MustParseAddr(beyond), 32)}),
			netlink.RouteAdd(&netlink.Route{
				LinkIndex: eth.Attrs().Index, Gw: net.ParseIP(machineAddress), Dst: ipNet(pods.Masked().Addr(), pods.Bits()),
			}),
		)
	}))
	check(t, netlink.RouteAdd(&netlink.Route{LinkIndex: veth.Index, Gw: net.ParseIP(routerAddress)}))
	return world
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inside runs f on a thread in the namespace; nil: this one.
func inside(ns *os.File, f func() error) error {
	if ns == nil {
		return f()
	}
	done := make(chan error)
	go func() { // the thread ends with the goroutine
		runtime.LockOSThread()
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// serve sends to every client in the namespace the client's address.
func serve(t *testing.T, ns *os.File, address string) string {
	t.Helper()
	var l net.Listener
	check(t, inside(ns, func() (err error) {
		l, err = net.Listen("tcp4", net.JoinHostPort(address, "0"))
		return err
	}))
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			fmt.Fprint(c, host)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// dial returns what a server sends to a process in the namespace.
func dial(ns *os.File, address string) (answer string, err error) {
	err = inside(ns, func() error {
		c, err := (&net.Dialer{Timeout: time.Minute}).Dial("tcp4", address)
		if err != nil {
			return err
		}
		defer c.Close()
		data, err := io.ReadAll(c)
		answer = string(data)
		return err
	})
	return answer, err
}

var podPrefix = netip.MustParsePrefix("10.77.0.0/20")

func TestPodsHaveTheMachinesConnections(t *testing.T) {
	if !inMachine(t) {
		return
	}
	world := newUplink(t, podPrefix)
	n, err := Open(Config{Key: "a", Root: true, Prefix: podPrefix})
	check(t, err)
	check(t, n.Egress())
	pod, err := n.Attach()
	check(t, err)
	for name, c := range map[string]struct{ server, seen string }{
		"beyond the router":  {serve(t, world, beyond), machineAddress},
		"the machine's link": {serve(t, nil, machineAddress), pod.Address.String()},
	} {
		if seen, err := dial(pod.Namespace(), c.server); err != nil || seen != c.seen {
			t.Errorf("%s: seen as %q, %v; want %s", name, seen, err, c.seen)
		}
	}
	if n.Machine().String() != machineAddress {
		t.Errorf("the machine is known at %s", n.Machine())
	}
	closed(t, world, serve(t, pod.Namespace(), pod.Address.String()))
	// The machine forwards for its pods only.
	closed(t, world, net.JoinHostPort("198.51.100.1", "80"))
	pod.Close()
	check(t, n.Close())
	unchanged(t)
}

// closed checks that a connection by way of the machine is refused.
func closed(t *testing.T, world *os.File, address string) {
	t.Helper()
	host, _, _ := net.SplitHostPort(address)
	_ = inside(world, func() error { // fails if the route exists
		eth, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{
			LinkIndex: eth.Attrs().Index, Gw: net.ParseIP(machineAddress), Dst: ipNet(netip.MustParseAddr(host), 32),
		})
	})
	if _, err := dial(world, address); !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("%s from outside: %v", address, err)
	}
}

// unchanged checks that the machine is in the same state as before the network was opened.
func unchanged(t *testing.T) {
	t.Helper()
	if on, err := forwards("uplink0"); on || err != nil {
		t.Errorf("the machine still forwards: %v, %v", on, err)
	}
	c, err := nftables.New()
	check(t, err)
	if tables, err := c.ListTables(); err != nil || len(tables) != 0 {
		t.Errorf("rules are left: %v, %v", tables, err)
	}
}

func TestSweepAfterACrash(t *testing.T) {
	if !inMachine(t) {
		return
	}
	newUplink(t, podPrefix)
	n, err := Open(Config{Key: "a", Root: true, Prefix: podPrefix})
	check(t, err)
	check(t, n.Egress())
	if on, err := forwards("uplink0"); !on || err != nil {
		t.Fatalf("the uplink forwards: %v, %v", on, err)
	}
	check(t, Sweep(Config{Key: "a", Root: true}))
	unchanged(t)
}

// TestSeveralNetworks: closing one network does not affect another.
func TestSeveralNetworks(t *testing.T) {
	if !inMachine(t) {
		return
	}
	world := newUplink(t, podPrefix)
	first, err := Open(Config{Key: "a", Root: true})
	check(t, err)
	second, err := Open(Config{Key: "b", Root: true, Prefix: podPrefix})
	check(t, err)
	pod, err := second.Attach()
	check(t, err)
	server := serve(t, world, beyond)
	for range 2 { // beside the other network, and after it
		if _, err := dial(pod.Namespace(), server); err != nil {
			t.Error(err)
		}
		closed(t, world, serve(t, pod.Namespace(), pod.Address.String()))
		closed(t, world, net.JoinHostPort("198.51.100.1", "80"))
		if first != nil {
			check(t, first.Close())
			first = nil
		}
	}
	pod.Close()
	check(t, second.Close())
	unchanged(t)
}

func TestIsolatedPods(t *testing.T) {
	if !inMachine(t) {
		return
	}
	world := newUplink(t, podPrefix)
	n, err := Open(Config{Key: "a", Root: true, Prefix: podPrefix, Isolated: true})
	check(t, err)
	pod, err := n.Attach()
	check(t, err)
	for _, server := range []string{serve(t, world, beyond), serve(t, nil, machineAddress)} {
		if _, err := dial(pod.Namespace(), server); !errors.Is(err, unix.ENETUNREACH) {
			t.Errorf("%s: %v", server, err)
		}
	}
	if _, err := dial(pod.Namespace(), serve(t, nil, n.Gateway().String())); err != nil {
		t.Errorf("the gateway: %v", err)
	}
	unchanged(t)
}
