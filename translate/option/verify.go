package option

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// Verify checks options against each other and puts right what Slurm puts
// right, once they all have been read (and --nodefile too). What it changes
// is said in p.Warnings. Errors are *slurmerr.Error.
func (p *Parsed) Verify() error {
	for _, check := range []func(*Parsed) error{quietOrVerbose, oneSpecialization, gpusOfTasks, oneMemory, hintAlone, implicitTasks,
		arbitraryNodes, nodesOfTasks, nodesOfList} {
		if err := check(p); err != nil {
			return err
		}
	}
	if len(p.late) > 0 {
		return p.late[0]
	}
	return nil
}

func (p *Parsed) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// inform says something that only --verbose shows.
func (p *Parsed) inform(format string, args ...any) {
	if p.Client.Verbose > 0 {
		p.warn(format, args...)
	}
}

func quietOrVerbose(p *Parsed) error {
	if p.Client.Verbose > 0 && p.Client.Quiet > 0 {
		return slurmerr.New(slurmerr.Refused, "don't specify both --verbose (-v) and --quiet (-Q)")
	}
	return nil
}

func oneSpecialization(p *Parsed) error {
	if p.Has("core-spec") && p.Has("thread-spec") {
		return slurmerr.New(slurmerr.Fatal, "-S/--core-spec and --thred-spec options are mutually exclusive")
	}
	return nil
}

func gpusOfTasks(p *Parsed) error {
	if p.Has("gpus-per-task") && p.Has("ntasks-per-gpu") {
		return slurmerr.New(slurmerr.Fatal, "--gpus-per-task is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU")
	}
	return nil
}

// oneMemory refuses two ways of asking for memory. One that comes from the
// environment yields to one that does not.
func oneMemory(p *Parsed) error {
	s := &p.Job.Shape
	fields := []struct {
		name string
		to   **int64
	}{{"mem", &s.MemPerNode}, {"mem-per-cpu", &s.MemPerCPU}, {"mem-per-gpu", &s.MemPerGPU}}
	explicit := 0
	for _, f := range fields {
		if *f.to != nil && p.Given[f.name].From != FromEnv {
			explicit++
		}
	}
	left := 0
	for _, f := range fields {
		if explicit > 0 && p.Given[f.name].From == FromEnv {
			*f.to = nil
			delete(p.Given, f.name)
		}
		if *f.to != nil {
			left++
		}
	}
	if left > 1 {
		return slurmerr.New(slurmerr.Fatal, "--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")
	}
	return nil
}

// hintAlone drops a hint where an option says more exactly what it is about.
func hintAlone(p *Parsed) error {
	if p.Has("threads-per-core") && p.Step.CPUBind == "" {
		p.inform("Setting --cpu-bind=threads as a default of --threads-per-core use")
	}
	bound := p.Step.CPUBind != "" && !strings.EqualFold(p.Step.CPUBind, "verbose") && !strings.EqualFold(p.Step.CPUBind, "v")
	if !p.Has("hint") || !bound && !p.Has("ntasks-per-core") && !p.Has("threads-per-core") && !p.Has("extra-node-info") {
		return nil
	}
	p.warn("Following options are mutually exclusive with --hint: --ntasks-per-core, --threads-per-core, -B and --cpu-bind " +
		"(other then --cpu-bind=verbose). Ignoring --hint.")
	p.Job.Placement.Hint = ""
	delete(p.Given, "hint")
	return nil
}

// implicitTasks gives a job with -B and without -n a task for every CPU that -B
// names; srun does that only when -B names all three counts.
func implicitTasks(p *Parsed) error {
	s := &p.Job.Shape
	if !p.Has("extra-node-info") || p.Has("ntasks") || s.SocketsPerNode+s.CoresPerSocket+s.ThreadsPerCore == 0 {
		return nil
	}
	if p.Command == Srun && (s.SocketsPerNode == 0 || s.CoresPerSocket == 0 || s.ThreadsPerCore == 0) {
		return nil
	}
	s.Tasks = max(1, s.MinNodes) * max(1, s.SocketsPerNode) * max(1, s.CoresPerSocket) * max(1, s.ThreadsPerCore)
	end := ""
	if p.Command == Sbatch {
		end = "."
	}
	p.inform("Number of tasks implicitly set to %d%s", s.Tasks, end)
	return nil
}

// arbitraryNodes: an arbitrary distribution is the list of nodes.
func arbitraryNodes(p *Parsed) error {
	if p.Job.Placement.Distribution == "arbitrary" && len(p.Job.Placement.NodeList) == 0 {
		if p.Command == Srun {
			return slurmerr.New(slurmerr.Refused, "invalid number of tasks (-n 0)")
		}
		return p.refuseLater(slurmerr.New(slurmerr.Refused, "With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option"))
	}
	return nil
}

// nodesOfTasks lowers the number of nodes, and the list of nodes, to the
// number of tasks.
func nodesOfTasks(p *Parsed) error {
	s, list := &p.Job.Shape, p.Job.Placement.NodeList
	nodes := max(s.MinNodes, int32(len(list)))
	if s.Tasks == 0 || s.Tasks >= nodes || s.MaxNodes > 0 && s.MaxNodes < int32(len(list)) {
		return nil
	}
	p.warn("Warning: can't run %d processes on %d nodes, setting nnodes to %d", s.Tasks, nodes, s.Tasks)
	short := len(list) > int(s.Tasks)
	if short {
		p.shorten(int(s.Tasks))
	}
	s.MinNodes = s.Tasks
	if s.MaxNodes > 0 || p.Command == Srun || short {
		s.MaxNodes = s.Tasks
	}
	if p.Command == Srun && !p.Has("nodes") {
		p.Given["nodes"] = Given{Value: "", From: FromDefault}
	}
	return nil
}

// shorten cuts the node list to n names.
func (p *Parsed) shorten(n int) {
	p.Job.Placement.NodeList = p.Job.Placement.NodeList[:n]
	p.shortened = hostlist.Fold(p.Job.Placement.NodeList)
}

// nodesOfList asks for as many nodes as were named, at least.
func nodesOfList(p *Parsed) error {
	s, n := &p.Job.Shape, int32(len(p.Job.Placement.NodeList))
	if n == 0 || s.MinNodes >= n {
		return nil
	}
	if s.MaxNodes > 0 && s.MaxNodes < n {
		if p.Command == Srun {
			p.warn("error: Required nodelist includes more nodes than permitted by max-node count (%d > %d). Eliminating nodes from the nodelist.", n, s.MaxNodes)
			p.shorten(int(s.MaxNodes))
			return nil
		}
		return slurmerr.Newf(slurmerr.Refused, "invalid number of nodes (-N %d-%d)", n, s.MaxNodes)
	}
	s.MinNodes = n
	return nil
}
