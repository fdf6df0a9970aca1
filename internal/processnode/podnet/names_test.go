package podnet

import (
	"io/fs"
	"net/netip"
	"testing"
)

func TestMachineHosts(t *testing.T) {
	t.Parallel()
	const file = "127.0.0.1\tlocalhost lab # the machine\n127.0.1.1 login.site login\n" +
		"::1 ip6-localhost ip6-loopback\n\n10.9.8.7 storage storage.site\n10.9.8.6 n1\nnonsense x\n"
	machine := netip.MustParseAddr("192.0.2.7")
	for _, c := range []struct{ name, hostname, want string }{
		{"own network", "login", "10.9.8.7\tstorage\tstorage.site\n192.0.2.7\tlab\tlogin.site\tlogin\n"},
		{"named after the node", "n1", "10.9.8.7\tstorage\tstorage.site\n192.0.2.7\tlab\tlogin.site\tlogin\n"},
		{"the machine's network", "", "127.0.0.1\tlab\n127.0.1.1\tlogin.site\tlogin\n10.9.8.7\tstorage\tstorage.site\n"},
	} {
		if got := machineHosts(file, c.hostname, machine, "n1"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := machineHosts("", "login", machine, "n1"); got != "192.0.2.7\tlogin\n" {
		t.Errorf("no file: %q", got)
	}
}

func TestResolvConf(t *testing.T) {
	t.Parallel()
	const stub, upstream = "nameserver 127.0.0.53\noptions edns0\n", "nameserver 192.0.2.53\n"
	for _, c := range []struct {
		name, machine, resolved, want string
	}{
		{"a stub", stub, upstream, upstreamResolvers},
		{"a stub of something else", stub, "", ""},
		{"a server elsewhere", upstream, upstream, ""},
		{"both", stub + upstream, upstream, ""},
	} {
		files := map[string]string{"/etc/resolv.conf": c.machine, upstreamResolvers: c.resolved}
		got := ResolvConf(func(path string) ([]byte, error) {
			if files[path] == "" {
				return nil, fs.ErrNotExist
			}
			return []byte(files[path]), nil
		})
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
