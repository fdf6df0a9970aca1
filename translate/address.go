package translate

import (
	"net/netip"
	"slices"
	"strings"
)

// address returns the address of the submit host in its hosts file, or "". The file of a
// pod has the pod's address. A loopback address means nothing elsewhere.
func (in *Input) address() string {
	if in.ReadFile == nil || in.Hostname == "" {
		return ""
	}
	file, err := in.ReadFile("/etc/hosts")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(file)) {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) < 2 || !slices.Contains(f[1:], in.Hostname) {
			continue
		}
		if a, err := netip.ParseAddr(f[0]); err == nil && !a.IsLoopback() && !a.IsUnspecified() {
			return a.String()
		}
	}
	return ""
}
