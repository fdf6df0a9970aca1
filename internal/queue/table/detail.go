package table

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// setDetails fills in the remaining fields of scontrol show job and squeue -O.
func setDetails(j *status.Job, b *v1alpha1.BatchJob) {
	s := &b.Spec.Job
	j.SubmitHost, j.SubmitSID, j.Deadline = s.Batch.SubmitHost, s.Batch.SubmitSID, s.Time.Deadline
	j.AdminComment, j.Extra, j.Prefer = s.AdminComment, s.Extra, joinedFeatures(s.Placement.Prefer)
	j.Network, j.Profile = s.Options["network"], s.Options["profile"]
	j.ClusterFeature = s.Options["cluster-constraint"]
	j.Switches, j.SwitchesWait = s.Placement.Switches, s.Placement.SwitchWait()
	j.Container = s.Options["container"]
	if len(s.Mail.Types) > 0 {
		j.MailType, j.MailUser = strings.Join(s.Mail.Types, ","), s.Mail.User
	}
	if s.Array != nil {
		j.ArrayMax = s.Array.Max
	}
	setGeometry(j, &s.Shape)
	setHint(j, s.Placement.Hint)
	setRecordedOptions(j, s)
	setTRESRequests(j, s)
	setHistory(j, b)
}

func setGeometry(j *status.Job, s *job.Shape) {
	j.TmpDisk = s.TmpDisk
	j.MinCPUs = leastCPUs(s)
	j.SocketsPerNode, j.CoresPerSocket, j.ThreadsPerCore = s.SocketsPerNode, s.CoresPerSocket, s.ThreadsPerCore
	j.TasksPerSocket, j.TasksPerCore = s.TasksPerSocket, s.TasksPerCore // --core-spec has no effect
}

// setHint sets the geometry that --hint implies: one thread of each core and, for jobs
// bound by memory, one core of each socket.
func setHint(j *status.Job, hint string) {
	for word := range strings.SplitSeq(hint, ",") {
		switch word {
		case "memory_bound":
			j.CoresPerSocket, j.ThreadsPerCore = 1, 1
		case "compute_bound", "nomultithread":
			j.ThreadsPerCore = 1
		}
	}
}

// setRecordedOptions sets the options that are shown as they were given.
func setRecordedOptions(j *status.Job, s *job.Job) {
	if bind := s.Options["gpu-bind"]; bind != "" {
		j.TRESBind = "gpu:" + bind
	}
	j.MCSLabel = s.Options["mcs-label"]
	if freq := s.Options["gpu-freq"]; freq != "" {
		j.TRESFreq = "gpu:" + freq
	}
	j.TasksPerTRES, j.SpreadJob = s.Shape.TasksPerGPU, s.Placement.SpreadJob
	j.CPUFreq = cpuFrequency(s.Options["cpu-freq"])
	if strings.EqualFold(s.Options["power"], "level") {
		j.Power = "LEVEL"
	}
	for flag := range strings.SplitSeq(strings.ToLower(s.Options["gres-flags"]), ",") {
		switch flag {
		case "disable-binding":
			j.EnforceBind = "No"
		case "enforce-binding":
			j.EnforceBind = "Yes"
		}
	}
	if kill := s.Batch.KillOnInvalidDep; kill != nil {
		j.KillInvalid = map[bool]string{true: "Yes", false: "No"}[*kill]
	}
	if s.Options["kill-on-invalid-dep"] != "" { // both values were given
		j.KillInvalid = "YesKillOInInvalidDependent=No"
	}
	if s.Options["delay-boot"] == "-1" {
		j.DelayBoot = -1
	} else if n, err := value.Seconds(s.Options["delay-boot"]); err == nil {
		j.DelayBoot = n
	}
}

// setTRESRequests sets the requests for generic resources, as the options have them.
func setTRESRequests(j *status.Job, request *job.Job) {
	s := &request.Shape
	node := append(terms(request.Options["gpus-per-node"], "gpu:"), terms(request.Options["gres"], "")...)
	if len(node) == 0 {
		node = ofScope(s, job.PerNode)
	}
	j.GRES = strings.Join(node, ",")
	for per, field := range map[string]*string{
		job.PerJob: &j.TRESPerJob, job.PerSocket: &j.TRESPerSocket, job.PerTask: &j.TRESPerTask,
	} {
		text, given := request.Options[gpuOptions[per]]
		list := terms(text, "gpu:")
		if !given { // an empty text: --ntasks-per-gpu implies the GPUs
			list = ofScope(s, per)
		}
		if len(list) > 0 {
			*field = "gres:" + strings.Join(list, ",gres:")
		}
	}
	if s.CPUsPerGPU > 0 {
		j.CPUsPerTRES = "gres:gpu:" + strconv.Itoa(int(s.CPUsPerGPU))
	}
	if s.MemPerGPU != nil {
		j.MemPerTRES = "gres:gpu:" + strconv.FormatInt(*s.MemPerGPU, 10)
	}
}

