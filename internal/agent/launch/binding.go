package launch

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/agent/bind"
	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step/affinity"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/env"
)

// bind computes the CPUs of each task, if the CPUs of the step on this node are
// known and the agent may use all of them.
func (t *tasks) bind() {
	cmd := &t.launch.Command
	if cmd.CPUBind.Kind == affinity.None {
		return
	}
	allocated := t.node.Allocated(t.part.CPUIDs)
	if allocated == nil {
		return
	}
	t.masks = t.node.Topology().CPUs(&cmd.CPUBind, &bind.Tasks{
		CPUs: numbers(allocated), Count: len(t.tasks), Per: int(max(t.part.PerTask, 1)),
		Distribution: t.launch.Step.Distribution,
	})
}

// Allocated returns the CPUs of the list, or nil if processes cannot be bound to them:
// they are not known, or the agent may not use all of them.
func (n *Node) Allocated(list string) *unix.CPUSet {
	ids, err := affinity.ParseCPUList(list)
	if err != nil || len(ids) == 0 || n.CPUs == nil {
		return nil
	}
	var set unix.CPUSet
	for _, id := range ids {
		if !n.CPUs.IsSet(id) {
			return nil
		}
		set.Set(id)
	}
	return &set
}

// mask returns the CPUs of a local task, or nil if it may use all of the
// agent's.
func (t *tasks) mask(local int) *unix.CPUSet {
	if local >= len(t.masks) {
		return nil
	}
	var set unix.CPUSet
	for _, id := range t.masks[local] {
		set.Set(id)
	}
	return &set
}

// cpusOf returns the CPUs on which a local task will run.
func (t *tasks) cpusOf(local int) []int {
	if local < len(t.masks) {
		return t.masks[local]
	}
	var own unix.CPUSet
	if unix.SchedGetaffinity(0, &own) != nil {
		return nil
	}
	return numbers(&own)
}

// memory returns the memory policy of a local task, or nil if it has none.
func (t *tasks) memory(local int) (*spawn.MemPolicy, error) {
	b := &t.launch.Command.MemBind
	if b.Given == "" {
		return nil, nil
	}
	nodes, err := t.node.Topology().Memory(b, local, t.cpusOf(local))
	if err != nil || nodes == nil {
		return nil, err
	}
	return &spawn.MemPolicy{Prefer: b.Prefer, Nodes: nodes}, nil
}

// spawn starts the process of a task. If the kernel refuses the memory policy,
// the task runs without it and srun prints a notice.
func (t *tasks) spawn(spec *spawn.Spec) (*spawn.Process, error) {
	p, err := t.node.Spawn.Start(spec)
	if refused := (*spawn.PolicyError)(nil); errors.As(err, &refused) {
		t.notice(
			"slurmstepd: error: --mem-bind: set_mempolicy: " + strerror.Text(refused.Err) + ": memory is not bound\n",
		)
		spec.Memory = nil
		p, err = t.node.Spawn.Start(spec)
	}
	return p, err
}

// bindEnv sets the variables that describe the binding of the tasks.
// SLURM_CPU_BIND is set only if --cpu-bind was given: srun reads it, and the masks
// of this node would be wrong for steps that a task starts.
func (t *tasks) bindEnv(environ []string) []string {
	cmd := &t.launch.Command
	if t.masks != nil || cmd.CPUBind.Kind == affinity.None {
		kind, list := bind.Describe(&cmd.CPUBind, t.masks)
		verbosity := verboseOrQuiet(cmd.CPUBind.Verbose)
		environ = env.Merge(environ,
			"SLURM_CPU_BIND_VERBOSE="+verbosity, "SLURM_CPU_BIND_TYPE="+kind, "SLURM_CPU_BIND_LIST="+list)
		if t.launch.Step.CPUBind != "" {
			environ = env.Merge(environ, "SLURM_CPU_BIND="+verbosity+","+kind+list)
		}
	}
	b := &cmd.MemBind
	if b.Given == "" || b.Given == "unset" {
		return environ
	}
	kind, list, verbosity := b.Kind, strings.Join(b.List, ","), verboseOrQuiet(b.Verbose)
	if list != "" {
		kind += ":"
	}
	words := []string{verbosity}
	environ = env.Merge(environ,
		"SLURM_MEM_BIND_VERBOSE="+verbosity, "SLURM_MEM_BIND_TYPE="+kind, "SLURM_MEM_BIND_LIST="+list)
	if b.Prefer {
		words = append(words, "prefer")
		environ = env.Merge(environ, "SLURM_MEM_BIND_PREFER=prefer")
	}
	if b.Sort {
		environ = env.Merge(environ, "SLURM_MEM_BIND_SORT=sort")
	}
	if b.Kind != "" {
		words = append(words, kind+list)
	}
	return env.Merge(environ, "SLURM_MEM_BIND="+strings.Join(words, ","))
}

func verboseOrQuiet(verbose bool) string {
	if verbose {
		return "verbose"
	}
	return "quiet"
}

// cpuNames and memNames are the names of the kinds of binding in verbose reports.
var (
	cpuNames = map[string]string{
		affinity.None: "NONE", affinity.Rank: "RANK", affinity.RankDomain: "LDRANK",
		affinity.MapCPU: "MAP ", affinity.MapDomain: "LDMAP ", affinity.MaskDomain: "LDMASK",
	}
	memNames = map[string]string{
		affinity.Auto: "NULL", affinity.None: "NONE", affinity.Rank: "RANK", affinity.Local: "LOC",
		affinity.MapMem: "MAP", affinity.MaskMem: "MASK",
	}
)

// reportBinding reports verbose bindings: the CPUs on which the kernel lets the
// task run, and its memory policy.
func (t *tasks) reportBinding(local int, k *task, memory *spawn.MemPolicy) {
	cmd := &t.launch.Command
	if cmd.CPUBind.Verbose {
		t.reportCPUs(local, k)
	}
	if !cmd.MemBind.Verbose {
		return
	}
	name, nodes, done := memNames[cmd.MemBind.Kind], t.node.Topology().Domains(), ""
	head := "mem-bind="
	if memory != nil {
		nodes, done = memory.Nodes, " set"
		if memory.Prefer {
			head = "mem-bind PREFER "
		}
	}
	t.notice(fmt.Sprintf("%s%s - %s, task %2d %2d [%d]: mask %s%s\n",
		head, name, t.node.Name, k.id, local, k.proc.PID, affinity.FormatMask(nodes), done))
}

func (t *tasks) reportCPUs(local int, k *task) {
	kind := t.launch.Command.CPUBind.Kind
	var set unix.CPUSet
	if unix.SchedGetaffinity(k.proc.PID, &set) != nil {
		return
	}
	name, done := cpuNames[kind], " set"
	switch {
	case kind == affinity.None:
		set, done = unix.CPUSet{}, ""
	case t.masks == nil:
		name, done = "NULL", ""
	case name == "":
		name = "MASK"
	}
	t.notice(fmt.Sprintf("cpu-bind=%s - %s, task %2d %2d [%d]: mask %s%s\n",
		name, t.node.Name, k.id, local, k.proc.PID, affinity.FormatMask(numbers(&set)), done))
}

// numbers returns the CPUs of a set in ascending order.
func numbers(set *unix.CPUSet) []int {
	var ids []int
	for i := 0; len(ids) < set.Count(); i++ {
		if set.IsSet(i) {
			ids = append(ids, i)
		}
	}
	return ids
}
