package task

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/processnode/shim"
)

// Isolation describes how this machine can isolate containers.
type Isolation struct {
	// Root: this process may change users, networks and control groups.
	Root bool
	// Namespaces: mount, pid, host-name and IPC namespaces; without root
	// inside a user namespace.
	Namespaces bool
}

// rootCapabilities are the capabilities that are needed as root. Root in a container of
// another container manager may not have all of them.
const rootCapabilities = 1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_SETUID |
	1<<unix.CAP_SETGID | 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_KILL

// IsRoot reports whether this process is root and has rootCapabilities.
func IsRoot() bool {
	if os.Geteuid() != 0 {
		return false
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	effective := uint64(data[1].Effective)<<32 | uint64(data[0].Effective)
	return effective&rootCapabilities == rootCapabilities
}

// Detect returns the isolation that this machine supports, which it tests with a container
// that does nothing. why is the reason if namespaces are not supported.
func Detect() (iso Isolation, why string) {
	full := Isolation{Root: IsRoot(), Namespaces: true}
	dir, err := os.MkdirTemp("", "berth-detect-")
	if err != nil {
		return Isolation{Root: full.Root}, err.Error()
	}
	defer os.Remove(dir)
	t, err := Start(Options{
		Isolation: full,
		Spec:      shim.Spec{Root: dir, Hostname: "berth", Argv: []string{"/bin/sh", "-c", "exit 0"}},
	})
	if err != nil {
		return Isolation{Root: full.Root}, err.Error()
	}
	<-t.Done()
	if t.Result().Code != 0 {
		return Isolation{Root: full.Root}, fmt.Sprintf("/bin/sh in a container ended with exit code %d",
			t.Result().Code)
	}
	return full, ""
}

// apply adds the namespaces of a new container to attr.
func (i Isolation) apply(attr *syscall.SysProcAttr) {
	if !i.Namespaces {
		return
	}
	attr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
	if i.Root {
		return
	}
	uid, gid := os.Geteuid(), os.Getegid()
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	// A user other than 0 loses its capabilities in the new user namespace at execve, unless
	// they are ambient. The shim needs them for mounts.
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT, unix.CAP_DAC_OVERRIDE, unix.CAP_SETPCAP}
}

// enterArgs returns the arguments with which nsenter joins the namespaces of apply.
func (i Isolation) enterArgs() []string {
	if !i.Namespaces {
		return nil
	}
	args := "-m -p -u -i"
	if !i.Root {
		args = "-U --preserve-credentials " + args
	}
	return strings.Fields(args)
}