// gpuOptions are the options about GPUs whose text is stored with the job, by scope.
var gpuOptions = map[string]string{
	job.PerJob: "gpus", job.PerSocket: "gpus-per-socket", job.PerTask: "gpus-per-task",
}

// terms returns the terms of a list of generic resources as they were given, each
// with the prefix.
func terms(list, prefix string) []string {
	if list == "" {
		return nil
	}
	var out []string
	for term := range strings.SplitSeq(list, ",") {
		term = strings.TrimPrefix(strings.TrimPrefix(term, "gres:"), "gres/")
		out = append(out, prefix+term)
	}
	return out
}

// ofScope returns the requests of one scope, for jobs without the text of the option.
func ofScope(s *job.Shape, per string) []string {
	var out []string
	for _, g := range s.GRES {
		if g.Per == per || g.Per == "" && per == job.PerNode {
			out = append(out, gres(g))
		}
	}
	return out
}

// setHistory fills in the history of the job.
func setHistory(j *status.Job, b *v1alpha1.BatchJob) {
	if j.Eligible != 0 && b.Spec.Job.Hold == "" {
		j.Accrue = j.Eligible
	}
	j.LastSched = j.Start
	if t := unix(b.Status.SuspendTime); t != 0 && j.Start != 0 {
		suspended := b.Status.Suspended // before t
		if since, ok := suspendedAtEnd(b); ok {
			suspended -= int64(b.Status.EndTime.Sub(since.Time) / time.Second)
			t = since.Unix()
		}
		j.SuspendTime, j.PreSuspend = t, max(0, t-j.Start-suspended)
	}
	if p := b.Status.Preempt; p != nil {
		j.PreemptTime = p.At.Unix()
	}
	if d := b.Status.Derived; d != nil {
		j.DerivedCode, j.DerivedSignal = d.Status, d.Signal
	}
}

// suspendedAtEnd returns since when the job was suspended, if it ended while it was.
func suspendedAtEnd(b *v1alpha1.BatchJob) (since metav1.MicroTime, ok bool) {
	if !b.Status.HasOutcome() || b.Status.EndTime == nil {
		return metav1.MicroTime{}, false
	}
	return v1alpha1.SuspendedAtEnd(b.Status.History)
}

// gresOf returns the generic resources that the job requests for that number of nodes and
// tasks.
func gresOf(s *job.Shape, nodes, tasks int32) deviceCounts {
	sum := deviceCounts{}
	for _, d := range s.GRESDemands() {
		sum.add(d.Name, d.Type, d.Total(s, nodes, tasks))
	}
	return sum
}

// layoutOf returns the job's allocation on each node as text (Layout), and the sum of its
// generic resources.
func layoutOf(a *v1alpha1.Allocation) (text string, sum deviceCounts) {
	var out strings.Builder
	sum = deviceCounts{}
	for i := range a.Nodes {
		n := &a.Nodes[i]
		if i > 0 {
			out.WriteByte(';')
		}
		out.WriteString(n.Name + " " + n.CPUIDs + " " + strconv.FormatInt(n.Memory, 10) + " ")
		for k, g := range n.GRES {
			if k > 0 {
				out.WriteByte(',')
			}
			out.WriteString(heldGRES(g))
			sum.add(g.Name, g.Type, g.Count)
		}
	}
	return out.String(), sum
}

func heldGRES(g v1alpha1.GRESAllocation) string {
	text := g.Name
	if g.Type != "" {
		text += ":" + g.Type
	}
	text += ":" + strconv.FormatInt(g.Count, 10)
	if g.Indexes != "" {
		text += "(IDX:" + g.Indexes + ")"
	}
	return text
}

// leastCPUs returns how many CPUs of each node the job needs. Tasks with --overcommit share
// the CPUs of one.
func leastCPUs(s *job.Shape) int32 {
	tasks := max(1, s.TasksPerNode)
	if s.Overcommit || s.Tasks == 1 {
		tasks = 1
	}
	return max(s.MinCPUs, max(1, s.CPUsPerTask)*tasks)
}
