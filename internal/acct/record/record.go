package record

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// RunKey identifies a run of a job: a job that is requeued has a record for each
// of its runs.
type RunKey struct {
	UID      string // of the job's object
	Restarts int32
}

// KeyOf returns the key of the record's run.
func KeyOf(r *status.Record) RunKey { return RunKey{r.UID, r.Restarts} }

// Users finds the ids of users. ok is false for a user who does not exist.
type Users interface {
	UserID(name string) (uid int64, ok bool)
}

// Billing returns what an earlier attempt of a job is billed.
type Billing func(b *v1alpha1.BatchJob, p *v1alpha1.PastAttempt) int64

// Cluster is what records contain of the cluster.
type Cluster struct {
	Name string
	// Users may be nil.
	Users Users
	// Billing may be nil: then attempts are billed by their CPUs.
	Billing Billing
}

// OfJob returns the records of a job: of earlier runs first, of the present one
// last. row is the job's row in the queue, with the defaults of the cluster
// filled in.
func OfJob(b *v1alpha1.BatchJob, row *status.Job, c Cluster) []status.Record {
	base := ofRequest(b, row, c.Name)
	out := make([]status.Record, 0, len(b.Status.Past)+1)
	for i := range b.Status.Past {
		p := &b.Status.Past[i]
		bill := int64(p.CPUs)
		if c.Billing != nil {
			bill = c.Billing(b, p)
		}
		out = append(out, ofPastRun(base, p, bill))
	}
	if n := len(b.Status.Past); n > 0 {
		base.Submit = seconds(&b.Status.Past[n-1].End) // when it was requeued
		base.Eligible = max(base.Eligible, base.Submit)
	}
	return append(out, ofPresentRun(base, b, row, c.Users))
}

// ofRequest returns what the job requests, which is the same for every attempt.
func ofRequest(b *v1alpha1.BatchJob, row *status.Job, cluster string) status.Record {
	j := &b.Spec.Job
	task := row.ArrayTaskID
	if row.ArrayWhole && !strings.ContainsAny(task, ",-:%") {
		task = "[" + task + "]" // a single task without an object of its own
	}
	return status.Record{
		UID: string(b.UID), ID: row.ID, ArrayJobID: row.ArrayJobID, ArrayTaskID: task,
		HetJobID: row.HetJobID, HetOffset: row.HetOffset, Cluster: cluster,
		Name: row.Name, User: row.User, UserID: row.UID, Group: row.Group, GroupID: row.GID,
		Account: row.Account, QOS: row.QOS, Partition: row.Partition, WCKey: row.WCKey,
		Submit: row.Submit, Eligible: row.Eligible, TimeLimit: row.TimeLimit, Priority: row.Priority,
		ReqNodes: nodeCount(b), ReqCPUs: row.CPUs, ReqMem: row.MinMemory, ReqMemPerCPU: row.MemoryPerCPU,
		WorkDir: j.Batch.WorkDir, SubmitLine: j.Batch.SubmitLine, Comment: j.Comment, AdminComment: j.AdminComment,
		Constraints: j.Placement.Constraint, Container: j.Batch.Container["path"],
		Reservation: row.Reservation, Licenses: row.Licenses,
		Batch: hasScript(b), ReqTRES: requestedTRES(b, row),
	}
}

// hasScript reports whether the job runs a script. Its object has no script, but
// the jobs of salloc and srun name their client, which waits for the allocation.
func hasScript(b *v1alpha1.BatchJob) bool { return b.Spec.Job.Batch.Client == "" }

// nodeCount returns the number of nodes of the job's allocation or, without one, the
// smallest number that it can run on.
func nodeCount(b *v1alpha1.BatchJob) int32 {
	if a := b.Status.Allocation; a != nil && len(a.Nodes) > 0 {
		return int32(len(a.Nodes))
	}
	return b.Spec.Job.LeastNodes()
}

