package option

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// nodeOptions returns the options about the selection of nodes.
func nodeOptions() []*Option {
	return []*Option{
		{Name: "constraint", Short: 'C', Arg: RequiredArg, Meta: "FEATURES", In: all, Env: "CONSTRAINT",
			Group: GroupNodes,
			Help:  "features that the nodes must have",
			set:   text(func(p *Parsed) *string { return &p.Job.Placement.Constraint })},
		{Name: "batch", Arg: RequiredArg, Meta: "FEATURES", In: Sbatch, Env: "BATCH", Group: GroupNodes,
			Help: "features, among those of --constraint, that the node of the batch script must have",
			set:  setBatch},
		{Name: "prefer", Arg: RequiredArg, Meta: "FEATURES", In: all, Group: GroupNodes,
			Help: "features that the nodes should have",
			set:  text(func(p *Parsed) *string { return &p.Job.Placement.Prefer })},
		{Name: "cluster-constraint", Arg: RequiredArg, Meta: "FEATURES", In: all, Group: GroupNodes,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_CLUSTER_CONSTRAINT"}, Srun: {"SLURM_CLUSTER_CONSTRAINT"}},
			Status:  Warned, Reason: "there is one cluster", Help: "features that the cluster must have"},
		{Name: "contiguous", In: all, Group: GroupNodes, Help: "use only contiguous nodes",
			set: flag(func(p *Parsed) *bool { return &p.Job.Placement.Contiguous })},
		{Name: "distribution", Short: 'm', Arg: RequiredArg, Meta: "TYPE", In: all, Group: GroupNodes,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_DISTRIBUTION"}, Srun: {"SLURM_DISTRIBUTION"}},
			Help:    "distribution of tasks over nodes: block, cyclic, plane, arbitrary", set: setDistribution},
		{Name: "exclude", Short: 'x', Arg: RequiredArg, Meta: "NODES", In: all, Group: GroupNodes,
			Help: "nodes not to use", set: setExclude},
		{Name: "exclusive", Arg: OptionalArg, Meta: "user|mcs|topo", In: all, Env: "EXCLUSIVE", Group: GroupNodes,
			Help: "do not share the nodes with other jobs", set: setExclusive},
		{Name: "hint", Arg: RequiredArg, Meta: "TYPE", In: all, Group: GroupNodes,
			EnvFull: map[Command][]string{
				Sbatch: {"SLURM_HINT", "SBATCH_HINT"}, Salloc: {"SLURM_HINT", "SALLOC_HINT"}, Srun: {"SLURM_HINT"},
			},
			Help: "hints for task binding", set: setHint},
		{Name: "nodefile", Short: 'F', Arg: RequiredArg, Meta: "FILE", In: all, Group: GroupNodes,
			Help: "file with the names of the nodes to use",
			set:  text(func(p *Parsed) *string { return &p.Client.NodeFile })},
		{Name: "nodelist", Short: 'w', Arg: RequiredArg, Meta: "NODES", In: all, Group: GroupNodes,
			Help: "nodes that the job must have", set: setNodeList},
		{Name: "oversubscribe", Short: 's', In: all, Group: GroupNodes,
			Help: "allow other jobs on the same CPUs",
			set: func(p *Parsed, _ string, _ bool) error {
				p.Job.Placement.OverSubscribe, p.Job.Placement.Exclusive = true, ""
				return nil
			}},
		{Name: "reboot", In: all, Group: GroupNodes,
			Status: Refused, Reason: "nodes are not rebooted for jobs", RootOnly: true, Help: "reboot the nodes first",
			set: refuseReboot},
		{Name: "spread-job", In: all, Env: "SPREAD_JOB", Group: GroupNodes,
			Help: "spread the job over as many nodes as possible",
			set:  flag(func(p *Parsed) *bool { return &p.Job.Placement.SpreadJob })},
		{Name: "switches", Arg: RequiredArg, Meta: "N[@TIME]", In: all, Env: "REQ_SWITCH", Group: GroupNodes,
			Help: "maximum number of switches, and how long to wait for it", set: setSwitches},
		{Name: "use-min-nodes", In: all, Env: "USE_MIN_NODES", Group: GroupNodes,
			Help: "prefer the lower end of a range of node counts",
			set:  flag(func(p *Parsed) *bool { return &p.Job.Placement.UseMinNodes })},
		{Name: "network", Arg: RequiredArg, Meta: "TYPE", In: all, Env: "NETWORK", Group: GroupNodes,
			Status: Warned, Reason: "no network is configured for jobs", Help: "network configuration"},
		{Name: "wait-all-nodes", Arg: RequiredArg, Meta: "0|1", In: Sbatch | Salloc, Env: "WAIT_ALL_NODES",
			Group: GroupNodes,
			Help:  "accepted: a job always waits for all of its nodes", set: setWaitAllNodes},
		{Name: "delay-boot", Arg: RequiredArg, Meta: "MINUTES", In: all, Env: "DELAY_BOOT", Group: GroupNodes,
			Help: "time to wait before nodes are rebooted to get features, which never happens; it is recorded",
			set:  setDelayBoot},
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
	case "topo": // of 24.05
		if !p.Lenient {
			return slurmerr.New(slurmerr.Refused, "--exclusive=topo is not possible here: "+
				"other jobs may use the other nodes of a switch; use --nodelist with all of its nodes")
		}
	default:
		return value.ErrInvalid
	}
	p.Step.Exact = true // the meaning of --exclusive for a step
	return nil
}

func setDistribution(p *Parsed, v string, _ bool) (err error) {
	p.Job.Placement.Distribution, err = value.Distribution(v)
	return err
}

