package record

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// The names of steps without a number.
const (
	batchStep       = "batch"
	externStep      = "extern"
	interactiveStep = "interactive"
)

// OfStep returns the record of a step that an agent reported. users may be nil.
func OfStep(s *wire.StepRecord, users Users) status.StepRecord {
	out := format.ReportedStep(s)
	if users != nil && s.KilledBy != "" {
		if uid, ok := users.UserID(s.KilledBy); ok {
			out.KilledBy, out.KilledByID = s.KilledBy, &uid
		}
	}
	list := []string{"cpu=" + itoa(s.CPUs), "node=" + itoa(out.Nodes)}
	if s.GPUs > 0 {
		list = append(list, "gres/gpu="+itoa(s.GPUs))
	}
	out.AllocTRES = joinTRES(list)
	return out
}

// MergeSteps returns the stored steps with the newer reports in their place.
func MergeSteps(stored, newer []status.StepRecord) []status.StepRecord {
	for _, n := range newer {
		i := slices.IndexFunc(stored, func(s status.StepRecord) bool { return s.Step == n.Step })
		if i >= 0 {
			stored[i] = n
		} else {
			stored = append(stored, n)
		}
	}
	return stored
}

// CompleteSteps adds what is not stored because it follows from the rest: the
// batch step of a job whose agent has not reported it, and the memory that steps
// hold. It sorts the steps.
func CompleteSteps(r *status.Record) {
	isBatch := func(s status.StepRecord) bool { return s.Step == batchStep }
	if r.Batch && r.Nodes > 0 && !slices.ContainsFunc(r.Steps, isBatch) {
		r.Steps = append(r.Steps, batchStepOf(r))
	}
	slices.SortStableFunc(r.Steps, func(a, b status.StepRecord) int {
		return cmp.Compare(stepOrder(a.Step), stepOrder(b.Step))
	})
	memory := ParseTRES(r.AllocTRES)["mem"]
	for i := range r.Steps {
		completeStep(&r.Steps[i], r, memory)
	}
}

func completeStep(s *status.StepRecord, r *status.Record, memory int64) {
	if r.End > 0 && s.End == 0 {
		endWithJob(s, r)
	}
	if r.State == "OUT_OF_MEMORY" && s.Signal == int32(syscall.SIGKILL) {
		s.State = r.State
	}
	if s.KilledBy == "" && s.State == "CANCELLED" {
		s.KilledBy = r.KilledBy
	}
	if s.Step == batchStep && !strings.Contains(s.AllocTRES, "gres/") {
		s.AllocTRES = joinTRES(append(strings.Split(s.AllocTRES, ","), gresOfNode(r)...))
	}
	if memory > 0 && r.Nodes > 0 && !strings.Contains(s.AllocTRES, "mem=") {
		ofStep := fmt.Sprintf("mem=%dM", memory*int64(s.Nodes)/int64(r.Nodes))
		s.AllocTRES = joinTRES(append(strings.Split(s.AllocTRES, ","), ofStep))
	}
}

// endWithJob ends a step whose end was not reported because its agent ended with
// the job.
func endWithJob(s *status.StepRecord, r *status.Record) {
	s.End = r.End
	if s.Step == batchStep {
		end := batchStepOf(r)
		s.State, s.ExitCode, s.Signal = end.State, end.ExitCode, end.Signal
		return
	}
	s.State, s.Signal = "CANCELLED", int32(syscall.SIGKILL)
}

// batchStepOf returns the batch step that follows from the job's record.
func batchStepOf(r *status.Record) status.StepRecord {
	s := status.StepRecord{
		Step: batchStep, Name: batchStep, State: r.State, Start: r.Start, End: r.End, Suspended: r.Suspended,
		ExitCode: r.ExitCode, Signal: r.Signal, Nodes: 1, Tasks: 1, CPUs: r.BatchCPUs,
	}
	if names, err := hostlist.Expand(r.NodeList); err == nil && len(names) > 0 {
		s.NodeList = names[0]
	}
	if s.CPUs == 0 {
		s.CPUs = r.CPUs / max(1, r.Nodes)
	}
	if wasKilled(r) {
		s.State = "CANCELLED"
		if s.Signal == 0 && s.ExitCode == 0 {
			s.Signal = int32(syscall.SIGTERM)
		}
	}
	s.AllocTRES = joinTRES([]string{"cpu=" + itoa(s.CPUs), "node=1"})
	return s
}

// gresOfNode returns the generic resources that a node of the job has, which are those of its
// batch step; nil if the nodes may have different numbers of them.
func gresOfNode(r *status.Record) (list []string) {
	nodes := int64(max(1, r.Nodes))
	for name, n := range ParseTRES(r.AllocTRES) {
		if strings.HasPrefix(name, "gres/") && n%nodes == 0 {
			list = append(list, fmt.Sprintf("%s=%d", name, n/nodes))
		}
	}
	return list
}

// wasKilled reports whether the script of the job did not end by itself.
func wasKilled(r *status.Record) bool {
	switch r.State {
	case "FAILED":
		return r.Signal != 0
	case requeued, "TIMEOUT", "PREEMPTED", "CANCELLED":
		return true
	}
	return false
}

// stepOrder is Slurm's order of steps: batch, extern, interactive, then by
// number.
func stepOrder(name string) int {
	switch name {
	case batchStep:
		return -3
	case externStep:
		return -2
	case interactiveStep:
		return -1
	}
	number, _, _ := strings.Cut(name, "+")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 1 << 30
	}
	return n
}
