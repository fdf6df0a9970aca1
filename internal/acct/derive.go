package acct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// People answers who a user is; ok is false for somebody unknown.
type People interface {
	UserID(name string) (uid int64, ok bool)
}

// Records are the records of a job as its object tells: earlier runs first,
// the present one last. row is the job's row in the queue.
func Records(b *v1alpha1.BatchJob, row *status.Job, cluster string, who People) []status.Record {
	base := request(b, row, cluster)
	out := make([]status.Record, 0, len(b.Status.Past)+1)
	for i := range b.Status.Past {
		out = append(out, run(base, &b.Status.Past[i]))
	}
	if n := len(b.Status.Past); n > 0 {
		base.Submit = seconds(&b.Status.Past[n-1].End) // it came back to the queue
		base.Eligible = max(base.Eligible, base.Submit)
	}
	return append(out, present(base, b, row, who))
}

// request is what was asked for, which is the same for every run.
func request(b *v1alpha1.BatchJob, row *status.Job, cluster string) status.Record {
	j := &b.Spec.Job
	task := row.ArrayTaskID
	if row.ArrayWhole && !strings.ContainsAny(task, ",-:%") {
		task = "[" + task + "]" // one task that is not split off
	}
	return status.Record{
		UID: string(b.UID), ID: row.ID, ArrayJobID: row.ArrayJobID, ArrayTaskID: task,
		HetJobID: row.HetJobID, HetOffset: row.HetOffset, Cluster: cluster,
		Name: row.Name, User: row.User, UserID: row.UID, Group: row.Group, GroupID: row.GID,
		Account: row.Account, QOS: row.QOS, Partition: row.Partition, WCKey: row.WCKey,
		Submit: row.Submit, Eligible: row.Eligible, TimeLimit: row.TimeLimit, Priority: row.Priority,
		ReqNodes: askedNodes(row), ReqCPUs: row.CPUs, ReqMem: row.MinMemory, ReqMemPerCPU: row.MemoryPerCPU,
		WorkDir: j.Batch.WorkDir, SubmitLine: j.Batch.SubmitLine, Comment: j.Comment, AdminComment: j.AdminComment,
		Constraints: j.Placement.Constraint, Container: j.Batch.Container["path"], Reservation: row.Reservation, Licenses: row.Licenses,
		Batch: batch(b), ReqTRES: sorted(requested(b, row)),
	}
}

// batch tells whether the job runs a script. The stored object has none any
// more; salloc and srun say that they wait for the allocation.
func batch(b *v1alpha1.BatchJob) bool { return b.Spec.Job.Batch.Client == "" }

func present(r status.Record, b *v1alpha1.BatchJob, row *status.Job, who People) status.Record {
	st := &b.Status
	r.Restarts, r.State, r.SystemComment = st.Restarts, baseState(st), row.Message
	if st.Allocation == nil && row.Reason != "None" {
		r.Reason = row.Reason
	}
	if st.HasOutcome() {
		r.End = seconds(st.EndTime)
	}
	if st.IsFinal() && st.StartTime == nil && b.Spec.Job.Time.Limit == 0 && row.TimeLimit == job.Unlimited {
		r.TimeLimit = 0 // it never got one: sacct shows Partition_Limit
	}
	if st.Allocation != nil && len(st.Allocation.Nodes) > 0 {
		r.Nodes, r.CPUs, r.NodeList = row.Nodes, row.CPUs, row.NodeList
		r.BatchCPUs = st.Allocation.Nodes[0].CPUs
		r.AllocTRES = sorted(withGRES(row.TRES, st.Allocation))
	}
	if st.State != v1alpha1.StatePending && st.State != "" {
		r.Start = seconds(st.StartTime)
		r.ExitCode, r.Signal = row.ExitCode, row.Signal
		if ended(r.State) {
			r.ExitCode, r.Signal = 0, 0 // Slurm has them on the batch step only
		}
		if st.Derived != nil {
			r.Derived, r.DerivedSignal = st.Derived.Status, st.Derived.Signal
		}
	}
	r.Suspended = suspended(st)
	if st.State == v1alpha1.StateCancelled || st.Final == v1alpha1.StateCancelled {
		cancelledBy(&r, b, who)
	}
	if r.Start == 0 && r.End != 0 {
		r.Start = r.End // Slurm's record of a job that never ran
	}
	r.History = append([]status.StateChange{{State: v1alpha1.StatePending, At: micros(b.Spec.SubmitTime)}}, changes(st.History)...)
	if len(st.Past) > 0 {
		r.History = r.History[1:]
	}
	return r
}

// baseState is the state as Slurm's database has it: without what are flags
// there.
func baseState(s *v1alpha1.BatchJobStatus) string {
	switch {
	case s.State == "":
		return v1alpha1.StatePending
	case s.State == v1alpha1.StateConfiguring:
		return v1alpha1.StateRunning
	case s.State == v1alpha1.StateCompleting && s.Final == v1alpha1.StatePending:
		return "REQUEUED"
	case s.State == v1alpha1.StateCompleting && s.Final != "":
		return s.Final
	}
	return s.State
}

// ended: the job was ended from outside.
func ended(state string) bool {
	return state == v1alpha1.StateCancelled || state == v1alpha1.StateTimeout || state == v1alpha1.StatePreempted || state == v1alpha1.StateNodeFail
}

