package table

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// maxSteps limits the running steps that are stored for one job, because agents, which
// have the uid of their user, report them.
const maxSteps = 2000

// steps are the running steps, by job id, as the jobs' agents report them.
type steps struct {
	mu   sync.Mutex
	jobs map[int64]*jobSteps
}

type jobSteps struct {
	attempt int32
	records map[int32]wire.StepRecord
}

// RecordSteps stores what a job's agent reports about its steps; steps that have ended
// are removed. Reports of a previous attempt change nothing.
func (t *Table) RecordSteps(jobID int64, attempt int32, list []wire.StepRecord) {
	b, ok := t.cluster.Job(jobID)
	if !ok || b.Status.Attempt != attempt || b.IsFinal() {
		return
	}
	s := &t.steps
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = map[int64]*jobSteps{}
	}
	j := s.jobs[jobID]
	if j == nil || j.attempt != attempt {
		j = &jobSteps{attempt: attempt, records: map[int32]wire.StepRecord{}}
		s.jobs[jobID] = j
	}
	for _, r := range list {
		switch {
		case r.End != 0 || r.State != v1alpha1.StateRunning && r.State != "":
			delete(j.records, r.ID)
		case len(j.records) < maxSteps:
			j.records[r.ID] = r
		}
	}
}

// forgetSteps removes the steps of a job that has ended.
func (t *Table) forgetSteps(jobID int64) {
	t.steps.mu.Lock()
	defer t.steps.mu.Unlock()
	delete(t.steps.jobs, jobID)
}

// Steps returns the steps of the jobs that match q. As in Slurm, it includes a running
// job's batch script even before its agent has reported it.
func (t *Table) Steps(ctx context.Context, q Query) []status.Step {
	q.AllStates = false
	q.States = []string{v1alpha1.StateRunning, v1alpha1.StateCompleting, v1alpha1.StateSuspended}
	rows := t.Select(ctx, q)
	var out []status.Step
	t.steps.mu.Lock()
	defer t.steps.mu.Unlock()
	for _, r := range rows {
		j := t.steps.jobs[r.ID]
		if j == nil {
			if !r.NoBatch && r.State == v1alpha1.StateRunning {
				out = append(out, step(r, &wire.StepRecord{ID: wire.StepBatch, Name: "batch",
					Nodes: r.Hosts[:min(1, len(r.Hosts))], Tasks: 1, Start: r.Start * 1e9}))
			}
			continue
		}
		first := len(out)
		for _, rec := range j.records {
			out = append(out, step(r, &rec))
		}
		slices.SortFunc(out[first:],
			func(a, b status.Step) int { return int(int64(uint32(a.Number)) - int64(uint32(b.Number))) })
	}
	return out
}

// step returns the row of a step from its record and its job's row.
func step(r *Row, rec *wire.StepRecord) status.Step {
	s := status.Step{
		ID: stepName(r, rec.ID), JobID: r.ID, Number: int64(rec.ID), Name: rec.Name, User: r.User, UID: r.UID,
		Partition: r.Partition,
		State:     v1alpha1.StateRunning, Start: rec.Start / 1e9, TimeLimit: -1, Nodes: int32(len(rec.Nodes)),
		NodeList: hostlist.Fold(rec.Nodes), CPUs: rec.CPUs, Tasks: rec.Tasks, ArrayJobID: r.ArrayJobID,
		ArrayTaskID: r.ArrayTaskID, HetJobID: r.HetJobID, HetOffset: r.HetOffset,
	}
	if rec.TimeLimit > 0 {
		s.TimeLimit = rec.TimeLimit
	}
	if rec.ID >= 0 {
		s.Dist = rec.Layout
		s.SrunHost, s.SrunPID = rec.SrunHost, rec.SrunPID
		s.TRES = "cpu=" + strconv.Itoa(int(rec.CPUs))
		if rec.GPUs > 0 {
			s.TRES += ",gres/gpu=" + strconv.Itoa(int(rec.GPUs))
			s.GRES = perNode(r.GRES) // as srun in the job reads it
		}
		if rec.Memory > 0 {
			s.TRES += ",mem=" + size(rec.Memory)
		}
		s.TRES += ",node=" + strconv.Itoa(len(rec.Nodes))
	} else {
		s.CPUFreq = "0-0:0"
	}
	return s
}

// perNode returns TresPerNode of a step in a job with the list of --gres.
func perNode(list string) string {
	if list == "" {
		return ""
	}
	terms := strings.Split(list, ",")
	for i := range terms {
		terms[i] = "gres:" + strings.TrimPrefix(terms[i], "gres:")
	}
	return strings.Join(terms, ",")
}

// stepName returns the step as users name it: 12.0, 12_3.batch.
func stepName(r *Row, id int32) string {
	name := strconv.FormatInt(r.ID, 10)
	if _, err := strconv.Atoi(r.ArrayTaskID); err == nil && r.ArrayJobID != 0 {
		name = strconv.FormatInt(r.ArrayJobID, 10) + "_" + r.ArrayTaskID
	}
	switch id {
	case wire.StepBatch:
		return name + ".batch"
	case wire.StepExtern:
		return name + ".extern"
	case wire.StepInteractive:
		return name + ".interactive"
	}
	return name + "." + strconv.Itoa(int(id))
}

// HasStep reports whether the step may be running: a job whose agents have not reported
// any steps yet may have any of them.
func (t *Table) HasStep(r *Row, id int32) bool {
	t.steps.mu.Lock()
	defer t.steps.mu.Unlock()
	j := t.steps.jobs[r.ID]
	if j == nil || id == wire.StepBatch {
		return true
	}
	_, ok := j.records[id]
	return ok
}
