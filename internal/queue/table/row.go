package table

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	alter "github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// newRow returns the row of a BatchJob. split are the jobs that were split off it.
func newRow(b *v1alpha1.BatchJob, split []*v1alpha1.BatchJob, dir *directory.Directory) *Row {
	r := &Row{}
	r.set(b, split, dir)
	r.fixed = encodeFixed(&r.Job)
	return r
}

// set sets all of r but its encoded form.
func (r *Row) set(b *v1alpha1.BatchJob, split []*v1alpha1.BatchJob, dir *directory.Directory) {
	r.Held, r.Final = b.Spec.Job.Hold, b.IsFinal()
	j := &r.Job
	j.ID, j.Name, j.Namespace, j.Object = b.Spec.JobID, b.Spec.Job.Name, b.Namespace, b.Name
	setIdentity(j, b, dir)
	setPolicy(j, b, dir)
	setArray(r, b, split)
	switch {
	case j.State == v1alpha1.StatePending || j.State == v1alpha1.StateSpecialExit ||
		j.State == v1alpha1.StateReservationDeleted:
	case j.State == v1alpha1.StateCancelled && b.Status.StartTime == nil &&
		j.Reason != status.ReasonDependencyNeverSatisfied: // undecided when the job was cancelled
	case j.Reason == status.ReasonDependencyNeverSatisfied:
		j.Dependency = strings.ReplaceAll(j.Dependency, "(unfulfilled)", "(failed)")
	default:
		j.Dependency = ""
	}
	if id := array.HetID(b); id != 0 {
		j.HetJobID, j.HetOffset = id, b.Spec.Job.Het.Offset
		j.HetJobSet = strconv.FormatInt(id, 10) + "-" + strconv.FormatInt(id+int64(b.Spec.Job.Het.Size)-1, 10)
	}
	part := dir.Partition(partitionOf(b))
	setTimes(j, b, part)
	setRequest(j, &b.Spec.Job)
	if sh := &b.Spec.Job.Shape; j.State == v1alpha1.StateCancelled && b.Status.StartTime == nil && sh.Tasks == 0 &&
		sh.TasksPerNode == 0 {
		j.Tasks = 0 // Slurm has not computed them
	}
	setMemory(j, &b.Spec.Job, part, dir)
	bill := billing(b, part, dir)
	least := b.Spec.Job.LeastNodes()
	devices := gresOf(&b.Spec.Job.Shape, least, j.Tasks)
	mem := requestedMemory(j, least)
	if perGPU := b.Spec.Job.Shape.MemPerGPU; perGPU != nil && *perGPU > 0 {
		mem = *perGPU * devices["gpu"]
	}
	j.TRESReq = tres(j.CPUs, mem, least, devices, bill)
	if a := b.Status.Allocation; a != nil && len(a.Nodes) > 0 {
		r.Hosts = setAllocation(j, a, bill)
	} else {
		j.TRES = j.TRESReq
		j.Nodes = max(j.Nodes, spread(&b.Spec.Job.Shape))
	}
	setDetails(j, b)
	setFiles(j, b)
	setOutcome(j, b)
}

// encodeFixed returns what Row.fixed has of a job, in no more memory than its text needs.
func encodeFixed(j *status.Job) []byte {
	var buf [2048]byte
	return bytes.Clone(appendFields(append(buf[:0], '{'), j, fixedFields))
}

// parts returns the partitions of the row's job.
func (r *Row) parts() []string { return strings.Split(r.Partition, ",") }

func setIdentity(j *status.Job, b *v1alpha1.BatchJob, dir *directory.Directory) {
	j.User = b.Spec.User
	if u := dir.User(b.Spec.User); u != nil {
		j.UID, j.GID = u.Spec.UID, u.Spec.GID
		for _, g := range u.Spec.Groups {
			if g.GID == u.Spec.GID {
				j.Group = g.Name
			}
		}
	}
	if g := b.Spec.Job.Batch.Group; g != nil {
		j.Group, j.GID = g.Name, g.GID
	}
}

func partitionOf(b *v1alpha1.BatchJob) string {
	if b.Status.Partition != "" {
		return b.Status.Partition
	}
	return b.Spec.Partition
}

