package realnode

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// SiteAddress is where the control plane is reached by nodes and pods.
const SiteAddress = "172.29.0.1"

const bridge = "site0"

// shielded are the settings of the whole machine that a kubelet writes; each
// site writes to a file of its own instead.
var shielded = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// privateDirs are directories with the state of daemons; the site sees empty ones.
var privateDirs = []string{"/run", "/var/lib", "/var/log"}

// enterSite makes the new namespaces usable: own /proc, own state directories, homes that
// login side and nodes share, and a bridge for the nodes.
func enterSite(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := shieldSettings(filepath.Join(dir, "sysctl")); err != nil {
		return err
	}
	if err := mountEmpty(privateDirs); err != nil {
		return err
	}
	if err := shareHomes(filepath.Join(dir, "home")); err != nil {
		return err
	}
	if err := ownAccounts(filepath.Join(dir, "etc")); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("login")); err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return err
	}
	return ip("link set lo up",
		"link add "+bridge+" type bridge",
		"addr add "+SiteAddress+"/24 dev "+bridge,
		"link set "+bridge+" up",
		// There is no way out; a Service's address needs some route before
		// nftables gives it its destination.
		"route add "+serviceRange+" dev "+bridge)
}

// serviceRange is that of the control plane's Services.
const serviceRange = "10.255.0.0/16"

func shieldSettings(dir string) error {
	for _, s := range shielded {
		real, own := filepath.Join("/proc/sys", s), filepath.Join(dir, s)
		if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
			return err
		}
		if err := copyFile(real, own); errors.Is(err, os.ErrNotExist) {
			continue // not in this kernel
		} else if err != nil {
			return err
		}
		if err := unix.Mount(own, real, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("shield %s: %w", real, err)
		}
	}
	return nil
}

func mountEmpty(directories []string) error {
	for _, f := range directories {
		if err := unix.Mount("tmpfs", f, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("tmpfs on %s: %w", f, err)
		}
	}
	return nil
}

// shareHomes mounts the site's homes at /home, which nodes see as well, in place of a
// shared file system.
func shareHomes(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(dir, "/home", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("homes: %w", err)
	}
	return nil
}

// ip runs ip(8) once for each command.
func ip(commands ...string) error {
	cmd := exec.Command("ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, out)
	}
	return nil
}
