package option

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// Verify checks options against each other and makes Slurm's corrections, after all of
// them have been parsed (and --nodefile has been read). It reports
// corrections in p.Warnings. Errors are *slurmerr.Error.
func (p *Parsed) Verify() error {
	p.sortWarnings()
	for _, check := range []func(*Parsed) error{
		checkVerbosity, checkSpecialization, checkCPUBind, checkGPUTaskRatio, resolveMemory, checkRelative, dropHint,
		checkHint, setImplicitTasks, checkArbitrary, limitNodesToTasks, adaptToNodeList, checkPlanes, checkTasksPerGPU,
		checkLeastGPUs, checkPerGPU, checkGRES, checkGPUCounts, checkGRESTypes, setTasksOrGPUs, checkSharing,
	} {
		if err := check(p); err != nil {
			return err
		}
	}
	p.orderRefusals()
	return p.refused(false)
}

// ofConfiguration reports whether a warning is about an option that the configuration does not
// allow: Slurm's commands print it once they have read all options.
func ofConfiguration(warning string) bool {
	return strings.Contains(warning, "AllowSpecResourcesUsage")
}

// fatal returns an error that Slurm finds before it comes to the options that the
// configuration does not allow, and drops the warnings about those.
func (p *Parsed) fatal(text string) error {
	p.Warnings = slices.DeleteFunc(p.Warnings, ofConfiguration)
	return slurmerr.New(slurmerr.Fatal, text)
}

// sortWarnings puts those that follow the others last.
func (p *Parsed) sortWarnings() {
	slices.SortStableFunc(p.Warnings, func(a, b string) int {
		switch late := ofConfiguration(b); {
		case ofConfiguration(a) == late:
			return 0
		case late:
			return -1
		}
		return 1
	})
}

// Corrected returns a refusal together with the errors about options that Slurm ignored
// before. checked: the refusal comes from a check of the options against each other, before
// which Slurm has checked them against its configuration.
func (p *Parsed) Corrected(err error, checked bool) error {
	e, ok := errors.AsType[*slurmerr.Error](err)
	if !ok {
		return err
	}
	var lines []string
	for _, w := range p.Warnings {
		said := strings.HasPrefix(w, "error: Ignoring ") || strings.HasPrefix(w, "error: Compression type")
		if said && (checked || !ofConfiguration(w)) {
			lines = append(lines, p.Command.String()+": "+w)
		}
	}
	e.Before = append(lines, e.Before...)
	return e
}

// VerifyStep is Verify for a step of an existing job. The job checks the step's
// size.
func (p *Parsed) VerifyStep() error {
	for _, check := range []func(*Parsed) error{
		checkVerbosity, checkCPUBind, resolveMemory, checkGPUTaskRatio, dropHint, checkHint, checkNodeList,
		checkGRESTypes, checkSharing, checkRelative,
	} {
		if err := check(p); err != nil {
			return p.Corrected(err, true)
		}
	}
	p.warnStep()
	if slices.Contains(p.Job.Placement.Exclude, noNode) {
		p.deferred = append(p.deferred, refusal{reason: "Invalid node name specified"})
	}
	return p.refused(true)
}

// warn adds a warning.
func (p *Parsed) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

// inform adds a message that only --verbose shows.
func (p *Parsed) inform(format string, args ...any) {
	if p.Client.Verbose > 0 {
		p.warn(format, args...)
	}
}

// checkVerbosity returns an error for --quiet with --verbose.
func checkVerbosity(p *Parsed) error {
	if p.Client.Verbose > 0 && p.Client.Quiet > 0 {
		return slurmerr.New(slurmerr.Refused, "don't specify both --verbose (-v) and --quiet (-Q)")
	}
	return nil
}

// checkSharing returns an error for contradictory options about sharing CPUs.
func checkSharing(p *Parsed) error {
	switch {
	case p.Has("exclusive") && p.Has("overlap") && p.Command == Srun:
		return slurmerr.New(slurmerr.Refused, "--exclusive and --overlap are mutually exclusive")
	case p.Step.Exact && p.Step.Whole:
		return slurmerr.New(slurmerr.Refused, "--exact and --whole are mutually exclusive.")
	}
	return nil
}

