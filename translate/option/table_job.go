package option

import (
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// jobOptions returns the options about the job itself: name, account, partition,
// priority, dependencies, mail.
func jobOptions() []*Option {
	return []*Option{
		{Name: "account", Short: 'A', Arg: RequiredArg, Meta: "NAME", In: all, Env: "ACCOUNT", Group: GroupJob,
			Help: "charge the job to account NAME", set: text(func(p *Parsed) *string { return &p.Job.Account })},
		{Name: "array", Short: 'a', Arg: RequiredArg, Meta: "INDEXES", In: Sbatch, Env: "ARRAY_INX", Group: GroupJob,
			Help: "run one task for each index, such as 0-9:3%2", set: setArray},
		{Name: "comment", Arg: RequiredArg, Meta: "TEXT", In: all, Group: GroupJob,
			Help: "comment that is stored with the job", set: text(func(p *Parsed) *string { return &p.Job.Comment })},
		{Name: "dependency", Short: 'd', Arg: RequiredArg, Meta: "TYPE:ID[:ID]", In: all, Group: GroupJob,
			EnvFull: map[Command][]string{Srun: {"SLURM_DEPENDENCY"}},
			Help:    "wait for other jobs", set: setDependency},
		{Name: "hold", Short: 'H', In: all, Group: GroupJob, Help: "hold the job until it is released",
			set: func(p *Parsed, _ string, _ bool) error { p.Job.Hold = "user"; return nil }},
		{Name: "job-name", Short: 'J', Arg: RequiredArg, Meta: "NAME", In: all, Group: GroupJob,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_JOB_NAME"}, Srun: {"SLURM_JOB_NAME"}},
			Help:    "name of the job", set: text(func(p *Parsed) *string { return &p.Job.Name })},
		{Name: "kill-on-invalid-dep", Arg: RequiredArg, Meta: "yes|no", In: Sbatch, Group: GroupJob,
			Help: "cancel the job when its dependency can never be met", set: setKillOnInvalidDep},
		{Name: "licenses", Short: 'L', Arg: RequiredArg, Meta: "NAME[:COUNT]", In: all, Group: GroupJob,
			Help: "licenses that the job needs", set: setLicenses},
		{Name: "mail-type", Arg: RequiredArg, Meta: "TYPES", In: all, Group: GroupJob,
			Help: "events about which to send mail", set: setMailType},
		{Name: "mail-user", Arg: RequiredArg, Meta: "ADDRESS", In: all, Group: GroupJob,
			Help: "recipient of mail",
			set:  text(func(p *Parsed) *string { return &p.Job.Mail.User })},
		{Name: "mcs-label", Arg: RequiredArg, Meta: "LABEL", In: all, Group: GroupJob,
			Status: Warned, Reason: "there are no MCS labels", Help: "security label (MCS)"},
		{Name: "nice", Arg: OptionalArg, Meta: "VALUE", In: all, Group: GroupJob,
			Help: "lower the priority by VALUE (default: 100)", set: setNice},
		{Name: "no-kill", Short: 'k', Arg: OptionalArg, Meta: "off", In: all, Env: "NO_KILL", Group: GroupJob,
			Help: "continue if a node fails, except the one of the batch script", set: setNoKill},
		{Name: "no-requeue", In: Sbatch, Env: "NO_REQUEUE", Group: GroupJob, Help: "never requeue the job",
			set: optFlag(false, func(p *Parsed) **bool { return &p.Job.Batch.Requeue })},
		{Name: "partition", Short: 'p', Arg: RequiredArg, Meta: "NAMES", In: all, Env: "PARTITION", Group: GroupJob,
			Help: "partitions to run in; the one with the earliest start is used", set: setPartition},
		{Name: "priority", Arg: RequiredArg, Meta: "VALUE", In: all, Group: GroupJob,
			Help: "set the priority (operators only)", set: setPriority},
		{Name: "qos", Short: 'q', Arg: RequiredArg, Meta: "NAME", In: all, Env: "QOS", Group: GroupJob,
			Help: "quality of service", set: text(func(p *Parsed) *string { return &p.Job.QOS })},
		{Name: "requeue", Arg: OptionalArg, Meta: "expedite", In: Sbatch, Env: "REQUEUE", Group: GroupJob,
			Help: "allow the job to be requeued",
			set:  setRequeue},
		{Name: "reservation", Arg: RequiredArg, Meta: "NAME", In: all, Env: "RESERVATION", Group: GroupJob,
			Help: "run inside a reservation",
			set:  text(func(p *Parsed) *string { return &p.Job.Reservation })},
		{Name: "wckey", Arg: RequiredArg, Meta: "KEY", In: all, Env: "WCKEY", Group: GroupJob,
			Help: "workload characterization key of the job",
			set:  text(func(p *Parsed) *string { return &p.Job.WCKey })},
	}
}

func setArray(p *Parsed, v string, _ bool) error {
	if isEmptyList(v) {
		p.Job.Array = nil
		return nil
	}
	if p.Preliminary {
		return nil
	}
	a, err := value.Array(v)
	if err != nil {
		return p.refuseAsController("Invalid job array specification")
	}
	p.Job.Array = a
	return nil
}

func setDependency(p *Parsed, v string, _ bool) error {
	d, err := value.Dependencies(v)
	if err != nil { // the server refuses it, after its checks of the size, the partitions and the nodes
		d = value.UnreadableDependencies()
	}
	p.Job.Dependencies = d
	return nil
}

func setKillOnInvalidDep(p *Parsed, v string, _ bool) error {
	var on bool
	switch strings.ToLower(v) {
	case "yes":
		on = true
	case "no":
	default:
		return value.ErrInvalid
	}
	if before := p.Job.Batch.KillOnInvalidDep; before != nil && *before != on && !p.Lenient {
		on = true // as in Slurm, whose job then has both flags
		p.setText("kill-on-invalid-dep", "yes,no")
	}
	p.Job.Batch.KillOnInvalidDep = &on
	return nil
}

func setLicenses(p *Parsed, v string, _ bool) error {
	if isEmptyList(v) {
		p.Job.Licenses = nil
		return nil
	}
	var err error
	if p.Job.Licenses, err = value.Licenses(v); err != nil {
		return p.refuseJob(invalidLicense)
	}
	return nil
}

var mailTypes = map[string]bool{"NONE": true, "BEGIN": true, "END": true, "FAIL": true, "REQUEUE": true, "ALL": true,
	"INVALID_DEPEND": true, "STAGE_OUT": true, "TIME_LIMIT": true, "TIME_LIMIT_90": true, "TIME_LIMIT_80": true,
	"TIME_LIMIT_50": true, "ARRAY_TASKS": true}

// setMailType adds the types of one value to those of earlier ones. As in Slurm, NONE
// removes only the types in the same value.
func setMailType(p *Parsed, v string, _ bool) error {
	types, unknown, err := parseMailTypes(v)
	if err != nil {
		return err
	}
	for _, t := range unknown {
		p.warn("warning: --mail-type: there is no type %s", t)
	}
	all := append(slices.Clone(p.Job.Mail.Types), types...)
	p.Job.Mail.Types = slices.DeleteFunc(slices.Clone(mailOrder), func(t string) bool {
		return !slices.Contains(all, t)
	})
	return nil
}

// parseMailTypes parses one value of --mail-type, which must have a known type. As in
// Slurm 22.05.8, others are accepted beside it.
func parseMailTypes(v string) (types, unknown []string, err error) {
	for part := range strings.SplitSeq(v, ",") {
		t := strings.ToUpper(part)
		switch {
		case t == "":
		case !mailTypes[t]:
			unknown = append(unknown, part)
		case t == "NONE":
			return nil, unknown, nil
		case t == "ALL":
			types = append(types, mailAll...)
		default:
			types = append(types, t)
		}
	}
	if len(types) == 0 {
		return nil, nil, value.ErrInvalid
	}
	return types, unknown, nil
}

// mailAll are the types that ALL stands for.
var mailAll = []string{"INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT"}

// maxNice is Slurm's NICE_OFFSET minus its reserved values.
const maxNice = 1<<31 - 3

func setNice(p *Parsed, v string, hasValue bool) error {
	p.Job.Nice = 100
	if !hasValue || v == "" {
		return nil
	}
	n := value.Leading(v)
	if n < -maxNice || n > maxNice {
		return slurmerr.Newf(slurmerr.BadValue, "Invalid --nice value, out of range (+/- %d)", maxNice)
	}
	p.Job.Nice = int32(n)
	return nil
}

func setNoKill(p *Parsed, v string, _ bool) error {
	off := strings.EqualFold(v, "off") || strings.EqualFold(v, "no")
	if v != "" && !off && !strings.EqualFold(v, "set") {
		return value.ErrInvalid
	}
	p.Job.Batch.NoKill = !off
	return nil
}

// setRequeue parses --requeue, and --requeue=expedite of 25.11.
func setRequeue(p *Parsed, v string, hasValue bool) error {
	switch on := true; {
	case p.from == FromEnv && switchedOff(v):
	case hasValue && p.from != FromEnv && v != "expedite":
		return usageError("option '--requeue' doesn't allow an argument")
	default:
		p.Job.Batch.Requeue = &on
		if v == "expedite" {
			p.warn("warning: --requeue=expedite has the effect of --requeue: the job returns to its place in the queue")
		}
	}
	return nil
}

func setPartition(p *Parsed, v string, _ bool) error {
	p.Job.Partitions = value.Names(v)
	if isEmptyList(v) && !p.Lenient {
		p.deferred = append(p.deferred, refusal{reason: "Invalid partition name specified", ofJob: true,
			before: "invalid partition specified: (null)"})
	}
	return nil
}

func setPriority(p *Parsed, v string, _ bool) error {
	n := value.Leading(v)
	if strings.EqualFold(v, "TOP") {
		n = 1<<32 - 3
	}
	switch {
	case n < 0:
		return slurmerr.New(slurmerr.BadValue, "Priority must be >= 0")
	case n >= 1<<32-2 && !strings.EqualFold(v, "TOP"):
		return slurmerr.New(slurmerr.BadValue, "Priority must be < 4294967294")
	}
	if n > 0 { // as in Slurm, 0 and words count as no priority and do not hold the job
		p.Job.Priority = &n
	}
	return nil
}