func setPolicy(j *status.Job, b *v1alpha1.BatchJob, dir *directory.Directory) {
	s := &b.Spec.Job
	j.Account, j.QOS, j.Nice = s.Account, s.QOS, s.Nice
	j.Partition = partitionOf(b)
	if b.Status.Partition == "" && len(s.Partitions) > 0 {
		j.Partition = strings.Join(s.Partitions, ",")
	}
	j.State, j.Reason = b.Status.State, b.Status.Reason
	if j.State == "" {
		j.State = v1alpha1.StatePending
	}
	if j.Priority = b.Status.Priority; s.Priority != nil {
		j.Priority = *s.Priority
	}
	begun := b.Status.StartTime != nil
	if j.State == v1alpha1.StatePending || alter.Live(b) || j.State == v1alpha1.StateCancelled && !begun {
		if r := job.HeldReason(s.Hold); r != "" {
			j.Reason, j.Priority = r, 0
		}
		switch {
		case j.State != v1alpha1.StatePending:
		case s.Hold == "special" || s.Hold == job.HoldSpecial:
			j.State = v1alpha1.StateSpecialExit
		case strings.HasPrefix(s.Hold, job.HoldDeleted):
			j.State = v1alpha1.StateReservationDeleted
		}
	}
	if j.Reason == "" {
		j.Reason = "None"
	}
	j.Dependency = dependency(s.Dependencies, dir.IsArray)
	j.Comment, j.WCKey, j.Reservation = s.Comment, s.WCKey, cmp.Or(b.Status.Reservation, s.Reservation)
	j.Restarts, j.Message = b.Status.Restarts, b.Status.Message
	for i, l := range s.Licenses {
		if i > 0 {
			j.Licenses += ","
		}
		j.Licenses += l.Name + ":" + strconv.Itoa(int(l.Count))
	}
}

// setArray fills in which tasks of an array the row represents.
func setArray(r *Row, b *v1alpha1.BatchJob, split []*v1alpha1.BatchJob) {
	r.ArrayJobID = array.ID(b)
	if a := b.Spec.Job.Array; a != nil {
		r.ArrayMax = a.Max
	}
	if _, t, ok := array.Task(b); ok {
		r.Task = &t.Index
		r.ArrayTaskID = strconv.Itoa(int(t.Index))
		return
	}
	if r.ArrayJobID != 0 {
		r.Rest = array.Rest(b, split)
		r.ArrayTaskID, r.ArrayWhole = value.ArraySpec(r.Rest, r.ArrayMax), true
	}
}

func dependency(d job.Dependencies, isArray func(int64) bool) string {
	sep := ","
	if d.Any {
		sep = "?"
	}
	terms := make([]string, 0, len(d.Items))
	for _, t := range d.Items {
		text := t.Type
		if t.JobID != 0 {
			text += ":" + strconv.FormatInt(t.JobID, 10)
		}
		switch {
		case t.AllTask, t.Task == nil && t.JobID != 0 && isArray(t.JobID):
			text += "_*"
		case t.Task != nil:
			text += "_" + strconv.Itoa(int(*t.Task))
		}
		if t.Delay != 0 {
			text += "+" + strconv.Itoa(int(t.Delay))
		}
		terms = append(terms, text+"(unfulfilled)")
	}
	return strings.Join(terms, sep)
}

func unix(t *metav1.MicroTime) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// placed returns when the job got its allocation; 0: it has none.
func placed(b *v1alpha1.BatchJob) int64 {
	for _, h := range b.Status.History {
		if h.State == v1alpha1.StateConfiguring {
			return h.At.Unix()
		}
	}
	return unix(b.Status.StartTime)
}

