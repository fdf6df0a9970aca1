package agent

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
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
//
// submit is the host that the job was submitted on; it gets a line unless the old lines or
// the job's hosts have its name. The zero value stands for none.
func hostsFile(old []byte, hosts []wire.Host, submit submitter) []byte {
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
	if submit.name != "" && !names(b.String(), submit.name) {
		fmt.Fprintf(&b, "%s\t%s\n", submit.address, submit.name)
	}
	b.WriteString(hostsEnd + "\n")
	return b.Bytes()
}

// submitter is a host on which a job was submitted.
type submitter struct{ name, address string }

// hostName matches the names of hosts. The name and the address come from the user.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$`)

// submitHost returns the host on which the job was submitted, or the zero value if its
// address is not known.
func submitHost(b *job.Batch) submitter {
	address, err := netip.ParseAddr(b.SubmitAddress)
	if err != nil || !hostName.MatchString(b.SubmitHost) {
		return submitter{}
	}
	return submitter{b.SubmitHost, address.String()}
}

// names reports whether a hosts file has the name.
func names(file, name string) bool {
	for line := range strings.Lines(file) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) > 1 && slices.Contains(f[1:], name) {
			return true
		}
	}
	return false
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

// fillHosts writes the names of the job's hosts and of its submit host to path, if a file was mounted there for
// this purpose.
func fillHosts(path string, hosts []wire.Host, submit submitter, mounts []byte) error {
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
	_, err = f.Write(hostsFile(old, hosts, submit))
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
