package change

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// jobSetting is one parameter of scontrol update for a job. Who may change it is
// in the table of package authz.
type jobSetting struct {
	states states
	// validate: the job must be checked again as a submission is.
	validate bool
	set      jobSetter
}

// jobSetter parses a value and changes the job.
type jobSetter func(c *jobChange, v string) error

// states are the states of a job in which a setting can be made.
type states int

const (
	anyState    states = iota // pending or live
	pendingOnly               // waiting in the queue
	liveOnly                  // with nodes, and not ending
)

// The usual rules of settings.
func inAnyState(set jobSetter) jobSetting { return jobSetting{set: set} }

func whilePending(set jobSetter) jobSetting { return jobSetting{states: pendingOnly, set: set} }

// asSubmission is a setting that is checked as a submission with it would be.
func asSubmission(set jobSetter) jobSetting {
	return jobSetting{states: pendingOnly, validate: true, set: set}
}

// jobSettings are scontrol's parameters of a job (scontrol(1), update job), in
// lower case, with their other names.
var jobSettings = map[string]jobSetting{
	"timelimit":    {validate: true, set: setTimeLimit},
	"endtime":      {states: liveOnly, set: setEndTime},
	"timemin":      inAnyState(setTimeMin),
	"starttime":    whilePending(setBegin),
	"eligibletime": whilePending(setBegin),
	"deadline":     inAnyState(setDeadline),
	"nice":         inAnyState(setNice),
	"priority":     inAnyState(setPriority),
	"sitefactor":   whilePending(setSiteFactor),

	"jobname":      inAnyState(textSetter(func(j *job.Job) *string { return &j.Name })),
	"name":         inAnyState(textSetter(func(j *job.Job) *string { return &j.Name })),
	"comment":      inAnyState(textSetter(func(j *job.Job) *string { return &j.Comment })),
	"admincomment": inAnyState(textSetter(func(j *job.Job) *string { return &j.AdminComment })),
	"wckey":        whilePending(textSetter(func(j *job.Job) *string { return &j.WCKey })),
	"mailuser":     inAnyState(textSetter(func(j *job.Job) *string { return &j.Mail.User })),
	"mailtype":     inAnyState(optionSetter("mail-type", "MailType", "Invalid MailType")),
	"requeue":      inAnyState(setRequeue),

	"partition":       asSubmission(setPartition),
	"account":         asSubmission(setAccount),
	"qos":             {validate: true, set: setQOS},
	"reservation":     asSubmission(setReservation),
	"reservationname": asSubmission(setReservation),
	"licenses":        asSubmission(setLicenses),
	"dependency":      whilePending(setDependency),

	"numnodes":    asSubmission(setNodeCount),
	"reqnodes":    asSubmission(setNodeCount),
	"numcpus":     asSubmission(setNumCPUs),
	"mincpus":     asSubmission(countSetter("MinCPUs", func(s *job.Shape) *int32 { return &s.MinCPUs })),
	"reqsockets":  whilePending(countSetter("ReqSockets", func(s *job.Shape) *int32 { return &s.SocketsPerNode })),
	"reqcores":    whilePending(countSetter("ReqCores", func(s *job.Shape) *int32 { return &s.CoresPerSocket })),
	"reqthreads":  whilePending(countSetter("ReqThreads", func(s *job.Shape) *int32 { return &s.ThreadsPerCore })),
	"numtasks":    asSubmission(setTasks),
	"reqprocs":    asSubmission(setTasks),
	"cpuspertask": asSubmission(countSetter("CPUsPerTask", func(s *job.Shape) *int32 { return &s.CPUsPerTask })),
	"mincpusnode": asSubmission(countSetter("MinCPUsNode", func(s *job.Shape) *int32 { return &s.MinCPUs })),

	"minmemorynode":  asSubmission(memorySetter("MinMemoryNode", func(s *job.Shape) **int64 { return &s.MemPerNode })),
	"minmemorycpu":   asSubmission(memorySetter("MinMemoryCPU", func(s *job.Shape) **int64 { return &s.MemPerCPU })),
	"mintmpdisknode": asSubmission(setTmpDisk),
	"gres":           asSubmission(setGRES),
	"trespernode":    asSubmission(gresSetter(job.PerNode)),
	"tresperjob":     asSubmission(gresSetter(job.PerJob)),
	"trespersocket":  asSubmission(gresSetter(job.PerSocket)),
	"trespertask":    asSubmission(gresSetter(job.PerTask)),
	"corespec":       whilePending(optionSetter("core-spec", "CoreSpec", "Invalid CoreSpec value")),

	"features":    asSubmission(textSetter(func(j *job.Job) *string { return &j.Placement.Constraint })),
	"prefer":      asSubmission(textSetter(func(j *job.Job) *string { return &j.Placement.Prefer })),
	"reqnodelist": asSubmission(nodeListSetter("nodelist", func(p *job.Placement) *[]string { return &p.NodeList })),
	"nodelist":    asSubmission(nodeListSetter("nodelist", func(p *job.Placement) *[]string { return &p.NodeList })),
	"excnodelist": asSubmission(nodeListSetter("exclude", func(p *job.Placement) *[]string { return &p.Exclude })),
	"switches":    whilePending(optionSetter("switches", "Switches", "Invalid Switches value")),

	"contiguous": whilePending(flagSetter("Contiguous", func(p *job.Placement) *bool { return &p.Contiguous })),
	"oversubscribe": whilePending(
		flagSetter("OverSubscribe", func(p *job.Placement) *bool { return &p.OverSubscribe }),
	),
	"shared": whilePending(
		flagSetter("OverSubscribe", func(p *job.Placement) *bool { return &p.OverSubscribe }),
	),

	"stdout":  asSubmission(textSetter(func(j *job.Job) *string { return &j.Batch.Output })),
	"workdir": asSubmission(textSetter(func(j *job.Job) *string { return &j.Batch.WorkDir })),

	"arraytaskthrottle": inAnyState(setThrottle),

	// Burst buffers, features of clusters and threads for the system do not exist here;
	// no node boots for a job.
	"burstbuffer":     inAnyState(notSupported),
	"clusterfeatures": inAnyState(func(*jobChange, string) error { return refusal.Text("Unspecified error") }),
	"delayboot":       inAnyState(setDelayBoot),
	"threadspec":      whilePending(refuseThreadSpec),
}

