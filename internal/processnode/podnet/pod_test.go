package podnet

import (
	"net/netip"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
)

// A pod and the machine have permanent entries for each other in their neighbour tables until the
// pod is removed, because the kernel's table of dynamic entries is too small for a thousand pods.
func TestPodIsInNeighborTablePermanently(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	n, err := Open(Config{Key: t.TempDir(), Root: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	p, err := n.Attach()
	if err != nil {
		t.Fatal(err)
	}
	if e := neighbour(t, n, p.Address); e == nil || e.State != netlink.NUD_PERMANENT || len(e.HardwareAddr) != 6 {
		t.Errorf("the machine's entry for the pod: %+v", e)
	}
	p.Close()
	if e := neighbour(t, n, p.Address); e != nil {
		t.Errorf("the machine's entry for a removed pod: %+v", e)
	}
}

// neighbour returns the machine's entry for the address; nil: there is none.
func neighbour(t *testing.T, n *Network, a netip.Addr) *netlink.Neigh {
	t.Helper()
	bridge, err := netlink.LinkByName(n.bridge)
	if err != nil {
		t.Fatal(err)
	}
	list, err := netlink.NeighList(bridge.Attrs().Index, netlink.FAMILY_V4)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].IP.Equal(a.AsSlice()) {
			return &list[i]
		}
	}
	return nil
}
