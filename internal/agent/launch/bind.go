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

// bind decides which CPUs each task may run on, if the step has known CPUs here
// and the agent may use all of those.
func (t *tasks) bind() {
	cmd := &t.launch.Command
	if cmd.CPUBind.Kind == affinity.None || t.node.CPUs == nil || t.part.CPUIDs == "" {
		return
	}
	ids, err := affinity.ParseCPUList(t.part.CPUIDs)
	if err != nil {
		return
	}
	for _, id := range ids {
		if !t.node.CPUs.IsSet(id) {
			return
		}
	}
	t.masks = t.node.Topology().CPUs(&cmd.CPUBind, &bind.Tasks{
		CPUs: ids, Count: len(t.tasks), Per: int(max(t.part.PerTask, 1)), Distribution: t.launch.Step.Distribution,
	})
}

// mask is what local task number local may run on; nil: what the agent may.
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

// near are the CPUs that a task will run on.
func (t *tasks) near(local int) []int {
	if local < len(t.masks) {
		return t.masks[local]
	}
	var own unix.CPUSet
	if unix.SchedGetaffinity(0, &own) != nil {
		return nil
	}
	return bits(&own)
}

// memory is where a task takes its memory from; nil: anywhere.
func (t *tasks) memory(local int) (*spawn.MemPolicy, error) {
	b := &t.launch.Command.MemBind
	if b.Given == "" {
		return nil, nil
	}
	nodes, err := t.node.Topology().Memory(b, local, t.near(local))
	if err != nil || nodes == nil {
		return nil, err
	}
	return &spawn.MemPolicy{Prefer: b.Prefer, Nodes: nodes}, nil
}

// spawn starts the process of a task. Where the kernel does not let the agent
// say where memory comes from, the task runs without and is told so.
func (t *tasks) spawn(spec *spawn.Spec) (*spawn.Process, error) {
	p, err := t.node.Spawn.Start(spec)
	if refused := (*spawn.PolicyError)(nil); errors.As(err, &refused) {
		t.notice("slurmstepd: error: --mem-bind: set_mempolicy: " + strerror.Text(refused.Err) + ": memory is not bound\n")
		spec.Memory = nil
		p, err = t.node.Spawn.Start(spec)
	}
	return p, err
}

// bindEnv tells the tasks how they are bound. SLURM_CPU_BIND, which srun reads
// itself, is there only where --cpu-bind was: the masks of this node would be
// wrong for the steps that a task starts.
func (t *tasks) bindEnv(environ []string) []string {
	cmd := &t.launch.Command
	if t.masks != nil || cmd.CPUBind.Kind == affinity.None {
		kind, list := bind.Shown(&cmd.CPUBind, t.masks)
		loud := loudness(cmd.CPUBind.Verbose)
		environ = env.Merge(environ, "SLURM_CPU_BIND_VERBOSE="+loud, "SLURM_CPU_BIND_TYPE="+kind, "SLURM_CPU_BIND_LIST="+list)
		if t.launch.Step.CPUBind != "" {
			environ = env.Merge(environ, "SLURM_CPU_BIND="+loud+","+kind+list)
		}
	}
	b := &cmd.MemBind
	if b.Given == "" || b.Given == "unset" {
		return environ
	}
	kind, list, loud := b.Kind, strings.Join(b.List, ","), loudness(b.Verbose)
	if list != "" {
		kind += ":"
	}
	words := []string{loud}
	environ = env.Merge(environ, "SLURM_MEM_BIND_VERBOSE="+loud, "SLURM_MEM_BIND_TYPE="+kind, "SLURM_MEM_BIND_LIST="+list)
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

func loudness(verbose bool) string {
	if verbose {
		return "verbose"
	}
	return "quiet"
}

// cpuNames and memNames are the kinds of binding as verbose reports name them.
var (
	cpuNames = map[string]string{
		affinity.None: "NONE", affinity.Rank: "RANK", affinity.RankDomain: "LDRANK", affinity.MapCPU: "MAP ",
		affinity.MapDomain: "LDMAP ", affinity.MaskDomain: "LDMASK",
	}
	memNames = map[string]string{
		affinity.Auto: "NULL", affinity.None: "NONE", affinity.Rank: "RANK", affinity.Local: "LOC",
		affinity.MapMem: "MAP", affinity.MaskMem: "MASK",
	}
)

// tellBinding reports, with verbose bindings, what the kernel says a task may
// run on and what it was told about memory.
func (t *tasks) tellBinding(local int, k *task, memory *spawn.MemPolicy) {
	cmd := &t.launch.Command
	if cmd.CPUBind.Verbose {
		t.tellCPUs(local, k)
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

func (t *tasks) tellCPUs(local int, k *task) {
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
		name, t.node.Name, k.id, local, k.proc.PID, affinity.FormatMask(bits(&set)), done))
}

func bits(set *unix.CPUSet) []int {
	var ids []int
	for i := 0; len(ids) < set.Count(); i++ {
		if set.IsSet(i) {
			ids = append(ids, i)
		}
	}
	return ids
}