// MaxNice is the highest nice value, and the lowest with its sign changed (Slurm's
// NICE_OFFSET).
const MaxNice = bounds.MaxNice

func invalidValue(name, v string) error { return malformed(name, v, "Invalid "+name+" value: "+v) }

func setNice(c *jobChange, v string) error {
	n := int64(100) // scontrol update Nice, without a value
	if v != "" {
		var err error
		if n, err = strconv.ParseInt(v, 10, 64); err != nil || n > MaxNice || n < -MaxNice {
			return malformedCount("Nice", v, "Nice value out of range (+/- 2147483645). Value ignored")
		}
	}
	if n < 0 && !c.Operator {
		return refusal.AccessDenied
	}
	c.b.Spec.Job.Nice = int32(n)
	return nil
}

// setSiteFactor sets a number that is added to the job's priority.
func setSiteFactor(c *jobChange, v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	switch {
	case !c.Operator:
		return refusal.AccessDenied
	case err != nil || n > MaxNice || n < -MaxNice:
		return refuseSetting(
			status.CodeInvalidCount, "SiteFactor", v, "SiteFactor value out of range (+/- 2147483645). Value ignored",
		)
	}
	c.b.Spec.Job.SiteFactor = int32(n)
	return nil
}

// setPriority sets the priority in place of the computed one; 0 holds the job. The
// priority that a user sets lasts only if an operator has set one before.
func setPriority(c *jobChange, v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	j := &c.b.Spec.Job
	switch {
	case err != nil || n < 0 || n >= 1<<32-1:
		return invalidValue("Priority", v)
	case n == 0:
		hold(j, c.Operator)
	case j.Hold != "":
		return refusal.JobHeld
	case n > c.Priority && !c.Operator:
		return refusal.AccessDenied
	case c.Operator:
		j.Priority = &n
	default:
		if j.Priority != nil {
			j.Priority = &n
		}
		c.warning = refusal.PriorityNotPersistent
	}
	return nil
}

// hold holds the job. A user's hold does not replace an operator's.
func hold(j *job.Job, operator bool) {
	switch {
	case operator:
		j.Hold = "admin"
	case j.Hold == "":
		j.Hold = "user"
	}
}

