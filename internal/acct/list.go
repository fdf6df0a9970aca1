package acct

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// List finds the records that q means, in the queue and in the database, by
// job id. A job in the queue counts as the queue has it. Where the database
// does not answer, the list is what the queue has, and warning says so.
func (r *Recorder) List(ctx context.Context, q *status.RecordQuery) (list []status.Record, warning string, err error) {
	live := r.live(q)
	s, err := r.database()
	switch {
	case err == nil:
		if list, err = s.Find(ctx, q); err != nil {
			if errors.Is(err, ErrNewer) {
				return nil, "", err
			}
			list, warning = nil, onlyLive(err)
		}
	case len(q.Jobs) == 0 && q.Start == 0 && q.End == 0 && len(live) == 0:
		return nil, "", err
	default:
		warning = onlyLive(err)
	}
	list = r.merge(list, live, q)
	for i := range list {
		finish(&list[i], q.NoSteps)
	}
	return list, warning, nil
}

func onlyLive(err error) string {
	return fmt.Sprintf("%v: only jobs that are still in the queue are listed", err)
}

// live are the records of the jobs in the queue that may pass q, steps that
// are not stored yet included.
func (r *Recorder) live(q *status.RecordQuery) []status.Record {
	cluster := ClusterName(r.Cluster.Parameters())
	f := NewFilter(q)
	var out []status.Record
	jobs := r.Cluster.Jobs.List()
	split := splitOff(jobs)
	for _, b := range jobs {
		if b.Spec.JobID == 0 || !f.mayBe(b.Spec.JobID, b.Spec.User) {
			continue
		}
		row := r.Row(b)
		if tasks := split[b.Spec.JobID]; len(tasks) > 0 && array.Whole(b) {
			row.ArrayTaskID = value.ArraySpec(array.Rest(b, tasks), b.Spec.Job.Array.Max)
		}
		out = append(out, Records(b, &row, cluster, r.Who)...)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.NoSteps || len(r.steps) == 0 {
		return out
	}
	at := make(map[string]int, len(out))
	for i := range out {
		at[stepKey(out[i].UID, out[i].Restarts)] = i
	}
	for _, e := range r.steps {
		if i, ok := at[stepKey(e.UID, e.Restarts)]; ok {
			out[i].Steps = append(out[i].Steps, e.Step)
		}
	}
	return out
}

// splitOff are the tasks that have jobs of their own, by the array's number.
func splitOff(jobs []*v1alpha1.BatchJob) map[int64][]*v1alpha1.BatchJob {
	out := map[int64][]*v1alpha1.BatchJob{}
	for _, b := range jobs {
		if b.Spec.Task != nil && b.Spec.Origin != nil {
			out[b.Spec.Origin.JobID] = append(out[b.Spec.Origin.JobID], b)
		}
	}
	return out
}

// mayBe rules out quickly what users asked for cannot be.
func (f *Filter) mayBe(_ int64, user string) bool {
	return len(f.q.Users) == 0 || len(f.q.UserIDs) > 0 || slices.Contains(f.q.Users, user)
}

// merge puts both together: the queue's record stands for the stored one, and
// takes over its steps.
func (r *Recorder) merge(stored, live []status.Record, q *status.RecordQuery) []status.Record {
	f := NewFilter(q)
	at := make(map[string]int, len(stored))
	for i := range stored {
		at[stepKey(stored[i].UID, stored[i].Restarts)] = i
	}
	drop := map[int]bool{}
	var fresh []status.Record
	for i := range live {
		l := &live[i]
		k, known := at[stepKey(l.UID, l.Restarts)]
		if known {
			l.DBIndex, l.Steps = stored[k].DBIndex, mergeSteps(stored[k].Steps, l.Steps)
		}
		switch match := f.Match(l); {
		case known && match:
			stored[k] = *l
		case known:
			drop[k] = true // it has changed since it was stored
		case match:
			fresh = append(fresh, *l)
		}
	}
	out := make([]status.Record, 0, len(stored)+len(fresh))
	for i := range stored {
		if !drop[i] {
			out = append(out, stored[i])
		}
	}
	out = append(out, fresh...)
	slices.SortStableFunc(out, func(a, b status.Record) int {
		if a.UID == b.UID {
			return cmp.Compare(a.Restarts, b.Restarts)
		}
		return cmp.Or(cmp.Compare(cmp.Or(a.ArrayJobID, a.ID), cmp.Or(b.ArrayJobID, b.ID)), cmp.Compare(taskOrder(&a), taskOrder(&b)),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Submit, b.Submit))
	})
	if !q.Duplicates {
		out = Newest(out)
	}
	return out
}

