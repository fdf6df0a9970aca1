package option

import (
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// nodeOptions choose nodes.
func nodeOptions() []*Option {
	return []*Option{
		{Name: "constraint", Short: 'C', Arg: RequiredArg, Meta: "FEATURES", In: all, Env: "CONSTRAINT", Group: GroupNodes,
			Help: "features the nodes must have", set: text(func(p *Parsed) *string { return &p.Job.Placement.Constraint })},
		{Name: "batch", Arg: RequiredArg, Meta: "FEATURES", In: Sbatch, Env: "BATCH", Group: GroupNodes,
			Help: "features of the node of the batch script, of those of --constraint",
			set:  text(func(p *Parsed) *string { return &p.Job.Placement.Batch })},
		{Name: "prefer", Arg: RequiredArg, Meta: "FEATURES", In: all, Group: GroupNodes,
			Help: "features the nodes should have",
			set:  text(func(p *Parsed) *string { return &p.Job.Placement.Prefer })},
		{Name: "cluster-constraint", Arg: RequiredArg, Meta: "FEATURES", In: all, Group: GroupNodes,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_CLUSTER_CONSTRAINT"}, Srun: {"SLURM_CLUSTER_CONSTRAINT"}},
			Status:  Refused, Reason: "there is one cluster", Help: "features of the cluster"},
		{Name: "contiguous", In: all, Group: GroupNodes, Help: "neighbouring nodes only", set: flag(func(p *Parsed) *bool { return &p.Job.Placement.Contiguous })},
		{Name: "distribution", Short: 'm', Arg: RequiredArg, Meta: "TYPE", In: all, EnvFull: map[Command][]string{Sbatch: {"SBATCH_DISTRIBUTION"}, Srun: {"SLURM_DISTRIBUTION"}}, Group: GroupNodes,
			Help: "how tasks spread over nodes: block, cyclic, plane, arbitrary", set: setDistribution},
		{Name: "exclude", Short: 'x', Arg: RequiredArg, Meta: "NODES", In: all, Group: GroupNodes,
			Help: "nodes not to use", set: hosts("Invalid node name specified", func(p *Parsed) *[]string { return &p.Job.Placement.Exclude })},
		{Name: "exclusive", Arg: OptionalArg, Meta: "user|mcs|topo", In: all, Env: "EXCLUSIVE", Group: GroupNodes,
			Help: "share the nodes with no other job", set: setExclusive},
		{Name: "hint", Arg: RequiredArg, Meta: "TYPE", In: all, Group: GroupNodes,
			EnvFull: map[Command][]string{Sbatch: {"SLURM_HINT", "SBATCH_HINT"}, Salloc: {"SLURM_HINT", "SALLOC_HINT"}, Srun: {"SLURM_HINT"}},
			Help:    "hints for the binding of tasks", set: setHint},
		{Name: "nodefile", Short: 'F', Arg: RequiredArg, Meta: "FILE", In: all, Group: GroupNodes,
			Help: "file with the names of the nodes to use", set: text(func(p *Parsed) *string { return &p.Client.NodeFile })},
		{Name: "nodelist", Short: 'w', Arg: RequiredArg, Meta: "NODES", In: all, Group: GroupNodes,
			Help: "nodes to use, all of them", set: hosts("Requested node configuration is not available", func(p *Parsed) *[]string { return &p.Job.Placement.NodeList })},
		{Name: "oversubscribe", Short: 's', In: all, Group: GroupNodes,
			Help: "share CPUs with other jobs",
			set: func(p *Parsed, _ string, _ bool) error {
				p.Job.Placement.OverSubscribe, p.Job.Placement.Exclusive = true, ""
				return nil
			}},
		{Name: "reboot", In: all, Group: GroupNodes, Status: Refused, Reason: "nodes are not rebooted for jobs", Help: "reboot the nodes first"},
		{Name: "spread-job", In: all, Env: "SPREAD_JOB", Group: GroupNodes, Help: "use as many nodes as possible", set: flag(func(p *Parsed) *bool { return &p.Job.Placement.SpreadJob })},
		{Name: "switches", Arg: RequiredArg, Meta: "N[@TIME]", In: all, Env: "REQ_SWITCH", Group: GroupNodes,
			Help: "most switches, and how long to wait for them", set: setSwitches},
		{Name: "use-min-nodes", In: all, Env: "USE_MIN_NODES", Group: GroupNodes, Help: "prefer the lower end of a range of node counts", set: flag(func(p *Parsed) *bool { return &p.Job.Placement.UseMinNodes })},
		{Name: "network", Arg: RequiredArg, Meta: "TYPE", In: all, Env: "NETWORK", Group: GroupNodes,
			Status: Warned, Reason: "no network is configured for jobs", Help: "network to configure"},
		{Name: "wait-all-nodes", Arg: RequiredArg, Meta: "0|1", In: Sbatch | Salloc, Env: "WAIT_ALL_NODES", Group: GroupNodes,
			Help: "a job always waits for all its nodes", set: setWaitAllNodes},
		{Name: "delay-boot", Arg: RequiredArg, Meta: "MINUTES", In: all, Env: "DELAY_BOOT", Group: GroupNodes,
			Status: Warned, Reason: "nodes are not rebooted for jobs", Help: "wait before booting nodes for features", set: setDelayBoot},
	}
}

func setExclusive(p *Parsed, v string, _ bool) error {
	p.Job.Placement.OverSubscribe = false
	switch strings.ToLower(v) {
	case "":
		p.Job.Placement.Exclusive = "node"
	case "user":
		p.Job.Placement.Exclusive = "user"
	case "mcs":
		p.Job.Placement.Exclusive = "mcs"
		if !p.Lenient {
			return slurmerr.New(slurmerr.Refused, "--exclusive=mcs is not possible here: there are no MCS labels")
		}
	case "topo": // of 24.11
		if !p.Lenient {
			return slurmerr.New(slurmerr.Refused, "--exclusive=topo is not possible here: other jobs may use the rest of a switch; name its nodes")
		}
	default:
		return value.ErrInvalid
	}
	p.Step.Exact = true // what --exclusive means to a step
	return nil
}

func setDistribution(p *Parsed, v string, _ bool) (err error) {
	p.Job.Placement.Distribution, err = value.Distribution(v)
	return err
}

const hintHelp = `Hints about what a program does, for the placement of its tasks:
    --hint=compute_bound    it computes: use all cores of a socket
    --hint=memory_bound     it moves memory: one task on each socket
    --hint=multithread      more than one task on a core
    --hint=nomultithread    one task on a core
`

func setWaitAllNodes(p *Parsed, v string, _ bool) error {
	n, err := value.CountOrZero(v)
	switch {
	case err != nil:
		return errNumber
	case n > 1:
		return value.ErrInvalid
	}
	p.keep("wait-all-nodes", v)
	return nil
}

func setDelayBoot(p *Parsed, v string, _ bool) error {
	if _, err := value.Seconds(v); err != nil || strings.HasPrefix(v, "-") && strings.Contains(v, ":") {
		return value.ErrInvalid
	}
	p.keep("delay-boot", v)
	return nil
}

func setHint(p *Parsed, v string, _ bool) error {
	hint := strings.ToLower(v)
	for word := range strings.SplitSeq(hint, ",") {
		switch word {
		case "compute_bound", "memory_bound", "multithread", "nomultithread":
		case "help":
			p.Client.Print, p.Client.PrintCode = hintHelp, 1
			return nil
		default:
			return slurmerr.Newf(slurmerr.Refused, "unrecognized --hint argument %q, see --hint=help", word)
		}
	}
	p.Job.Placement.Hint = hint
	return nil
}

func setSwitches(p *Parsed, v string, _ bool) error {
	n, wait, timed := strings.Cut(v, "@")
	c, err := value.Count(n)
	if err != nil {
		return errNumber
	}
	p.Job.Placement.Switches = c
	if timed {
		p.Job.Placement.SwitchesWait = switchesWait(wait)
	} else if p.switchesWait > 0 {
		p.Job.Placement.SwitchesWait = p.switchesWait
	}
	return nil
}

// switchesWait reads how long to wait for few switches, in seconds. As in Slurm
// what is no time is no wait.
func switchesWait(v string) int32 {
	n, err := value.Seconds(v)
	if err != nil {
		return 0
	}
	return int32(n)
}

// timeOptions say when and for how long.
func timeOptions() []*Option {
	return []*Option{
		{Name: "time", Short: 't', Arg: RequiredArg, Meta: "LIMIT", In: all, Env: "TIMELIMIT", Group: GroupTime,
			Help: "time limit: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S", set: minutes(func(p *Parsed) *int32 { return &p.Job.Time.Limit })},
		{Name: "time-min", Arg: RequiredArg, Meta: "LIMIT", In: all, Group: GroupTime,
			Help: "least time limit the job can do with",
			set:  minutes(func(p *Parsed) *int32 { return &p.Job.Time.Min })},
		{Name: "begin", Short: 'b', Arg: RequiredArg, Meta: "TIME", In: all, Group: GroupTime,
			Help: "do not start before TIME", set: setInstant("begin", func(p *Parsed) *string { return &p.Client.Begin })},
		{Name: "deadline", Arg: RequiredArg, Meta: "TIME", In: all, Group: GroupTime,
			Help: "remove the job if it cannot end before TIME",
			set:  setInstant("deadline", func(p *Parsed) *string { return &p.Client.Deadline })},
		{Name: "signal", Arg: RequiredArg, Meta: "[B:]SIG[@SECONDS]", In: all, Env: "SIGNAL", Group: GroupTime,
			Help: "send a signal ahead of the time limit", set: setSignal},
		{Name: "immediate", Short: 'I', Arg: OptionalArg, Meta: "SECONDS", In: Srun | Salloc, EnvFull: map[Command][]string{Salloc: {"SALLOC_IMMEDIATE"}}, Group: GroupTime,
			Help: "give up if the job cannot start at once", set: setImmediate},
	}
}

// setInstant checks the form now; what the text means is decided when the
// present is known (ResolveTimes).
func setInstant(name string, field func(*Parsed) *string) setter {
	return func(p *Parsed, v string, _ bool) error {
		if _, err := value.Instant(v, anyMoment); err != nil {
			return instantError(name, v, err)
		}
		*field(p) = v
		return nil
	}
}

func setSignal(p *Parsed, v string, _ bool) error {
	s, err := value.ParseSignal(v)
	if err != nil {
		return err
	}
	if s.Batch && p.Command != Sbatch {
		return value.ErrInvalid
	}
	if s.Resv {
		p.warn("warning: --signal=R: has no effect: no job overlaps with a reservation")
	}
	t := &p.Job.Time
	t.Signal, t.SignalBefore, t.SignalBatch, t.SignalResv = s.Number, s.Before, s.Batch, s.Resv
	return nil
}

func setImmediate(p *Parsed, v string, has bool) error {
	n := int32(1)
	if has {
		var err error
		if n, err = value.CountOrZero(orZero(v)); err != nil {
			return errNumber
		}
	}
	p.Client.Immediate = &n
	return nil
}
