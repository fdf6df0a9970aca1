// Package identity determines the user, the groups and the capabilities with which a
// container runs.
package identity

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Identity is the user that a container runs as.
type Identity struct {
	UID, GID uint32
	Groups   []uint32
	Home     string
}

// Of returns a container's identity from its and its pod's security context. Without
// root only this process's own identity is possible; the error for another one is shown to
// the user.
func Of(pod *corev1.Pod, c *corev1.Container, root bool) (Identity, error) {
	ps := pod.Spec.SecurityContext
	if ps == nil {
		ps = &corev1.PodSecurityContext{}
	}
	cs := c.SecurityContext
	if cs == nil {
		cs = &corev1.SecurityContext{}
	}
	uid, gid := firstOf(cs.RunAsUser, ps.RunAsUser), firstOf(cs.RunAsGroup, ps.RunAsGroup)
	nonRoot := cs.RunAsNonRoot
	if nonRoot == nil {
		nonRoot = ps.RunAsNonRoot
	}
	var id Identity
	var err error
	if root {
		id, err = identifyAsRoot(ps, uid, gid)
	} else {
		id, err = identifyAsSelf(ps, uid, gid)
	}
	if err == nil && nonRoot != nil && *nonRoot && id.UID == 0 {
		err = fmt.Errorf("container has runAsNonRoot and would run as root (container %q)", c.Name)
	}
	return id, err
}

func firstOf(values ...*int64) *int64 {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

// identifyAsRoot looks up what the pod does not specify in the lists of users and groups of
// the image, as container runtimes do. Here these are the machine's.
func identifyAsRoot(ps *corev1.PodSecurityContext, uid, gid *int64) (Identity, error) {
	id := Identity{Home: "/"}
	if uid != nil {
		id.UID = uint32(*uid)
	}
	known, err := user.LookupId(strconv.FormatUint(uint64(id.UID), 10))
	if err != nil {
		known = nil // a uid without a name is allowed
	}
	if known != nil {
		id.GID, id.Home = number(known.Gid), known.HomeDir
	}
	if gid != nil {
		id.GID = uint32(*gid)
	}
	for _, g := range ps.SupplementalGroups {
		id.Groups = append(id.Groups, uint32(g))
	}
	if ps.FSGroup != nil {
		id.Groups = append(id.Groups, uint32(*ps.FSGroup))
	}
	strict := ps.SupplementalGroupsPolicy != nil &&
		*ps.SupplementalGroupsPolicy == corev1.SupplementalGroupsPolicyStrict
	if known != nil && !strict {
		if more, err := known.GroupIds(); err == nil {
			for _, g := range more {
				id.Groups = append(id.Groups, number(g))
			}
		}
	}
	slices.Sort(id.Groups)
	id.Groups = slices.Compact(id.Groups)
	return id, nil
}

func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

// identifyAsSelf accepts only the identity of this process.
func identifyAsSelf(ps *corev1.PodSecurityContext, uid, gid *int64) (Identity, error) {
	own := Identity{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Home: "/"}
	if u, err := user.Current(); err == nil {
		own.Home = u.HomeDir
	}
	if uid != nil && uint32(*uid) != own.UID {
		return own, fmt.Errorf("these process nodes run without root and only as user %d; the pod requests user %d", own.UID,
			*uid)
	}
	if gid != nil && uint32(*gid) != own.GID {
		return own, fmt.Errorf("these process nodes run without root and only as group %d; the pod requests group %d",
			own.GID, *gid)
	}
	groups, _ := os.Getgroups()
	wanted := slices.Clone(ps.SupplementalGroups)
	if ps.FSGroup != nil {
		wanted = append(wanted, *ps.FSGroup)
	}
	for _, g := range wanted {
		if uint32(g) != own.GID && !slices.Contains(groups, int(g)) {
			return own, fmt.Errorf("these process nodes run without root, and their user is not in group %d", g)
		}
	}
	return own, nil
}

// capabilityNumbers has the numbers of linux/capability.h of the capabilities that
// containers may have, by name.
var capabilityNumbers = map[string]uint{
	"CHOWN": 0, "DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "FOWNER": 3, "FSETID": 4, "KILL": 5,
	"SETGID": 6, "SETUID": 7, "SETPCAP": 8, "LINUX_IMMUTABLE": 9, "NET_BIND_SERVICE": 10,
	"NET_BROADCAST": 11, "NET_ADMIN": 12, "NET_RAW": 13, "IPC_LOCK": 14, "IPC_OWNER": 15,
	"SYS_MODULE": 16, "SYS_RAWIO": 17, "SYS_CHROOT": 18, "SYS_PTRACE": 19, "SYS_PACCT": 20,
	"SYS_ADMIN": 21, "SYS_BOOT": 22, "SYS_NICE": 23, "SYS_RESOURCE": 24, "SYS_TIME": 25,
	"SYS_TTY_CONFIG": 26, "MKNOD": 27, "LEASE": 28, "AUDIT_WRITE": 29, "AUDIT_CONTROL": 30,
	"SETFCAP": 31, "MAC_OVERRIDE": 32, "MAC_ADMIN": 33, "SYSLOG": 34, "WAKE_ALARM": 35,
	"BLOCK_SUSPEND": 36, "AUDIT_READ": 37, "PERFMON": 38, "BPF": 39, "CHECKPOINT_RESTORE": 40,
}

// defaultCapabilities is the default set of containerd.
var defaultCapabilities = []string{
	"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
	"NET_BIND_SERVICE", "NET_RAW", "SYS_CHROOT", "MKNOD", "AUDIT_WRITE", "SETFCAP",
}

// Bounding returns the capability mask of a container, or nil for all (privileged).
func Bounding(sc *corev1.SecurityContext) *uint64 {
	if sc != nil && sc.Privileged != nil && *sc.Privileged {
		return nil
	}
	var mask uint64
	for _, name := range defaultCapabilities {
		mask |= 1 << capabilityNumbers[name]
	}
	if sc == nil || sc.Capabilities == nil {
		return &mask
	}
	for _, c := range sc.Capabilities.Drop {
		if c == "ALL" {
			mask = 0
		} else if n, ok := capabilityNumbers[string(c)]; ok {
			mask &^= 1 << n
		}
	}
	for _, c := range sc.Capabilities.Add {
		if c == "ALL" {
			mask = ^uint64(0)
		} else if n, ok := capabilityNumbers[string(c)]; ok {
			mask |= 1 << n
		}
	}
	return &mask
}
