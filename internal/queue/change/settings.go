package change

import (
	"errors"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/value"
)

// settings are scontrol's parameters of a job (scontrol(1), update job), in
// lower case, with the other names they have.
var settings = map[string]setting{
	"timelimit": {shape: true, set: timeLimit},
	"endtime":   {phase: running, set: endTime},
	"timemin":   {set: timeMin},
	"starttime": {phase: waiting, set: begin}, "eligibletime": {phase: waiting, set: begin},
	"deadline": {set: deadline},
	"nice":     {set: nice}, "priority": {set: priority},

	"jobname": {set: name}, "name": {set: name},
	"comment":      {set: func(c *changing, v string) error { c.b.Spec.Job.Comment = v; return nil }},
	"admincomment": {set: func(c *changing, v string) error { c.b.Spec.Job.AdminComment = v; return nil }},
	"wckey":        {phase: waiting, set: func(c *changing, v string) error { c.b.Spec.Job.WCKey = v; return nil }},
	"mailuser":     {set: func(c *changing, v string) error { c.b.Spec.Job.Mail.User = v; return nil }},
	"mailtype":     {set: given("mail-type", "Invalid MailType")},
	"requeue":      {set: requeue},

	"partition":       {phase: waiting, shape: true, set: partition},
	"account":         {phase: waiting, shape: true, set: account},
	"qos":             {set: qos, shape: true},
	"reservation":     {phase: waiting, shape: true, set: reservation},
	"reservationname": {phase: waiting, shape: true, set: reservation},
	"licenses":        {phase: waiting, shape: true, set: licenses},
	"dependency":      {phase: waiting, set: dependency},

	"numnodes": {phase: waiting, shape: true, set: nodes}, "reqnodes": {phase: waiting, shape: true, set: nodes},
	"numcpus": {phase: waiting, shape: true, set: cpus("NumCPUs")}, "reqcores": {phase: waiting, shape: true, set: cpus("ReqCores")},
	"mincpus":  {phase: waiting, shape: true, set: cpus("NumCPUs")},
	"numtasks": {phase: waiting, shape: true, set: counted("NumTasks", func(s *job.Shape) *int32 { return &s.Tasks })},
	"reqprocs": {phase: waiting, shape: true, set: counted("NumTasks", func(s *job.Shape) *int32 { return &s.Tasks })},

	"cpuspertask":    {phase: waiting, shape: true, set: counted("CPUsPerTask", func(s *job.Shape) *int32 { return &s.CPUsPerTask })},
	"ntaskspernode":  {phase: waiting, shape: true, set: counted("NtasksPerNode", func(s *job.Shape) *int32 { return &s.TasksPerNode })},
	"mincpusnode":    {phase: waiting, shape: true, set: counted("MinCPUsNode", func(s *job.Shape) *int32 { return &s.MinCPUs })},
	"minmemorynode":  {phase: waiting, shape: true, set: memory("MinMemoryNode", func(s *job.Shape) **int64 { return &s.MemPerNode })},
	"minmemorycpu":   {phase: waiting, shape: true, set: memory("MinMemoryCPU", func(s *job.Shape) **int64 { return &s.MemPerCPU })},
	"mintmpdisknode": {phase: waiting, shape: true, set: tmpDisk},
	"gres":           {phase: waiting, shape: true, set: gres}, "trespernode": {phase: waiting, shape: true, set: gres},
	"corespec": {phase: waiting, set: given("core-spec", "Invalid CoreSpec value")},

	"features":    {phase: waiting, shape: true, set: features},
	"reqnodelist": {phase: waiting, shape: true, set: nodeList(func(p *job.Placement) *[]string { return &p.NodeList })},
	"nodelist":    {phase: waiting, shape: true, set: nodeList(func(p *job.Placement) *[]string { return &p.NodeList })},
	"excnodelist": {phase: waiting, shape: true, set: nodeList(func(p *job.Placement) *[]string { return &p.Exclude })},
	"contiguous":  {phase: waiting, set: yes("Contiguous", func(p *job.Placement) *bool { return &p.Contiguous })},
	"switches":    {phase: waiting, set: given("switches", "Invalid Switches value")},

	"oversubscribe": {phase: waiting, set: yes("OverSubscribe", func(p *job.Placement) *bool { return &p.OverSubscribe })},
	"shared":        {phase: waiting, set: yes("OverSubscribe", func(p *job.Placement) *bool { return &p.OverSubscribe })},

	"stdout":  {phase: waiting, shape: true, set: func(c *changing, v string) error { c.b.Spec.Job.Batch.Output = v; return nil }},
	"workdir": {phase: waiting, shape: true, set: func(c *changing, v string) error { c.b.Spec.Job.Batch.WorkDir = v; return nil }},

	"arraytaskthrottle": {set: throttle},

	"burstbuffer": {set: impossible}, "delayboot": {set: delayBoot}, "sitefactor": {phase: waiting, set: siteFactor},
	"threadspec": {phase: waiting, set: threadSpec}, "clusterfeatures": {set: impossible},
}

