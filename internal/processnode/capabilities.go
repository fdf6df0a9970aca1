package processnode

import (
	"os/exec"

	"github.com/berth-hpc/berth/internal/processnode/cgroups"
	"github.com/berth-hpc/berth/internal/processnode/shim"
	"github.com/berth-hpc/berth/internal/processnode/task"
)

// IsRoot reports whether process nodes run as root: with users, networks and limits.
func IsRoot() bool { return task.IsRoot() }

// Capabilities returns the restrictions of pods on this machine, each as a sentence. ok is
// false if process nodes cannot run on this machine at all.
func Capabilities() (lacks []string, ok bool) {
	iso, why := task.Detect()
	if !iso.Namespaces {
		return []string{"This machine does not permit the namespaces that process nodes need (" + why +
			"). Without root, unprivileged user namespaces must be allowed: sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0, whichever of them exist."}, false
	}
	if !iso.Root {
		lacks = append(lacks,
			"Without root, jobs run only as your own user.",
			"Without root, nodes share this machine's network: each node of a job has its own address in 127.0.0.0/8, but two programs cannot listen on the same port of all addresses.",
			"Without root, limits of CPU and memory are not enforced.")
	} else if !cgroups.Available() {
		lacks = append(lacks, "Control groups are not writable: limits of CPU and memory are not enforced.")
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		lacks = append(lacks,
			"The nsenter command (package util-linux) is missing: kubectl exec and exec probes do not work.")
	}
	return lacks, true
}

// MaybeShim does nothing. It makes the import of package shim visible, whose init function
// turns a process that was started as a container into that container.
func MaybeShim() { _ = shim.Arg }