func setTimes(j *status.Job, b *v1alpha1.BatchJob, part *v1alpha1.Partition) {
	j.Submit = unix(b.Spec.SubmitTime)
	if j.Submit == 0 {
		j.Submit = b.CreationTimestamp.Unix()
	}
	j.Start, j.End = unix(b.Status.StartTime), unix(b.Status.EndTime)
	if since, ok := suspendedAtEnd(b); ok {
		j.End = since.Unix()
	}
	j.Eligible = b.Status.EligibleSecond()
	switch begin := b.Spec.Job.Time.Begin; {
	case j.Start == 0 && b.Spec.Job.Hold != "":
		j.Eligible = begin // unknown without one
	case j.Eligible == 0 && len(b.Spec.Job.Dependencies.Items) > 0:
		// The moment at which the last dependency was satisfied is not stored.
		j.Eligible = max(begin, placed(b))
	case j.Eligible == 0:
		j.Eligible = max(j.Submit, begin)
	}
	if j.Start == 0 && b.Status.State == v1alpha1.StateCancelled {
		j.Start = j.End // it was cancelled while it waited, and Slurm shows that moment
	}
	j.TimeLimit, j.TimeMin = TimeLimit(b, part), b.Spec.Job.Time.Min
	t := &b.Spec.Job.Time
	if t.Deadline != 0 && t.Min == 0 && t.Limit == 0 && requestedLimit(b, part) == job.Unlimited {
		j.TimeMin = 1 // such a job gets the time until its deadline, and at least a minute
	}
	if j.End == 0 && j.Start != 0 && j.TimeLimit != job.Unlimited {
		j.End = j.Start + int64(j.TimeLimit)*60 + b.Status.Suspended
	}
}

// TimeLimit returns the effective limit of a job, in minutes, or job.Unlimited: the one
// set at placement, the requested one, or the partition's default. part may be nil.
func TimeLimit(b *v1alpha1.BatchJob, part *v1alpha1.Partition) int32 {
	placed := b.Status.State != "" && b.Status.State != v1alpha1.StatePending
	if placed && b.Status.TimeLimit != 0 {
		return b.Status.TimeLimit
	}
	return requestedLimit(b, part)
}

// requestedLimit returns the limit that the job requests or else that of the partition, in
// minutes, or job.Unlimited. part may be nil.
func requestedLimit(b *v1alpha1.BatchJob, part *v1alpha1.Partition) int32 {
	candidates := []int32{b.Spec.Job.Time.Limit}
	if part != nil {
		candidates = append(candidates, part.Spec.DefaultTime, part.Spec.MaxTime)
	}
	for _, minutes := range candidates {
		if minutes != 0 {
			return minutes
		}
	}
	return job.Unlimited
}

// setRequest fills in what the job requests: nodes, CPUs, tasks.
func setRequest(j *status.Job, s *job.Job) {
	sh := &s.Shape
	j.Tasks, j.CPUsPerTask, j.TasksPerNode = sh.Tasks, max(sh.CPUsPerTask, 1), sh.TasksPerNode
	j.Nodes, j.MaxNodes = s.LeastNodes(), sh.MaxNodes
	switch {
	case j.Tasks == 0 && sh.TasksPerNode == 0 && sh.MaxNodes > sh.MinNodes:
		// In Slurm, a range of nodes alone requests the CPUs of one task.
		j.Tasks, j.CPUs = j.Nodes, j.CPUsPerTask
	case j.Tasks == 0:
		j.Tasks = j.Nodes * max(sh.TasksPerNode, 1)
	default:
		if sh.TasksPerNode > 0 {
			j.Nodes = max(j.Nodes, j.Tasks/sh.TasksPerNode)
		}
		if j.MaxNodes > j.Tasks {
			j.MaxNodes = j.Tasks
		}
	}
	switch {
	case sh.Overcommit:
		j.CPUs = max(sh.MinNodes, int32(len(s.Placement.NodeList)), 1)
	case j.CPUs == 0:
		j.CPUs = j.Tasks * j.CPUsPerTask
	}
	p := &s.Placement
	j.Features, j.Contiguous = joinedFeatures(p.Constraint), p.Contiguous
	j.ReqNodes = cmp.Or(s.Options["nodelist"], hostlist.FoldSorted(p.NodeList)) // see scontrol update
	j.ExcNodes = cmp.Or(s.Options["exclude"], hostlist.FoldSorted(p.Exclude))
	switch {
	case p.Exclusive == "node":
		j.OverSubscribe = "NO"
	case p.Exclusive == "user":
		j.OverSubscribe = "USER"
	case p.OverSubscribe:
		j.OverSubscribe = "YES"
	default:
		j.OverSubscribe = "OK"
	}
}

// spread returns the number of nodes that Slurm shows for a pending job with tasks of
// several CPUs (-c): as if each node had the rounded-up share of the tasks. -N2 -n3 -c2
// shows 3, and starts on 2. 0: as many as requested.
func spread(sh *job.Shape) int32 {
	if sh.CPUsPerTask < 2 || sh.TasksPerNode > 0 || sh.Tasks == 0 {
		return 0
	}
	each := max(1, sh.Tasks/max(1, sh.MinNodes))
	return (sh.Tasks + each - 1) / each
}