func invalid(what, v string) error { return unread("Invalid " + what + " value: " + v) }

func name(c *changing, v string) error {
	c.b.Spec.Job.Name = v
	return nil
}

// timeLimit reads a limit, or what is to be added to or taken from the present
// one. Only operators raise that of a job that runs.
func timeLimit(c *changing, v string) error {
	l, err := readLimit(v)
	if err != nil {
		return err
	}
	m, err := l.from(c.TimeLimit)
	if err != nil {
		return err
	}
	c.b.Spec.Job.Time.Limit = m
	if raised := c.TimeLimit != job.Unlimited && (m == job.Unlimited || m > c.TimeLimit); raised && Live(c.b) && !c.Operator {
		return refusal.AccessDenied
	}
	return nil
}

// endTime sets the limit so that a running job ends then.
func endTime(c *changing, v string) error {
	t, err := value.Instant(v, c.Now)
	if err != nil {
		return refusal.Text("Invalid EndTime value: " + v)
	}
	st := &c.b.Status
	if st.StartTime == nil || !Live(c.b) {
		return nil // refused for its state
	}
	if t.Before(c.Now) {
		return refusal.InvalidTime
	}
	m := int32((t.Unix() - st.StartTime.Unix() - st.Suspended + 59) / 60)
	if c.TimeLimit != job.Unlimited && m > c.TimeLimit && !c.Operator {
		return refusal.AccessDenied
	}
	c.b.Spec.Job.Time.Limit = max(m, 1)
	return nil
}

func timeMin(c *changing, v string) error {
	m, err := value.Minutes(v)
	switch {
	case err != nil:
		return unread("Invalid TimeMin value")
	case !Pending(c.b):
		return nil // of no consequence any more
	}
	c.b.Spec.Job.Time.Min = max(m, 0)
	return nil
}

func begin(c *changing, v string) error {
	t, err := value.Instant(v, c.Now)
	if err != nil {
		return unread("Invalid StartTime value: " + v)
	}
	c.b.Spec.Job.Time.Begin = t.Unix()
	return nil
}

func deadline(c *changing, v string) error {
	t, err := value.Instant(v, c.Now)
	switch {
	case err != nil:
		return unread("Invalid Deadline value: " + v)
	case !t.After(c.Now):
		return refusal.InvalidTime
	case !c.Operator:
		return refusal.AccessDenied
	}
	c.b.Spec.Job.Time.Deadline = t.Unix()
	return nil
}

// Bounds of nice (Slurm's NICE_OFFSET).
const MaxNice = 1<<31 - 3

func nice(c *changing, v string) error {
	n := int64(100) // "Nice" without a value
	if v != "" {
		var err error
		if n, err = strconv.ParseInt(v, 10, 64); err != nil || n > MaxNice || n < -MaxNice {
			return unread("Nice value out of range (+/- 2147483645). Value ignored")
		}
	}
	if n < 0 && !c.Operator {
		return refusal.AccessDenied
	}
	c.b.Spec.Job.Nice = int32(n)
	return nil
}

// siteFactor is added to the priority as it is.
func siteFactor(c *changing, v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n > MaxNice || n < -MaxNice {
		return refusal.Text("SiteFactor value out of range (+/- 2147483645). Value ignored")
	}
	c.b.Spec.Job.SiteFactor = int32(n)
	return nil
}

