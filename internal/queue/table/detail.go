package table

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// details fills in the remaining fields of scontrol show job and squeue -O.
func details(j *status.Job, b *v1alpha1.BatchJob) {
	s := &b.Spec.Job
	j.SubmitHost, j.SubmitSID, j.Deadline = s.Batch.SubmitHost, s.Batch.SubmitSID, s.Time.Deadline
	j.AdminComment, j.Extra, j.Prefer = s.AdminComment, s.Extra, s.Placement.Prefer
	j.Network, j.Profile = s.Options["network"], s.Options["profile"]
	j.Switches, j.SwitchesWait = s.Placement.Switches, s.Placement.SwitchesWait
	j.Container = s.Options["container"]
	if len(s.Mail.Types) > 0 {
		j.MailType, j.MailUser = strings.Join(s.Mail.Types, ","), s.Mail.User
	}
	if s.Array != nil {
		j.ArrayMax = s.Array.Max
	}
	geometry(j, &s.Shape)
	perTRES(j, &s.Shape)
	past(j, b)
}

func geometry(j *status.Job, s *job.Shape) {
	j.TmpDisk = s.TmpDisk
	j.MinCPUs = max(s.MinCPUs, max(1, s.CPUsPerTask)*max(1, s.TasksPerNode))
	j.SocketsPerNode, j.CoresPerSocket, j.ThreadsPerCore = s.SocketsPerNode, s.CoresPerSocket, s.ThreadsPerCore
	j.TasksPerSocket, j.TasksPerCore, j.CoreSpec = s.TasksPerSocket, s.TasksPerCore, s.CoreSpec
}

// perTRES fills in requests that are not counted per node.
func perTRES(j *status.Job, s *job.Shape) {
	node, perJob, socket, task := []string{}, []string{}, []string{}, []string{}
	for _, g := range s.GRES {
		switch g.Per {
		case job.PerJob:
			perJob = append(perJob, "gres:"+gres(g))
		case job.PerSocket:
			socket = append(socket, "gres:"+gres(g))
		case job.PerTask:
			task = append(task, "gres:"+gres(g))
		default:
			node = append(node, gres(g))
		}
	}
	j.GRES, j.TRESPerJob = strings.Join(node, ","), strings.Join(perJob, ",")
	j.TRESPerSocket, j.TRESPerTask = strings.Join(socket, ","), strings.Join(task, ",")
	if s.CPUsPerGPU > 0 {
		j.CPUsPerTRES = "gres:gpu:" + strconv.Itoa(int(s.CPUsPerGPU))
	}
	if s.MemPerGPU != nil {
		j.MemPerTRES = "gres:gpu:" + strconv.FormatInt(*s.MemPerGPU, 10)
	}
}

// past fills in the history of the job.
func past(j *status.Job, b *v1alpha1.BatchJob) {
	if j.Eligible != 0 && b.Spec.Job.Hold == "" {
		j.Accrue = j.Eligible
	}
	j.LastSched = j.Start
	if t := unix(b.Status.SuspendTime); t != 0 && j.Start != 0 {
		j.SuspendTime, j.PreSuspend = t, max(0, t-j.Start-b.Status.Suspended)
	}
	if p := b.Status.Preempt; p != nil {
		j.PreemptTime = p.At.Unix()
	}
	if d := b.Status.Derived; d != nil {
		j.DerivedCode, j.DerivedSignal = d.Status, d.Signal
	}
}

// gresOf returns how many of each generic resource the job requests for that number of
// nodes and tasks.
func gresOf(s *job.Shape, nodes, tasks int32) map[string]int64 {
	sum := map[string]int64{}
	for _, g := range s.GRES {
		n := g.Count
		switch g.Per {
		case job.PerJob:
		case job.PerTask:
			n *= int64(max(1, tasks))
		case job.PerSocket:
			n *= int64(max(1, nodes) * max(1, s.SocketsPerNode))
		default:
			n *= int64(max(1, nodes))
		}
		sum[g.Name] += n
	}
	return sum
}

// place returns the job's allocation on each node as text (Layout), and the sum of its
// generic resources.
func place(a *v1alpha1.Allocation) (text string, sum map[string]int64) {
	var out strings.Builder
	sum = map[string]int64{}
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
			sum[g.Name] += g.Count
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