// taskOrder puts the tasks of an array in the order of their numbers, and those
// that are not split off behind them.
func taskOrder(r *status.Record) int {
	if n, err := strconv.Atoi(r.ArrayTaskID); err == nil || r.ArrayTaskID == "" {
		return n
	}
	return math.MaxInt
}

// mergeSteps adds newer reports of steps to the stored ones.
func mergeSteps(stored, newer []status.StepRecord) []status.StepRecord {
	for _, n := range newer {
		if i := slices.IndexFunc(stored, func(s status.StepRecord) bool { return s.Step == n.Step }); i >= 0 {
			stored[i] = n
		} else {
			stored = append(stored, n)
		}
	}
	return stored
}

// finish adds what is not stored because it follows from the rest: the batch
// step of a job whose agent has not reported it, and what steps hold.
func finish(r *status.Record, noSteps bool) {
	if noSteps {
		r.Steps = nil
		return
	}
	if r.Batch && r.Nodes > 0 && !slices.ContainsFunc(r.Steps, func(s status.StepRecord) bool { return s.Step == "batch" }) {
		r.Steps = append(r.Steps, batchStep(r))
	}
	slices.SortStableFunc(r.Steps, func(a, b status.StepRecord) int { return cmp.Compare(stepOrder(a.Step), stepOrder(b.Step)) })
	tres := TRES(r.AllocTRES)
	for i := range r.Steps {
		s := &r.Steps[i]
		if r.End > 0 && s.End == 0 {
			cutOff(s, r)
		}
		if r.State == "OUT_OF_MEMORY" && s.Signal == int32(syscall.SIGKILL) {
			s.State = r.State
		}
		if s.KilledBy == "" && s.State == "CANCELLED" {
			s.KilledBy = r.KilledBy
		}
		if mem := tres["mem"]; mem > 0 && r.Nodes > 0 && !strings.Contains(s.AllocTRES, "mem=") {
			list := append(strings.Split(s.AllocTRES, ","), fmt.Sprintf("mem=%dM", mem*int64(s.Nodes)/int64(r.Nodes)))
			s.AllocTRES = sorted(list)
		}
	}
}

// cutOff ends a step whose end nobody could report: its agent died with the job.
func cutOff(s *status.StepRecord, r *status.Record) {
	s.End = r.End
	if s.Step == "batch" {
		end := batchStep(r)
		s.State, s.ExitCode, s.Signal = end.State, end.ExitCode, end.Signal
		return
	}
	s.State, s.Signal = "CANCELLED", int32(syscall.SIGKILL)
}

func batchStep(r *status.Record) status.StepRecord {
	s := status.StepRecord{
		Step: "batch", Name: "batch", State: r.State, Start: r.Start, End: r.End, Suspended: r.Suspended,
		ExitCode: r.ExitCode, Signal: r.Signal, Nodes: 1, Tasks: 1, CPUs: r.BatchCPUs,
	}
	if names, err := hostlist.Expand(r.NodeList); err == nil && len(names) > 0 {
		s.NodeList = names[0]
	}
	if s.CPUs == 0 {
		s.CPUs = r.CPUs / max(1, r.Nodes)
	}
	if r.Signal != 0 && s.State == "FAILED" || s.State == "REQUEUED" || s.State == "TIMEOUT" || s.State == "PREEMPTED" || s.State == "CANCELLED" {
		s.State = "CANCELLED"
		if s.Signal == 0 && s.ExitCode == 0 {
			s.Signal = 15
		}
	}
	s.AllocTRES = sorted([]string{"cpu=" + itoa(s.CPUs), "node=1"})
	return s
}

// stepOrder is how Slurm sorts steps: batch, extern, interactive, by number.
func stepOrder(name string) int {
	switch name {
	case "batch":
		return -3
	case "extern":
		return -2
	case "interactive":
		return -1
	}
	number, _, _ := strings.Cut(name, "+")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 1 << 30
	}
	return n
}