// priority sets it by hand. 0 holds the job.
func priority(c *changing, v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	j := &c.b.Spec.Job
	switch {
	case err != nil || n < 0 || n >= 1<<32-1:
		return invalid("Priority", v)
	case n == 0:
		hold(j, c.Operator)
	case n > c.Priority && !c.Operator:
		return refusal.AccessDenied
	case j.Hold != "":
		return refusal.JobHeld
	case c.Operator:
		j.Priority = &n
	default:
		if j.Priority != nil {
			j.Priority = &n
		}
		c.warned = refusal.PriorityNotPersistent
	}
	return nil
}

func hold(j *job.Job, operator bool) {
	switch {
	case operator:
		j.Hold = "admin"
	case j.Hold == "":
		j.Hold = "user"
	}
}

func requeue(c *changing, v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil {
		return invalid("Requeue", v)
	}
	on := n != 0
	c.b.Spec.Job.Batch.Requeue = &on
	return nil
}

func partition(c *changing, v string) error {
	names := strings.Split(v, ",")
	for _, n := range names {
		if Pending(c.b) && c.Partition(n) == nil {
			return refusal.InvalidPartition
		}
	}
	if names = value.Names(v); len(names) == 0 {
		return refusal.InvalidPartition
	}
	c.b.Spec.Job.Partitions, c.b.Spec.Partition = names, names[0]
	return nil
}

func account(c *changing, v string) error {
	if Pending(c.b) && !c.Account(v) {
		return refusal.InvalidAccount
	}
	c.b.Spec.Job.Account = v
	return nil
}

func qos(c *changing, v string) error {
	if !c.QOS(v) {
		return refusal.InvalidQOS
	}
	c.b.Spec.Job.QOS = v
	return nil
}

func reservation(c *changing, v string) error {
	if v != "" && !c.Reservation(v) {
		return refusal.InvalidReservation
	}
	c.b.Spec.Job.Reservation = v
	return nil
}