// checkRelative returns an error for --relative together with a list of nodes.
func checkRelative(p *Parsed) error {
	if p.Has("relative") && (p.Has("nodelist") || p.Has("exclude")) {
		return slurmerr.New(slurmerr.Refused, "-r,--relative not allowed with -w,--nodelist or -x,--exclude.")
	}
	return nil
}

// checkGPUTaskRatio returns an error for several ratios of tasks to GPUs.
func checkGPUTaskRatio(p *Parsed) error {
	if p.Has("ntasks-per-node") && (p.Has("ntasks-per-gpu") || p.Has("ntasks-per-tres")) {
		name := "--ntasks-per-node"
		if p.Given["ntasks-per-node"].From == FromEnv {
			name = "SLURM_NTASKS_PER_NODE"
		}
		return p.fatal(name + " is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU")
	}
	perGPU, perTRES := p.Given["ntasks-per-gpu"].Value, p.Given["ntasks-per-tres"].Value
	if p.Has("ntasks-per-gpu") && p.Has("ntasks-per-tres") && perGPU != perTRES {
		return p.fatal("Inconsistent values set to --ntasks-per-gpu=" + perGPU +
			" and --ntasks-per-tres=" + perTRES + " ")
	}
	for _, name := range []string{"gpus-per-task", "gpus-per-socket"} {
		if p.Has(name) && (p.Has("ntasks-per-gpu") || p.Has("ntasks-per-tres")) {
			given := "--" + name
			if p.Given[name].From == FromEnv {
				given = "SLURM_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			}
			return p.fatal(given + " is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU")
		}
	}
	return nil
}

// dropHint drops --hint if a more specific option was given.
func dropHint(p *Parsed) error {
	if p.Has("hint") && p.Given["hint"].From == FromCommandLine && p.Given["threads-per-core"].From == FromEnv {
		delete(p.Given, "threads-per-core") // the hint replaces the variable
		p.Job.Shape.ThreadsPerCore = 0
	}
	if p.Has("threads-per-core") && p.Step.CPUBind == "" {
		p.inform("Setting --cpu-bind=threads as a default of --threads-per-core use")
	}
	bind := p.Step.CPUBind
	bound := bind != "" && !strings.EqualFold(bind, "verbose") && !strings.EqualFold(bind, "v")
	specific := bound || p.Has("ntasks-per-core") || p.Has("threads-per-core") || p.Has("extra-node-info")
	if !p.Has("hint") || !specific {
		return nil
	}
	if p.Command == Srun {
		p.warn("Following options are mutually exclusive with --hint: " +
			"--ntasks-per-core, --threads-per-core, -B and --cpu-bind (other then --cpu-bind=verbose). Ignoring --hint.")
	}
	p.Job.Placement.Hint = ""
	delete(p.Given, "hint")
	return nil
}

// setImplicitTasks sets the number of tasks of a job without -n to the number of CPUs that -B
// describes, or the options for each of its counts together with a fixed number of nodes; srun
// does so only with all three counts.
func setImplicitTasks(p *Parsed) error {
	s := &p.Job.Shape
	if p.Has("ntasks") || s.SocketsPerNode+s.CoresPerSocket+s.ThreadsPerCore == 0 || s.MaxNodes > s.MinNodes {
		return nil
	}
	if p.Command == Srun && (s.SocketsPerNode == 0 || s.CoresPerSocket == 0 || s.ThreadsPerCore == 0) {
		return nil
	}
	if p.Command != Srun && s.TasksPerNode > 0 {
		return nil // these count
	}
	nodes := s.MinNodes
	if nodes == 0 { // the nodes that are named are all needed
		nodes = int32(len(unique(slices.Clone(p.Job.Placement.NodeList))))
	}
	if nodes == 0 && !p.Has("extra-node-info") {
		return nil
	}
	s.Tasks = max(1, nodes) * max(1, s.SocketsPerNode) * max(1, s.CoresPerSocket) * max(1, s.ThreadsPerCore)
	if !p.Has("extra-node-info") {
		return nil
	}
	end := ""
	if p.Command == Sbatch {
		end = "."
	}
	p.inform("Number of tasks implicitly set to %d%s", s.Tasks, end)
	return nil
}

// checkArbitrary returns an error for an arbitrary distribution without a node list.
func checkArbitrary(p *Parsed) error {
	if p.Job.Placement.Distribution == "arbitrary" && len(p.Job.Placement.NodeList) == 0 {
		if p.Command == Srun && p.Job.Shape.Tasks == 0 {
			return slurmerr.New(slurmerr.Refused, "invalid number of tasks (-n 0)")
		}
		return p.refuseLater(slurmerr.New(slurmerr.Refused,
			"With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option"))
	}
	return nil
}

// limitNodesToTasks lowers the number of nodes, and shortens the list of nodes, to
// the number of tasks.
func limitNodesToTasks(p *Parsed) error {
	s, list := &p.Job.Shape, p.Job.Placement.NodeList
	if p.Job.Placement.Distribution != "arbitrary" && (s.MaxNodes == 0 || s.MaxNodes >= int32(len(list))) {
		list = unique(list)
		p.Job.Placement.NodeList = list
	}
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

// shorten shortens the node list to n names.
func (p *Parsed) shorten(n int) {
	p.Job.Placement.NodeList = p.Job.Placement.NodeList[:n]
	p.shortened = hostlist.Fold(p.Job.Placement.NodeList)
}

// adaptToNodeList raises the number of nodes to the length of the node list.
func adaptToNodeList(p *Parsed) error {
	p.Job.Placement.Exclude = unique(p.Job.Placement.Exclude)
	if p.Command == Sbatch { // srun and salloc count duplicates
		p.Job.Placement.NodeList = unique(p.Job.Placement.NodeList)
		if p.Job.Placement.Distribution == "arbitrary" {
			slices.SortFunc(p.Job.Placement.NodeList, hostlist.Compare)
		}
	}
	s, n := &p.Job.Shape, int32(len(p.Job.Placement.NodeList))
	if n == 0 || s.MinNodes >= n {
		return nil
	}
	if s.MaxNodes > 0 && s.MaxNodes < n {
		if p.Command == Srun {
			p.warn("error: Required nodelist includes more nodes than permitted by max-node count (%d > %d). "+
				"Eliminating nodes from the nodelist.", n, s.MaxNodes)
			p.shorten(int(s.MaxNodes))
			return nil
		}
		return slurmerr.Newf(slurmerr.Refused, "invalid number of nodes (-N %d-%d)", n, s.MaxNodes)
	}
	s.MinNodes = n
	return nil
}

// checkPlanes returns an error for planes of tasks of which the last nodes would get none.
func checkPlanes(p *Parsed) error {
	plane, ok := strings.CutPrefix(p.Job.Placement.Distribution, "plane=")
	size := value.Leading(plane)
	if !ok || p.Command == Srun {
		return nil
	}
	s := &p.Job.Shape
	nodes, tasks := int64(s.MinNodes), int64(max(s.Tasks, s.MinNodes))
	if tasks/max(size, 1) < nodes && (nodes-1)*size >= tasks {
		return slurmerr.New(slurmerr.Refused, "Too few processes for the requested {plane,node} distribution")
	}
	return nil
}

// checkPerGPU returns an error for amounts per GPU or socket without a request for GPUs
// or sockets.
func checkPerGPU(p *Parsed) error {
	gpus := slices.ContainsFunc(p.Job.Shape.GRES, func(g job.GRES) bool { return g.Name == "gpu" && g.Count > 0 })
	perSocket := slices.ContainsFunc(p.Job.Shape.GRES,
		func(g job.GRES) bool { return g.Per == job.PerSocket && g.Count > 0 })
	switch memory := p.Job.Shape.MemPerGPU; {
	case memory != nil && *memory > 0 && !gpus:
		return p.refuseLater(slurmerr.Newf(slurmerr.Refused,
			"Requested mem_per_tres=gres:gpu:%d but did not request any GPU.\n%s", *memory, invalidGRES))
	case perSocket && p.Job.Shape.SocketsPerNode == 0:
		return p.refuseLater(slurmerr.New(slurmerr.Refused,
			"--gpus-per-socket option requires --sockets-per-node specification\n"+invalidGRES))
	}
	return nil
}

// checkGRES returns an error for CPUs both per GPU and per task.
func checkGRES(p *Parsed) error {
	if p.Job.Shape.CPUsPerGPU > 0 && p.Job.Shape.CPUsPerTask > 0 {
		return p.refuseLater(slurmerr.New(slurmerr.Refused,
			"--cpus-per-gpu is mutually exclusive with --cpus-per-task\n"+invalidGRES))
	}
	return nil
}

// checkGRESTypes returns an error for a generic resource that is requested both with and
// without a type, as it is ambiguous whether one includes the other.
func checkGRESTypes(p *Parsed) error {
	typed := map[string]bool{}
	for _, g := range p.Job.Shape.GRES {
		if g.Count == 0 {
			continue
		}
		if with, seen := typed[g.Name]; seen && with != (g.Type != "") {
			return p.refuseLater(slurmerr.New(slurmerr.Refused, mixedGRES))
		}
		typed[g.Name] = g.Type != ""
	}
	return nil
}

// unique returns list without repeated names. It modifies list.
func unique(list []string) []string {
	if increases(list) {
		return list
	}
	seen := make(map[string]bool, len(list))
	return slices.DeleteFunc(list, func(name string) bool {
		repeated := seen[name]
		seen[name] = true
		return repeated
	})
}

// increases reports whether each name is longer than the one before it, or as long and
// greater, as those of a range.
func increases(list []string) bool {
	for i := 1; i < len(list); i++ {
		before, name := list[i-1], list[i]
		if len(name) < len(before) || len(name) == len(before) && name <= before {
			return false
		}
	}
	return true
}

// setTasksOrGPUs sets what --ntasks-per-gpu implies: the number of tasks if there are
// GPUs, or else the number of GPUs (sbatch(1)).
func setTasksOrGPUs(p *Parsed) error {
	s := &p.Job.Shape
	gpus := int64(0)
	for _, d := range s.GRESDemands() {
		if d.Name == "gpu" {
			gpus += d.Total(s, s.MinNodes, 1)
		}
	}
	setTasksFromGPUTotal(s)
	switch per := s.TasksPerGPU; {
	case per == 0:
	case gpus == 0 && s.Tasks > 0:
		count := int64(s.Tasks / per)
		switch {
		case count == 0: // as in Slurm, no GPU
			p.warn("error: gres_job_state_validate: Failed to add generated GRES gres:gpu:0 (via ntasks_per_tres) to gres_list")
			return nil
		case s.Tasks%per != 0:
			return p.refuseLater(badGPUs("Failed to validate job spec, -n/--ntasks has to be a multiple of --ntasks-per-gpu."))
		}
		s.GRES = append(s.GRES, job.GRES{Name: "gpu", Count: count, Per: job.PerJob})
		p.setText("gpus", "") // no SLURM_GPUS: the user did not request them
	case (s.Tasks == 0 || !p.Has("ntasks")) && s.TasksPerNode == 0: // of -B there are tasks already
		s.Tasks = s.TasksOfGPUs(gpus)
	}
	return nil
}

// setTasksFromGPUTotal sets the number of tasks to that of all GPUs divided by those of each
// task, and the number of nodes to that of all GPUs divided by those of each node.
func setTasksFromGPUTotal(s *job.Shape) {
	for _, d := range s.GRESDemands() {
		if d.Name != "gpu" || d.Job == 0 {
			continue
		}
		if d.Task > 0 && s.Tasks == 0 {
			s.Tasks = int32(min(d.Job/d.Task, job.MaxTasks))
		}
		if n := int32(min(d.Job/max(d.Node, 1), 1<<30)); d.Node > 0 && n > 0 {
			s.MinNodes, s.MaxNodes = n, n
		}
	}
}

// checkNodeList returns an error for an empty --nodelist.
func checkNodeList(p *Parsed) error {
	if g := p.Given["nodelist"]; g.From == FromCommandLine && g.Value == "" {
		return slurmerr.New(slurmerr.Refused, "Hostlist is empty!  Can not run job.")
	}
	return nil
}

// warnStep warns about options of a job that have no effect on a step: the job
// already has its nodes.
func (p *Parsed) warnStep() {
	given := func(name string) bool { return p.Given[name].From == FromCommandLine }
	if given("begin") {
		p.warn("error: --begin is ignored because nodes are already allocated.")
	}
	if given("core-spec") {
		p.warn("error: Ignoring --core-spec value for a job step within an existing job. " +
			"Set specialized cores at job allocation time.")
	}
	if given("constraint") {
		p.warn(
			"warning: --constraint has no effect: a step does not choose among the nodes of its job by their features",
		)
	}
}
