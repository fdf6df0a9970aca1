package agent

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/wire"
)

// Marks around the agent's lines in /etc/hosts.
const (
	hostsBegin = "# berth: nodes of this job"
	hostsEnd   = "# berth: end"
)

// hostsFile returns the new contents of a hosts file: the old lines, without those
// between the marks, and a line for every host of the job. The names of
// the job's hosts are removed from the old lines: a resolver returns the addresses of all
// lines with a name, and programs expect a single address from `hostname --ip-address`.
func hostsFile(old []byte, hosts []wire.Host) []byte {
	var b bytes.Buffer
	between := false // the marks
	for line := range strings.SplitSeq(strings.TrimRight(string(old), "\n"), "\n") {
		switch {
		case line == hostsBegin:
			between = true
		case line == hostsEnd:
			between = false
		case !between && line != "":
			b.WriteString(withoutNames(line, hosts))
		}
	}
	if b.Len() == 0 {
		b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	}
	b.WriteString(hostsBegin + "\n")
	for _, h := range hosts {
		if ip, _, err := net.SplitHostPort(h.Address); err == nil {
			fmt.Fprintf(&b, "%s\t%s\n", ip, h.Name)
		}
	}
	b.WriteString(hostsEnd + "\n")
	return b.Bytes()
}

// withoutNames returns a line of a hosts file without the names of hosts, and "" if no
// other name is left.
func withoutNames(line string, hosts []wire.Host) string {
	entry, _, _ := strings.Cut(line, "#")
	f := strings.Fields(entry)
	named := func(name string) bool {
		return slices.ContainsFunc(hosts, func(h wire.Host) bool { return h.Name == name })
	}
	if len(f) < 2 || !slices.ContainsFunc(f[1:], named) {
		return line + "\n"
	}
	left := slices.DeleteFunc(f[1:], named)
	if len(left) == 0 {
		return ""
	}
	return f[0] + "\t" + strings.Join(left, "\t") + "\n"
}

// fillHosts writes the names of the job's hosts to path, if a file was mounted there for
// this purpose.
func fillHosts(path string, hosts []wire.Host, mounts []byte) error {
	if !mounted(mounts, path) {
		return nil
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("host names: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("host names: %w", err)
	}
	_, err = f.Write(hostsFile(old, hosts))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("host names: %w", err)
	}
	return nil
}

// HostsVolume is the name of the volume with a pod's own hosts file.
const HostsVolume = "berth-hosts"

// mounted reports, by the contents of /proc/self/mountinfo, whether path is a mount
// of HostsVolume. A hosts file of the machine or the kubelet is not.
func mounted(mountinfo []byte, path string) bool {
	for line := range strings.SplitSeq(string(mountinfo), "\n") {
		if f := strings.Fields(line); len(f) > 4 && f[4] == path && strings.Contains(f[3], HostsVolume) {
			return true
		}
	}
	return false
}