func licenses(c *changing, v string) error {
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

// given reads v as the option of sbatch with that name.
func given(name, message string) func(*changing, string) error {
	return func(c *changing, v string) error {
		if option.Apply(option.Sbatch, &c.b.Spec.Job, name, v) != nil {
			return unread(message + ": " + v)
		}
		return nil
	}
}

func throttle(c *changing, v string) error {
	n, err := value.CountOrZero(v)
	a := c.b.Spec.Job.Array
	switch {
	case err != nil:
		return invalid("ArrayTaskThrottle", v)
	case a == nil:
		return nil // Slurm takes it for any job
	}
	a.Max = n
	a.Spec = value.ArraySpec(array.Parse(a.Spec), n)
	return nil
}

func dependency(c *changing, v string) error {
	d, err := value.Dependencies(v)
	if err != nil {
		return refusal.DependencyProblem
	}
	seen := map[int64]bool{} // of all terms together: a job that does not wait for this one needs one visit
	for i := range d.Items {
		switch item := &d.Items[i]; {
		case item.Type == "expand":
			return refusal.NotSupported
		case item.JobID == c.b.Spec.JobID:
			return refusal.DependencyProblem
		case item.JobID != 0 && c.reaches(item.JobID, seen):
			return refusal.CircularDependency
		}
	}
	c.b.Spec.Job.Dependencies = d
	return nil
}

// reaches reports whether the job with that id waits, directly or through others,
// for the one that is changed. seen are jobs that do not.
func (c *changing) reaches(id int64, seen map[int64]bool) bool {
	if id == c.b.Spec.JobID {
		return true
	}
	if seen[id] {
		return false
	}
	seen[id] = true
	other := c.Job(id)
	if other == nil || !Pending(other) {
		return false
	}
	for _, item := range other.Spec.Job.Dependencies.Items {
		if item.JobID != 0 && c.reaches(item.JobID, seen) {
			return true
		}
	}
	return false
}

func nodes(c *changing, v string) error {
	if Live(c.b) && strings.TrimLeft(v, "0") != "" && (!strings.Contains(v, "-") || falls(v)) {
		return refusal.NotSupported // the size of a job that runs
	}
	least, most, err := value.Nodes(v)
	s := &c.b.Spec.Job.Shape
	switch count := strings.TrimLeft(v, "0"); {
	case count == "", falls(v), Pending(c.b) && err == nil && s.Tasks > 0 && least > s.Tasks:
		return refusal.InvalidNodeCount
	case err != nil:
		var count *value.CountError
		if errors.As(err, &count) {
			return refusal.Text(`Invalid numeric value "` + v + `" for requested node count.`)
		}
		return invalid("NumNodes", v)
	}
	s.MinNodes, s.MaxNodes = least, most
	return nil
}

// falls tells whether v is a range whose first number is the larger one.
func falls(v string) bool {
	first, last, found := strings.Cut(v, "-")
	a, errA := strconv.ParseUint(first, 10, 31)
	b, errB := strconv.ParseUint(last, 10, 31)
	return found && errA == nil && errB == nil && a > b
}

// cpus sets the CPUs in all: tasks of one CPU, as many as it takes.
func cpus(what string) func(*changing, string) error {
	return func(c *changing, v string) error {
		first, _, _ := strings.Cut(v, "-")
		n, err := value.Count(first)
		switch {
		case err != nil && what == "NumCPUs":
			return unread(`Invalid numeric value "` + v + "\" for NumCPUs.\nInvalid NumCPUs value: " + v)
		case err != nil:
			return invalid(what, v)
		}
		s := &c.b.Spec.Job.Shape
		s.Tasks = max(1, (n+max(s.CPUsPerTask, 1)-1)/max(s.CPUsPerTask, 1))
		return nil
	}
}

func counted(what string, field func(*job.Shape) *int32) func(*changing, string) error {
	return func(c *changing, v string) error {
		n, err := value.Count(v)
		switch {
		case err != nil && v == "0" && what == "NumTasks" && Pending(c.b):
			return refusal.InvalidTaskCount
		case err != nil && v == "0" && what == "NumTasks":
			return nil // refused for its state
		case err != nil:
			return invalid(what, v)
		}
		*field(&c.b.Spec.Job.Shape) = n
		return nil
	}
}

func memory(what string, field func(*job.Shape) **int64) func(*changing, string) error {
	return func(c *changing, v string) error {
		n, err := value.Megabytes(v)
		if err != nil {
			return invalid(what, v)
		}
		s := &c.b.Spec.Job.Shape
		s.MemPerNode, s.MemPerCPU, s.MemPerGPU = nil, nil, nil
		*field(s) = &n
		return nil
	}
}

func tmpDisk(c *changing, v string) error {
	n, err := value.Megabytes(v)
	if err != nil {
		return invalid("MinTmpDiskNode", v)
	}
	c.b.Spec.Job.Shape.TmpDisk = n
	return nil
}

// gres replaces what is wanted of generic resources on each node.
func gres(c *changing, v string) error {
	l, err := value.GRES(strings.TrimPrefix(v, "gres:"), job.PerNode)
	if err != nil {
		return refusal.InvalidGRES
	}
	c.b.Spec.Job.Shape.GRES = l
	return nil
}

func features(c *changing, v string) error {
	c.b.Spec.Job.Placement.Constraint = v
	return nil
}

func nodeList(field func(*job.Placement) *[]string) func(*changing, string) error {
	return func(c *changing, v string) error {
		names, err := hostlist.Expand(v)
		if err != nil {
			return refusal.InvalidNode
		}
		for _, n := range names {
			if !c.Node(n) {
				return refusal.InvalidNode
			}
		}
		*field(&c.b.Spec.Job.Placement) = names
		return nil
	}
}

func yes(what string, field func(*job.Placement) *bool) func(*changing, string) error {
	return func(c *changing, v string) error {
		switch strings.ToUpper(v) {
		case "1", "YES":
			*field(&c.b.Spec.Job.Placement) = true
		case "0", "NO", "OK":
			*field(&c.b.Spec.Job.Placement) = false
		default:
			return invalid(what, v)
		}
		return nil
	}
}
