package format

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/translate/status"
)

// StepDefault is the format of squeue -s.
const StepDefault = "%.15i %.8j %.9P %.8u %.9M %N"

// StepOrder is the order of squeue -s.
const StepOrder = "P,i"

type stepColumn = Column[status.Step]

// stepText returns a column of a text; an empty one is shown as none.
func stepText(letter byte, name, header, none string, get func(*status.Step) string) stepColumn {
	return stepColumn{Letter: letter, Name: name, Header: header,
		Append:  func(b []byte, t *status.Step, _ *Settings) []byte { return appendOr(b, get(t), none) },
		Compare: func(a, b *status.Step) int { return cmp.Compare(get(a), get(b)) }}
}

// stepNumber returns a column of a number.
func stepNumber(letter byte, name, header string, get func(*status.Step) int64) stepColumn {
	return stepColumn{Letter: letter, Name: name, Header: header,
		Append:  func(b []byte, t *status.Step, _ *Settings) []byte { return appendInt(b, get(t)) },
		Compare: func(a, b *status.Step) int { return cmp.Compare(get(a), get(b)) }}
}

// stepAbsent returns a column that is never set here.
func stepAbsent(name, header string) stepColumn {
	return stepText(0, name, header, "(null)", func(*status.Step) string { return "" })
}

// stepGRES returns the step's generic resources on a node: gres:gpu:1.
func stepGRES(t *status.Step) string {
	if t.GRES == "" || strings.HasPrefix(t.GRES, "gres:") {
		return t.GRES
	}
	return "gres:" + strings.ReplaceAll(t.GRES, ",", ",gres:")
}

// stepTRES returns the CPUs that the step requested; the batch step requests none.
func stepTRES(t *status.Step) string {
	if t.Number < 0 {
		return ""
	}
	return "cpu:" + itoa(t.CPUs)
}

// StepColumns returns the columns of squeue -s. Callers must not change them.
var StepColumns = sync.OnceValue(func() []stepColumn {
	return []stepColumn{
		stepNumber('A', "NumTasks", "TASKS", func(t *status.Step) int64 { return int64(t.Tasks) }),
		stepText('b', "", "TRES_PER_JOB", "(null)", stepGRES),
		{Letter: 'i', Name: "StepID", Header: "STEPID", Compare: compareStep,
			Append: func(b []byte, t *status.Step, _ *Settings) []byte { return append(b, t.ID...) }},
		stepText('j', "StepName", "NAME", "(null)", func(t *status.Step) string { return t.Name }),
		{Letter: 'l', Untruncated: true, Name: "TimeLimit", Header: "TIME_LIMIT",
			Append:  func(b []byte, t *status.Step, _ *Settings) []byte { return AppendMinutes(b, t.TimeLimit) },
			Compare: func(a, b *status.Step) int { return cmp.Compare(uint32(a.TimeLimit), uint32(b.TimeLimit)) }},
		{Letter: 'M', Untruncated: true, Name: "TimeUsed", Header: "TIME",
			Append: func(b []byte, t *status.Step, s *Settings) []byte { return AppendDuration(b, stepElapsed(t, s)) },
			Value:  stepElapsed},
		{Letter: 'N', Untruncated: true, UntruncatedHeader: true, Name: "Nodes", Header: "NODELIST",
			Append: func(b []byte, t *status.Step, _ *Settings) []byte { return append(b, t.NodeList...) }},
		stepText('P', "Partition", "PARTITION", "", func(t *status.Step) string { return t.Partition }),
		{Letter: 'S', Left: true, Name: "StartTime", Header: "START_TIME",
			Append:  func(b []byte, t *status.Step, s *Settings) []byte { return AppendInstant(b, t.Start, "N/A", s) },
			Compare: func(a, b *status.Step) int { return cmp.Compare(a.Start, b.Start) }},
		stepText('u', "UserName", "USER", "", func(t *status.Step) string { return t.User }),
		stepNumber('U', "UserID", "UID", func(t *status.Step) int64 { return t.UID }),
		stepText(0, "StepState", "STATE", "", func(t *status.Step) string { return t.State }),
		stepNumber(0, "JobID", "JOB_ID", func(t *status.Step) int64 { return t.JobID }),
		stepNumber(0, "ArrayJobID", "ARRAY_JOB_ID", func(t *status.Step) int64 { return t.ArrayJobID }),
		stepText(0, "ArrayTaskID", "ARRAY_TASK_ID", "N/A", func(t *status.Step) string { return t.ArrayTaskID }),
		stepNumber(0, "NumCPUs", "NUM_CPUS", func(t *status.Step) int64 { return int64(t.CPUs) }),
		stepText(0, "CPUFreq", "CPU_FREQ", "Unknown-Unknown:Unknown", func(t *status.Step) string { return t.CPUFreq }),
		stepText(0, "Container", "CONTAINER", "(null)", func(t *status.Step) string { return t.Container }),
		// In Slurm 22.05 the header of the resources on each node is TRES_PER_JOB, and
		// that of all resources (the CPUs) TRES_PER_STEP, whatever the name.
		stepText(0, "tres-per-node", "TRES_PER_JOB", "(null)", stepGRES),
		stepText(0, "gres", "TRES_PER_JOB", "(null)", stepGRES),
		stepText(0, "tres-per-job", "TRES_PER_STEP", "(null)", stepTRES),
		stepText(0, "tres-per-step", "TRES_PER_STEP", "(null)", stepTRES),
		stepAbsent("cpus-per-tres", "CPUS_PER_TRES"),
		stepAbsent("mem-per-tres", "MEM_PER_TRES"),
		stepAbsent("network", "NETWORK"),
		stepAbsent("resvports", "RESERVED_PORTS"),
		stepAbsent("tres-bind", "TRES_BIND"),
		stepAbsent("tres-freq", "TRES_FREQ"),
		stepAbsent("tres-per-socket", "TRES_PER_SOCKET"),
		stepAbsent("tres-per-task", "TRES_PER_TASK"),
		{Name: "Cluster", Header: "CLUSTER",
			Append: func(b []byte, _ *status.Step, s *Settings) []byte { return appendOr(b, s.Cluster, "berth") }},
	}
})

