package podnet

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Hosts returns the initial content of the /etc/hosts of a pod: the pod itself, the names
// of this machine, and the entries of the machine's file about other hosts.
func (p *Pod) Hosts(name string, aliases []corev1.HostAlias) string {
	var b strings.Builder
	b.WriteString("# Made by the process node.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	fmt.Fprintf(&b, "%s\t%s\n", p.Address, name)
	for _, a := range aliases {
		fmt.Fprintf(&b, "%s\t%s\n", a.IP, strings.Join(a.Hostnames, "\t"))
	}
	file, _ := os.ReadFile("/etc/hosts")
	machine, _ := os.Hostname()
	if p.Namespace() == nil {
		machine = "" // the pod shares the machine's addresses
	}
	b.WriteString(machineHosts(string(file), machine, p.network.Machine(), name))
	return b.String()
}

// machineHosts returns the lines of the machine's hosts file for a pod with the name own.
// The machine's own names, including its host name, get the address at which pods reach
// the machine, because a loopback address in a pod is the pod itself. If hostname is empty,
// pods share the machine's network, and no address is translated.
func machineHosts(file, hostname string, machine netip.Addr, own string) string {
	var b strings.Builder
	var self []string
	for line := range strings.Lines(file) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(f[0])
		names := slices.DeleteFunc(f[1:], func(name string) bool {
			return name == own || strings.HasPrefix(name, "localhost") || strings.HasPrefix(name, "ip6-")
		})
		switch {
		case err != nil || len(names) == 0:
		case hostname != "" && addr.IsLoopback():
			self = append(self, names...)
		default:
			fmt.Fprintf(&b, "%s\t%s\n", addr, strings.Join(names, "\t"))
		}
	}
	if hostname != "" && hostname != own {
		self = append(self, hostname)
	}
	var once []string
	for _, name := range self {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	if len(once) > 0 {
		fmt.Fprintf(&b, "%s\t%s\n", machine, strings.Join(once, "\t"))
	}
	return b.String()
}

// upstreamResolvers is the file in which systemd-resolved(8) lists its upstream name servers.
const upstreamResolvers = "/run/systemd/resolve/resolv.conf"

// ResolvConf returns the path of the resolv.conf(5) for pods with their own network, or ""
// if it is the machine's. A name server at a loopback address, such as that of
// systemd-resolved, cannot be reached from such pods.
func ResolvConf(read func(string) ([]byte, error)) string {
	machine, err := read("/etc/resolv.conf")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(machine)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if addr, err := netip.ParseAddr(f[1]); err != nil || !addr.IsLoopback() {
			return ""
		}
	}
	if _, err := read(upstreamResolvers); err != nil {
		return ""
	}
	return upstreamResolvers
}
