package realnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Hardware is what a node's kubelet sees of the machine, and does with it.
type Hardware struct {
	// Kubelet are fields of its KubeletConfiguration.
	Kubelet map[string]any
	// OneCore shows CPUs 0 and 1 as the threads of one core.
	OneCore bool
	// NUMA shows NUMA nodes with these CPUs, each a core of its own. The kubelet must not
	// give pods those that the machine does not have.
	NUMA [][]int
}

// show makes the hardware visible in this mount namespace.
func (h Hardware) show() error {
	if h.OneCore {
		if err := showOneCore(); err != nil {
			return err
		}
	}
	if len(h.NUMA) > 0 {
		return showNUMA(h.NUMA)
	}
	return nil
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

// numaMemory is what each NUMA node reports as its memory.
const numaMemory = "Node %d MemTotal:       4194304 kB\n"

// showNUMA replaces what the kubelet reads about NUMA nodes and which CPUs are online.
func showNUMA(nodes [][]int) error {
	dir := filepath.Join("/run", "numa")
	files := map[string]string{}
	var all []string
	for id, cpus := range nodes {
		node := fmt.Sprintf("node%d", id)
		files[node+"/meminfo"] = fmt.Sprintf(numaMemory, id)
		files[node+"/distance"] = distances(id, len(nodes))
		for _, cpu := range cpus {
			topology := fmt.Sprintf("%s/cpu%d/topology/", node, cpu)
			files[topology+"core_id"] = fmt.Sprintln(cpu)
			files[topology+"physical_package_id"] = fmt.Sprintln(id)
			all = append(all, fmt.Sprint(cpu))
		}
	}
	files["online"] = strings.Join(all, ",") + "\n"
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, []byte(content), 0o444)); err != nil {
			return err
		}
	}
	return errors.Join(
		unix.Mount(filepath.Join(dir, "online"), "/sys/devices/system/cpu/online", "", unix.MS_BIND, ""),
		unix.Mount(dir, "/sys/devices/system/node", "", unix.MS_BIND, ""))
}

// distances returns the distances of a NUMA node to all of them, as Linux shows them.
func distances(of, nodes int) string {
	var list []string
	for id := range nodes {
		distance := "20"
		if id == of {
			distance = "10"
		}
		list = append(list, distance)
	}
	return strings.Join(list, " ") + "\n"
}