const hintHelp = `Application hints for the binding of tasks:
    --hint=compute_bound    compute-bound: use all cores of a socket
    --hint=memory_bound     memory-bound: use one core of each socket
    --hint=multithread      use all threads of a core
    --hint=nomultithread    use one thread of a core
`

func setWaitAllNodes(p *Parsed, v string, _ bool) error {
	n, err := value.CountOrZero(v)
	switch {
	case err != nil:
		return errNumber
	case n > 1:
		return value.ErrInvalid
	}
	p.setText("wait-all-nodes", v)
	return nil
}

func setDelayBoot(p *Parsed, v string, _ bool) error {
	if v == "-1" || strings.EqualFold(v, "INFINITE") || strings.EqualFold(v, "UNLIMITED") {
		p.setText("delay-boot", "-1")
		return nil
	}
	if _, err := value.Seconds(v); err != nil || strings.HasPrefix(v, "-") && strings.Contains(v, ":") {
		return value.ErrInvalid
	}
	p.setText("delay-boot", v)
	return nil
}

func setBatch(p *Parsed, v string, _ bool) error {
	if v == "" {
		return p.refuseJob("Job --batch option is invalid or not a subset of --constraints")
	}
	p.Job.Placement.Batch = v
	return nil
}

// setHint stores a hint, which checkHint checks.
// refuseReboot refuses --reboot of a user as Slurm's controller does. See orderRefusals.
func refuseReboot(p *Parsed, _ string, _ bool) error {
	if p.NotRoot && !p.Lenient {
		p.deferred = append(p.deferred, refusal{reason: "Access/permission denied", ofJob: true,
			before: "rebooting of nodes is only allowed for admins"})
	}
	return nil
}

func setHint(p *Parsed, v string, _ bool) error {
	hint := strings.ToLower(v)
	if slices.Contains(strings.Split(hint, ","), "help") {
		p.Client.Print, p.Client.PrintCode = hintHelp, 1
		return nil
	}
	p.Job.Placement.Hint = hint
	return nil
}

// checkHint checks --hint when all options are known, as Slurm does: errors of other options
// come first, and a hint that others exclude may be anything.
func checkHint(p *Parsed) error {
	if !p.Has("hint") {
		return nil
	}
	for word := range strings.SplitSeq(p.Job.Placement.Hint, ",") {
		switch word {
		case "compute_bound", "memory_bound", "multithread", "nomultithread":
		default:
			p.deferred = nil // what they say comes later
			return slurmerr.Newf(slurmerr.Refused, "unrecognized --hint argument %q, see --hint=help", word)
		}
	}
	p.Job.Shape.SocketsPerNode, p.Job.Shape.CoresPerSocket = 0, 0 // the hint replaces them
	return nil
}

func setSwitches(p *Parsed, v string, _ bool) error {
	n, wait, timed := strings.Cut(v, "@")
	c, err := value.Count(n)
	switch {
	case timed && p.from == FromEnv: // a variable of its own has the time
		return errNumber
	case err != nil && timed:
		return badNumber(n, "--switches")
	case err != nil:
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

// switchesWait parses how long to wait for the number of switches and returns
// seconds. As in Slurm, an invalid time counts as 0.
func switchesWait(v string) int32 {
	n, err := value.Seconds(v)
	if err != nil {
		return 0
	}
	return int32(n)
}

// timeOptions returns the options about time.
func timeOptions() []*Option {
	return []*Option{
		{Name: "time", Short: 't', Arg: RequiredArg, Meta: "LIMIT", In: all, Env: "TIMELIMIT", Group: GroupTime,
			Help: "time limit: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S",
			set:  minutes(func(p *Parsed) *int32 { return &p.Job.Time.Limit })},
		{Name: "time-min", Arg: RequiredArg, Meta: "LIMIT", In: all, Group: GroupTime,
			Help: "minimum time limit of the job",
			set:  minutes(func(p *Parsed) *int32 { return &p.Job.Time.Min })},
		{Name: "begin", Short: 'b', Arg: RequiredArg, Meta: "TIME", In: all, Group: GroupTime,
			Help: "do not start before TIME", set: setInstant("begin",
				func(p *Parsed) *string { return &p.Client.Begin })},
		{Name: "deadline", Arg: RequiredArg, Meta: "TIME", In: all, Group: GroupTime,
			Help: "remove the job if it cannot end before TIME",
			set:  setInstant("deadline", func(p *Parsed) *string { return &p.Client.Deadline })},
		{Name: "signal", Arg: RequiredArg, Meta: "[B:]SIG[@SECONDS]", In: all, Env: "SIGNAL", Group: GroupTime,
			Help: "signal to send before the time limit is reached", set: setSignal},
		{Name: "immediate", Short: 'I', Arg: OptionalArg, Meta: "SECONDS", In: Srun | Salloc, Group: GroupTime,
			EnvFull: map[Command][]string{Salloc: {"SALLOC_IMMEDIATE"}},
			Help:    "exit if the job cannot start within SECONDS (default: at once)", set: setImmediate},
	}
}

// setInstant returns a setter that checks the syntax of a time. ResolveTimes
// computes the time, which may be relative to now.
func setInstant(name string, field func(*Parsed) *string) setter {
	return func(p *Parsed, v string, _ bool) error {
		if _, err := value.Instant(v, syntaxTime); err != nil {
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
		p.warn("warning: --signal=R: has no effect: jobs do not overlap with reservations")
	}
	t := &p.Job.Time
	t.Signal, t.SignalBefore, t.SignalBatch, t.SignalResv = s.Number, s.Before, s.Batch, s.Resv
	return nil
}

func setImmediate(p *Parsed, v string, hasValue bool) error {
	n := int32(1)
	if hasValue {
		var err error
		if n, err = value.CountOrZero(orZero(v)); err != nil {
			return errNumber
		}
	}
	p.Client.Immediate = &n
	return nil
}
