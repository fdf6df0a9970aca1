package realnode

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Hardware is what a node's kubelet sees of the machine, and does with it.
type Hardware struct {
	// Kubelet are fields of its KubeletConfiguration.
	Kubelet map[string]any
	// OneCore shows CPUs 0 and 1 as the threads of one core.
	OneCore bool
}

// StaticCPUs is the configuration of a kubelet that gives CPUs to pods for themselves. It
// must keep a part of a CPU for itself, and so keeps a whole one.
func StaticCPUs(options map[string]string) map[string]any {
	c := map[string]any{
		"cpuManagerPolicy": "static", "kubeReserved": map[string]string{"cpu": "100m"},
	}
	if options != nil {
		c["cpuManagerPolicyOptions"] = options
	}
	return c
}

// showOneCore replaces what the kubelet reads about the core of CPU 1.
func showOneCore() error {
	file := filepath.Join("/run", "core_id")
	if err := os.WriteFile(file, []byte("0\n"), 0o444); err != nil {
		return err
	}
	return unix.Mount(file, "/sys/devices/system/cpu/cpu1/topology/core_id", "", unix.MS_BIND, "")
}