func stepElapsed(t *status.Step, s *Settings) int64 {
	if t.Start == 0 {
		return 0
	}
	return max(0, s.Now-t.Start)
}

// compareStep compares steps by job and number. Batch, extern and interactive steps
// come last.
func compareStep(a, b *status.Step) int {
	leadA, leadB := cmp.Or(a.ArrayJobID, a.HetJobID, a.JobID), cmp.Or(b.ArrayJobID, b.HetJobID, b.JobID)
	if c := cmp.Compare(leadA, leadB); c != 0 {
		return c
	}
	x, errX := strconv.Atoi(a.ArrayTaskID)
	y, errY := strconv.Atoi(b.ArrayTaskID)
	if errX == nil && errY == nil && x != y {
		return cmp.Compare(x, y)
	}
	if c := cmp.Compare(a.JobID, b.JobID); c != 0 {
		return c
	}
	return cmp.Compare(uint32(a.Number), uint32(b.Number))
}

// SortStepRecords sorts the steps as scontrol show step lists them: those of a job by
// number, behind its batch, extern and interactive steps.
func SortStepRecords(rows []status.Step) {
	slices.SortFunc(rows, func(a, b status.Step) int { return compareRecords(&a, &b) })
}

// compareRecords compares steps by job and number. Batch, extern and interactive steps come
// first.
func compareRecords(a, b *status.Step) int {
	if a.JobID == b.JobID && (a.Number < 0) != (b.Number < 0) {
		return cmp.Compare(a.Number, b.Number)
	}
	return compareStep(a, b)
}

// notSteps are the letters of columns that do not order steps in Slurm.
const notSteps = "j"

// SortSteps sorts the steps by an order of squeue -S. Steps that are equal stay in the order of
// their records.
func SortSteps(rows []status.Step, order string, s *Settings) {
	type key struct {
		column     *stepColumn
		descending bool
	}
	var keys []key
	descending := false
	for i := range len(order) {
		if order[i] == '-' {
			descending = true
			continue
		}
		c := findColumn(StepColumns(), func(c *stepColumn) bool { return c.Letter == order[i] })
		if c != nil && !strings.Contains(notSteps, string(order[i])) {
			keys = append(keys, key{c, descending})
		}
		descending = false
	}
	slices.SortFunc(rows, func(a, b status.Step) int {
		for _, k := range keys {
			var c int
			switch {
			case k.column.Compare != nil:
				c = k.column.Compare(&a, &b)
			case k.column.Value != nil:
				c = cmp.Compare(k.column.Value(&a, s), k.column.Value(&b, s))
			default:
				c = cmp.Compare(string(k.column.Append(nil, &a, s)), string(k.column.Append(nil, &b, s)))
			}
			if c != 0 && k.descending {
				return -c
			}
			if c != 0 {
				return c
			}
		}
		return compareRecords(&a, &b)
	})
}