// requestedTRES returns the list of TRES that the job requests. The row has them
// without generic resources, or those of the allocation.
func requestedTRES(b *v1alpha1.BatchJob, row *status.Job) string {
	list := strings.Split(row.TRES, ",")
	shape := &b.Spec.Job.Shape
	for _, g := range shape.GRESDemands() {
		n := g.Total(shape, nodeCount(b), row.Tasks)
		list = append(list, fmt.Sprintf("gres/%s=%d", g.Name, n))
		if g.Type != "" {
			list = append(list, fmt.Sprintf("gres/%s:%s=%d", g.Name, g.Type, n))
		}
	}
	return joinTRES(list)
}

// waitReason returns why a job without an allocation waits: as in Slurm, what is known at
// its submission, and "" for anything else.
func waitReason(b *v1alpha1.BatchJob, row *status.Job) string {
	j := &b.Spec.Job
	switch {
	case row.Reason != "None":
		return row.Reason
	case len(j.Dependencies.Items) > 0:
		return status.ReasonDependency
	case j.Time.Begin > row.Submit:
		return status.ReasonBeginTime
	}
	return ""
}

func ofPresentRun(r status.Record, b *v1alpha1.BatchJob, row *status.Job, users Users) status.Record {
	st := &b.Status
	r.Restarts, r.State, r.SystemComment = st.Restarts, baseState(st), row.Message
	if st.Allocation == nil {
		r.Reason = waitReason(b, row)
	}
	if st.HasOutcome() {
		r.End = endOf(st.EndTime, st.History)
	}
	if st.StartTime == nil && st.Restarts == 0 && b.Spec.Job.Time.Limit == 0 && row.TimeLimit == job.Unlimited {
		r.TimeLimit = 0 // it was never given one: sacct shows Partition_Limit
	}
	if st.Allocation != nil && len(st.Allocation.Nodes) > 0 {
		r.Nodes, r.CPUs, r.NodeList = row.Nodes, row.CPUs, row.NodeList
		r.BatchCPUs = st.Allocation.Nodes[0].CPUs
		r.AllocTRES = allocatedTRES(row.TRES, st.Allocation)
	}
	if st.State != v1alpha1.StatePending && st.State != "" {
		setOutcome(&r, st, row)
	}
	r.Suspended = suspendedSeconds(st.History, r.End)
	if st.State == v1alpha1.StateCancelled || st.Final == v1alpha1.StateCancelled {
		setCancelledBy(&r, b, users)
	}
	if r.Start == 0 && r.End != 0 {
		r.Start = r.End // as in Slurm's record of a job that never ran
	}
	r.History = stateChanges(st.History)
	if len(st.Past) == 0 {
		submitted := status.StateChange{State: v1alpha1.StatePending, At: micros(b.Spec.SubmitTime)}
		r.History = append([]status.StateChange{submitted}, r.History...)
	}
	return r
}

// setOutcome sets the start and the exit codes of a job that has started.
func setOutcome(r *status.Record, st *v1alpha1.BatchJobStatus, row *status.Job) {
	r.Start = seconds(st.StartTime)
	if !endedFromOutside(r.State) { // else Slurm has them on the batch step alone
		r.ExitCode, r.Signal = row.ExitCode, row.Signal
	}
	if st.Derived != nil {
		r.Derived, r.DerivedSignal = st.Derived.Status, st.Derived.Signal
	}
}

// baseState returns the state as Slurm's database has it: CONFIGURING and
// COMPLETING are flags there.
func baseState(s *v1alpha1.BatchJobStatus) string {
	switch {
	case s.State == "":
		return v1alpha1.StatePending
	case s.State == v1alpha1.StateConfiguring:
		return v1alpha1.StateRunning
	case s.State == v1alpha1.StateCompleting && s.Final == v1alpha1.StatePending:
		return requeued
	case s.State == v1alpha1.StateCompleting && s.Final != "":
		return s.Final
	}
	return s.State
}