func cancelledBy(r *status.Record, b *v1alpha1.BatchJob, who People) {
	r.KilledByID = -1
	if b.Spec.Cancel == nil {
		return
	}
	r.KilledBy = b.Spec.Cancel.By
	if who == nil {
		return
	}
	if uid, ok := who.UserID(r.KilledBy); ok {
		r.KilledByID = uid
	}
}

// run is the record of an earlier run.
func run(r status.Record, p *v1alpha1.PastAttempt) status.Record {
	r.Restarts, r.State, r.Reason, r.Partition = p.Restarts, p.State, p.Reason, p.Partition
	if q := seconds(&p.Queued); q != 0 {
		r.Submit, r.Eligible = q, max(r.Eligible, q)
	}
	r.Start, r.End, r.TimeLimit = seconds(&p.Start), seconds(&p.End), p.TimeLimit
	if r.Start == 0 {
		r.Start = r.End
	}
	r.Nodes, r.CPUs, r.NodeList = p.Nodes, p.CPUs, p.NodeList
	if p.CPUs > 0 {
		list := []string{"cpu=" + itoa(p.CPUs), "node=" + itoa(p.Nodes), "billing=" + itoa(p.CPUs)}
		if p.Memory > 0 {
			list = append(list, "mem="+strconv.FormatInt(p.Memory, 10)+"M")
		}
		r.AllocTRES = sorted(append(list, gres(p.GRES)...))
	}
	if p.ExitCode != nil {
		r.ExitCode, r.Signal = p.ExitCode.Status, p.ExitCode.Signal
	}
	if p.Derived != nil {
		r.Derived, r.DerivedSignal = p.Derived.Status, p.Derived.Signal
	}
	r.History = changes(p.History)
	return r
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

func changes(list []v1alpha1.StateChange) []status.StateChange {
	out := make([]status.StateChange, 0, len(list))
	for _, c := range list {
		out = append(out, status.StateChange{State: c.State, At: micros(&c.At), Reason: c.Reason})
	}
	return out
}

// suspended adds up the time between SUSPENDED and what followed it.
func suspended(s *v1alpha1.BatchJobStatus) int64 {
	var sum int64
	var since *metav1.MicroTime
	for i := range s.History {
		c := &s.History[i]
		if since != nil {
			sum += c.At.Unix() - since.Unix()
			since = nil
		}
		if c.State == v1alpha1.StateSuspended {
			since = &c.At
		}
	}
	return sum
}

// askedNodes is the number of nodes asked for, that of the row's TRES: squeue
// shows more of a pending job with tasks of several CPUs.
func askedNodes(row *status.Job) int32 {
	for item := range strings.SplitSeq(row.TRES, ",") {
		if text, ok := strings.CutPrefix(item, "node="); ok {
			if n, err := strconv.ParseInt(text, 10, 32); err == nil {
				return int32(max(n, 1))
			}
		}
	}
	return max(row.Nodes, 1)
}

// requested is the list of TRES asked for. A row that holds nodes shows what
// it holds, so the request is made from the job.
func requested(b *v1alpha1.BatchJob, row *status.Job) []string {
	list := strings.Split(row.TRES, ",")
	for _, g := range b.Spec.Job.Shape.GRES {
		n := g.Count
		if g.Per == "node" {
			n *= int64(askedNodes(row))
		}
		list = append(list, fmt.Sprintf("gres/%s=%d", g.Name, n))
		if g.Type != "" {
			list = append(list, fmt.Sprintf("gres/%s:%s=%d", g.Name, g.Type, n))
		}
	}
	return list
}

func withGRES(tres string, a *v1alpha1.Allocation) []string {
	var all []v1alpha1.GRESAllocation
	for i := range a.Nodes {
		all = append(all, a.Nodes[i].GRES...)
	}
	return append(strings.Split(tres, ","), gres(all)...)
}

// gres lists generic resources, the sum of each name and of each type.
func gres(list []v1alpha1.GRESAllocation) []string {
	sum := map[string]int64{}
	for _, g := range list {
		sum["gres/"+g.Name] += g.Count
		if g.Type != "" {
			sum["gres/"+g.Name+":"+g.Type] += g.Count
		}
	}
	out := make([]string, 0, len(sum))
	for name, n := range sum {
		out = append(out, fmt.Sprintf("%s=%d", name, n))
	}
	return out
}

// sorted joins a list of TRES by name, as sacct shows them; a name that comes
// twice counts once.
func sorted(list []string) string {
	seen := map[string]bool{}
	var out []string
	for _, item := range list {
		name, _, ok := strings.Cut(item, "=")
		if ok && !seen[name] {
			seen[name] = true
			out = append(out, item)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

func seconds(t *metav1.MicroTime) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func micros(t *metav1.MicroTime) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Step is the record of a step that an agent reported.
func Step(s *wire.StepRecord, who People) status.StepRecord {
	out := format.ReportedStep(s)
	if who != nil && s.KilledBy != "" {
		if uid, ok := who.UserID(s.KilledBy); ok {
			out.KilledBy, out.KilledByID = s.KilledBy, &uid
		}
	}
	out.AllocTRES = sorted([]string{"cpu=" + itoa(s.CPUs), "node=" + itoa(out.Nodes)})
	return out
}
