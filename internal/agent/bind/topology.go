// Package bind computes the CPUs and NUMA nodes to which tasks are bound by --cpu-bind
// and --mem-bind, from the topology that Linux reports. Package spawn binds the
// processes.
package bind

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/step/affinity"
)

// Sys is the directory in which Linux describes the machine.
const Sys = "/sys"

// cpu is one hardware thread.
type cpu struct{ id, socket, core, domain int }

// Topology is a node's CPUs and NUMA nodes. It is read-only.
type Topology struct {
	cpus    map[int]cpu
	domains []int // NUMA nodes, in ascending order
}

// Read reads the topology from a directory such as Sys. CPUs that it does not describe are
// treated as separate cores of one socket.
func Read(sys string) *Topology {
	t := &Topology{cpus: map[int]cpu{}}
	dirs, _ := filepath.Glob(filepath.Join(sys, "devices/system/cpu/cpu[0-9]*")) // the pattern is well-formed
	for _, dir := range dirs {
		id, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "cpu"))
		if err != nil {
			continue
		}
		t.cpus[id] = cpu{
			id:     id,
			socket: number(filepath.Join(dir, "topology/physical_package_id"), 0),
			core:   number(filepath.Join(dir, "topology/core_id"), id),
		}
	}
	nodes, _ := filepath.Glob(filepath.Join(sys, "devices/system/node/node[0-9]*")) // as above
	for _, dir := range nodes {
		n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "node"))
		if err != nil {
			continue
		}
		t.domains = append(t.domains, n)
		list, _ := os.ReadFile(filepath.Join(dir, "cpulist")) // memory without CPUs has an empty one
		ids, err := affinity.ParseCPUList(string(list))
		if err != nil {
			continue
		}
		for _, id := range ids {
			c := t.cpu(id)
			c.domain = n
			t.cpus[id] = c
		}
	}
	slices.Sort(t.domains)
	if len(t.domains) == 0 {
		t.domains = []int{0}
	}
	return t
}

// number returns the number in a file, or unknown if the file is missing or the number
// negative.
func number(path string, unknown int) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return unknown
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || n < 0 {
		return unknown
	}
	return n
}

// cpu returns the CPU with the given number.
func (t *Topology) cpu(id int) cpu {
	if c, ok := t.cpus[id]; ok {
		return c
	}
	return cpu{id: id, core: id}
}

// unit identifies the socket, core or NUMA node of a CPU.
type unit func(c cpu) [2]int

func bySocket(c cpu) [2]int { return [2]int{c.socket, 0} }
func byCore(c cpu) [2]int   { return [2]int{c.socket, c.core} }
func byDomain(c cpu) [2]int { return [2]int{c.domain, 0} }

// groups groups CPUs by unit, in the order of the units' first CPUs.
func (t *Topology) groups(ids []int, of unit) [][]int {
	at := map[[2]int]int{}
	var out [][]int
	for _, id := range ids {
		key := of(t.cpu(id))
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], id)
	}
	return out
}

// expand returns all CPUs among ids that share a unit with one of the given CPUs.
func (t *Topology) expand(cpus, ids []int, of unit) []int {
	units := map[[2]int]bool{}
	for _, id := range cpus {
		units[of(t.cpu(id))] = true
	}
	var out []int
	for _, id := range ids {
		if units[of(t.cpu(id))] {
			out = append(out, id)
		}
	}
	return out
}