// requeued is the state of the record of a run after which the job was requeued.
const requeued = "REQUEUED"

// HasEnded reports whether the record's run has ended.
func HasEnded(r *status.Record) bool {
	return r.State == requeued || status.JobState(r.State).IsFinal()
}

// endedFromOutside reports whether the job did not end by itself.
func endedFromOutside(state string) bool {
	switch state {
	case v1alpha1.StateCancelled, v1alpha1.StateTimeout, v1alpha1.StatePreempted, v1alpha1.StateNodeFail:
		return true
	}
	return false
}

func setCancelledBy(r *status.Record, b *v1alpha1.BatchJob, users Users) {
	r.KilledByID = -1
	if b.Spec.Cancel == nil {
		return
	}
	r.KilledBy = b.Spec.Cancel.By
	if users == nil {
		return
	}
	if uid, ok := users.UserID(r.KilledBy); ok {
		r.KilledByID = uid
	}
}

// ofPastRun returns the record of an earlier run, which is billed the given amount.
func ofPastRun(r status.Record, p *v1alpha1.PastAttempt, bill int64) status.Record {
	r.Restarts, r.State, r.Reason, r.Partition = p.Restarts, p.State, p.Reason, p.Partition
	if q := seconds(&p.Queued); q != 0 {
		r.Submit, r.Eligible = q, max(r.Eligible, q)
	}
	r.Start, r.End, r.TimeLimit = seconds(&p.Start), endOf(&p.End, p.History), p.TimeLimit
	if r.Start != 0 && (r.Eligible == 0 || r.Eligible > r.Start) {
		r.Eligible = r.Start // the present run waits for something that this one did not wait for
	}
	if r.Start == 0 {
		r.Start = r.End
	}
	r.Nodes, r.CPUs, r.NodeList = p.Nodes, p.CPUs, p.NodeList
	if p.CPUs > 0 {
		list := []string{"cpu=" + itoa(p.CPUs), "node=" + itoa(p.Nodes), "billing=" + strconv.FormatInt(bill, 10)}
		if p.Memory > 0 {
			list = append(list, "mem="+strconv.FormatInt(p.Memory, 10)+"M")
		}
		r.AllocTRES = joinTRES(append(list, gresItems(p.GRES)...))
	}
	if p.ExitCode != nil {
		r.ExitCode, r.Signal = p.ExitCode.Status, p.ExitCode.Signal
	}
	if p.Derived != nil {
		r.Derived, r.DerivedSignal = p.Derived.Status, p.Derived.Signal
	}
	r.Suspended = suspendedSeconds(p.History, r.End)
	r.History, r.SystemComment = stateChanges(p.History), p.Message
	return r
}

func stateChanges(list []v1alpha1.StateChange) []status.StateChange {
	out := make([]status.StateChange, 0, len(list))
	for _, c := range list {
		out = append(out, status.StateChange{State: c.State, At: micros(&c.At), Reason: c.Reason})
	}
	return out
}

// endOf returns the end of a run. As in Slurm, one that was suspended when it ended has
// ended when it was suspended.
func endOf(end *metav1.MicroTime, history []v1alpha1.StateChange) int64 {
	if since, ok := v1alpha1.SuspendedAtEnd(history); ok {
		return since.Unix()
	}
	return seconds(end)
}

// suspendedSeconds returns the time that a run was suspended before its end (0: it has not
// ended): from each change to SUSPENDED to the next change.
func suspendedSeconds(history []v1alpha1.StateChange, end int64) int64 {
	var sum int64
	var since *metav1.MicroTime
	for i := range history {
		c := &history[i]
		if since != nil && (end == 0 || c.At.Unix() <= end) {
			sum += c.At.Unix() - since.Unix()
		}
		since = nil
		if c.State == v1alpha1.StateSuspended {
			since = &c.At
		}
	}
	return sum
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
