package processnode

import (
	"os/exec"

	"github.com/berth-hpc/berth/internal/processnode/cgroups"
	"github.com/berth-hpc/berth/internal/processnode/shim"
	"github.com/berth-hpc/berth/internal/processnode/task"
)

// IsRoot reports whether process nodes run as root: with users, networks and limits.
func IsRoot() bool { return task.IsRoot() }

// Capabilities returns, in a sentence each, what pods on this machine will lack; empty:
// nothing. ok is false if process nodes cannot run here at all.
func Capabilities() (lacks []string, ok bool) {
	iso, why := task.Detect()
	if !iso.Namespaces {
		return []string{"This machine refuses the namespaces that process nodes are made of (" + why +
			"). Without root, unprivileged user namespaces must be allowed: sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0, whichever the machine has."}, false
	}
	if !iso.Root {
		lacks = append(lacks,
			"Without root, jobs run as yourself only.",
			"Without root, nodes share this machine's network: each job's node has an address of its own in 127.0.0.0/8, but two programs that listen on the same port of all addresses collide.",
			"Without root, nothing enforces limits of CPU and memory.")
	} else if !cgroups.Available() {
		lacks = append(lacks, "No control groups can be written here: nothing enforces limits of CPU and memory.")
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		lacks = append(lacks,
			"The nsenter command (package util-linux) is missing: kubectl exec and exec probes do not work.")
	}
	return lacks, true
}

// MaybeShim only makes the import of package shim visible. A process that was started
// as a container has become it before main starts (in the init function of shim).
func MaybeShim() { _ = shim.Arg }