func setRequeue(c *jobChange, v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return invalidValue("Requeue", v)
	}
	requeue := n != 0
	c.b.Spec.Job.Batch.Requeue = &requeue
	return nil
}

// setPartition sets the partitions. As in Slurm, empty names beside others do not count.
func setPartition(c *jobChange, v string) error {
	names := value.Names(v)
	unknown := func(name string) bool { return Pending(c.b) && c.Partition(name) == nil }
	if len(names) == 0 || slices.ContainsFunc(names, unknown) {
		return refusal.InvalidPartition
	}
	c.b.Spec.Job.Partitions, c.b.Spec.Partition = names, names[0]
	return nil
}

func setAccount(c *jobChange, v string) error {
	stored, ok := c.Account(v)
	if Pending(c.b) && !ok {
		return refusal.InvalidAccount
	}
	c.b.Spec.Job.Account = stored
	return nil
}

func setQOS(c *jobChange, v string) error {
	stored, ok := c.QOS(v)
	if !ok {
		return refusal.InvalidQOS
	}
	c.b.Spec.Job.QOS = stored
	return nil
}

func setReservation(c *jobChange, v string) error {
	if v != "" && !c.Reservation(v) {
		return refusal.InvalidReservation
	}
	c.b.Spec.Job.Reservation = v
	return nil
}

func setLicenses(c *jobChange, v string) error {
	j := &c.b.Spec.Job
	if v == "" {
		j.Licenses = nil
		return nil
	}
	if option.Apply(option.Sbatch, j, "licenses", v) != nil {
		return refusal.InvalidLicense
	}
	for _, l := range j.Licenses {
		if !c.License(l.Name) {
			return refusal.InvalidLicense
		}
	}
	return nil
}

// setThrottle sets how many tasks of an array run at a time. As in Slurm, any
// other job accepts it without effect.
func setThrottle(c *jobChange, v string) error {
	n, err := value.CountOrZero(v)
	if err != nil && strings.HasPrefix(v, "-") {
		return malformed("ArrayTaskThrottle", v, "Invalid ArrayTaskThrottle value")
	}
	if err != nil {
		return invalidValue("ArrayTaskThrottle", v)
	}
	if a := c.b.Spec.Job.Array; a != nil {
		a.Max = n
		a.Spec = value.ArraySpec(array.Parse(a.Spec), n)
	}
	return nil
}

func setDependency(c *jobChange, v string) error {
	d, err := value.Dependencies(v)
	if err != nil {
		return refusal.DependencyProblem
	}
	// The terms share the set, so that each job is visited once.
	independent := map[int64]bool{}
	for i := range d.Items {
		item := &d.Items[i]
		switch {
		case item.Type == "expand":
			return refusal.NotSupported
		case item.JobID == c.b.Spec.JobID:
			return refusal.DependencyProblem
		case item.JobID != 0 && c.dependsOnJob(item.JobID, independent):
			return refusal.CircularDependency
		}
	}
	c.b.Spec.Job.Dependencies = d
	return nil
}

// dependsOnJob reports whether the job with the id depends, directly or through
// others, on the job that is changed. It adds to independent the jobs that do not.
func (c *jobChange) dependsOnJob(id int64, independent map[int64]bool) bool {
	if id == c.b.Spec.JobID {
		return true
	}
	if independent[id] {
		return false
	}
	independent[id] = true
	other := c.Job(id)
	if other == nil || !Pending(other) {
		return false
	}
	for _, item := range other.Spec.Job.Dependencies.Items {
		if item.JobID != 0 && c.dependsOnJob(item.JobID, independent) {
			return true
		}
	}
	return false
}

func notSupported(*jobChange, string) error { return refusal.NotSupported }

func refuseThreadSpec(c *jobChange, v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	switch {
	case err != nil, n < 0 && c.Operator:
		return invalidValue("ThreadSpec", v)
	case !c.Operator:
		return refusal.AccessDenied
	}
	return refusal.NotSupported
}

// setDelayBoot records how long the job would wait for nodes to boot, which has no
// effect.
func setDelayBoot(c *jobChange, v string) error {
	if option.Apply(option.Sbatch, &c.b.Spec.Job, "delay-boot", v) != nil {
		return malformed("DelayBoot", v, "Invalid DelayBoot value")
	}
	return nil
}