func gres(g job.GRES) string {
	text := g.Name
	if g.Type != "" {
		text += ":" + g.Type
	}
	return text + ":" + strconv.FormatInt(g.Count, 10)
}

func setMemory(j *status.Job, s *job.Job, part *v1alpha1.Partition, dir *directory.Directory) {
	limits := []v1alpha1.MemoryLimits{dir.Parameters().MemoryLimits}
	if part != nil {
		limits = slices.Insert(limits, 0, part.Spec.MemoryLimits)
	}
	switch {
	case s.Shape.MemPerNode != nil:
		j.MinMemory = *s.Shape.MemPerNode
		return
	case s.Shape.MemPerCPU != nil:
		j.MinMemory, j.MemoryPerCPU = *s.Shape.MemPerCPU, true
		return
	}
	for _, l := range limits {
		switch {
		case l.DefMemPerCPU != nil:
			j.MinMemory, j.MemoryPerCPU = *l.DefMemPerCPU, true
			return
		case l.DefMemPerNode != nil:
			j.MinMemory = *l.DefMemPerNode
			return
		}
	}
}

func requestedMemory(j *status.Job, nodes int32) int64 {
	if j.MemoryPerCPU {
		return j.MinMemory * int64(j.CPUs)
	}
	return j.MinMemory * int64(nodes)
}

// setAllocation fills in the allocation and returns the names of its nodes.
func setAllocation(j *status.Job, a *v1alpha1.Allocation, bill biller) []string {
	hosts := make([]string, 0, len(a.Nodes))
	var cpus int32
	var mem int64
	for i := range a.Nodes {
		hosts = append(hosts, a.Nodes[i].Name)
		cpus += a.Nodes[i].CPUs
		mem += a.Nodes[i].Memory
	}
	j.Nodes, j.CPUs = int32(len(hosts)), cpus
	j.NodeList, j.BatchHost = hostlist.Fold(hosts), hosts[0]
	var devices deviceCounts
	j.Layout, devices = layoutOf(a)
	j.TRES = tres(cpus, mem, j.Nodes, devices, bill)
	return hosts
}

func setFiles(j *status.Job, b *v1alpha1.BatchJob) {
	s := &b.Spec.Job.Batch
	j.Command, j.WorkDir, j.NoBatch = s.Command, s.WorkDir, s.Client != ""
	names := env.PatternValues{
		JobID: b.Spec.JobID, Batch: true, JobName: b.Spec.Job.Name, User: b.Spec.User, Node: j.BatchHost,
	}
	if id, t, ok := array.Task(b); ok {
		names.ArrayJobID, names.ArrayTask = id, t.Index
	}
	output := s.Output
	if output == "" {
		if output = env.DefaultOutput; j.ArrayJobID != 0 {
			output = env.DefaultArrayOutput
		}
	}
	place := func(pattern string) string { return names.Shown(s.WorkDir, pattern) }
	if j.BatchHost != "" { // scontrol of Slurm never shows this: where the file is
		place = func(pattern string) string { return names.Path(s.WorkDir, pattern) }
	}
	j.StdOut = place(output)
	if j.StdErr = j.StdOut; s.Error != "" {
		j.StdErr = place(s.Error)
	}
	if j.StdIn = "/dev/null"; s.Input != "" {
		j.StdIn = place(s.Input)
	}
}

func setOutcome(j *status.Job, b *v1alpha1.BatchJob) {
	if c := b.Status.ExitCode; c != nil {
		j.ExitCode, j.Signal = c.Status, c.Signal
	}
	if n := len(b.Status.Past); n > 0 && j.State != b.Status.State ||
		n > 0 && b.Spec.Job.Hold == job.HoldRequeue && alter.Pending(b) {
		if c := b.Status.Past[n-1].ExitCode; c != nil { // of the attempt before it was held
			j.ExitCode, j.Signal = c.Status, c.Signal
		}
	}
	j.Requeue = b.Spec.Job.Batch.Requeue == nil || *b.Spec.Job.Batch.Requeue
}

// joinedFeatures returns features with the operator that Slurm has for commas.
func joinedFeatures(text string) string { return strings.ReplaceAll(text, ",", "&") }
