package format

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/translate/status"
)

// The orders of squeue: the default, and with --start.
const (
	JobOrder      = "P,t,-p"
	JobOrderStart = "S"
)

// CompareID compares jobs by id, array task and component.
func CompareID(a, b *status.Job) int {
	if c := cmp.Compare(leadID(a), leadID(b)); c != 0 {
		return c
	}
	if c := cmp.Compare(taskNumber(a), taskNumber(b)); c != 0 {
		return c
	}
	if c := cmp.Compare(a.HetOffset, b.HetOffset); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}

// leadID returns the first number of the job's id.
func leadID(j *status.Job) int64 { return cmp.Or(j.ArrayJobID, j.HetJobID, j.ID) }

// taskNumber returns the index of an array task, or -1 for tasks that are not split
// off.
func taskNumber(j *status.Job) int {
	if j.ArrayTaskID == "" {
		return -1
	}
	n, err := strconv.Atoi(j.ArrayTaskID)
	if err != nil {
		return -1
	}
	return n
}

func compareLimit(a, b *status.Job) int {
	limit := func(j *status.Job) int32 {
		if j.TimeLimit < 0 {
			return math.MaxInt32
		}
		return j.TimeLimit
	}
	return cmp.Compare(limit(a), limit(b))
}

func compareState(a, b *status.Job) int {
	if a.State == b.State {
		return 0
	}
	return cmp.Compare(status.JobState(a.State).Code(), status.JobState(b.State).Code())
}

func comparePriority(a, b *status.Job) int { return cmp.Compare(a.Priority, b.Priority) }

// timeLeft returns the rest of the time limit in seconds.
func timeLeft(j *status.Job, s *Settings) int64 {
	if j.TimeLimit < 0 {
		return math.MaxInt64
	}
	return int64(j.TimeLimit)*60 - elapsed(j, s)
}

// SortFields returns the row fields that an order reads.
func SortFields(order string) []string {
	var out []string
	for _, k := range sortKeys(order) {
		out = append(out, k.column.Fields...)
	}
	return append(append(out, "state", "start"), idFields...)
}

// SortJobs returns the rows in an order of squeue -S: letters of columns, with - in
// front for descending order. The order of equal rows is that of compareUnsorted. Letters that
// are not columns are ignored.
func SortJobs(rows []status.Job, order string) []*status.Job {
	return SortJobsAt(rows, order, &Settings{})
}

// SortJobsAt is SortJobs for orders that depend on the time (M, L).
func SortJobsAt(rows []status.Job, order string, s *Settings) []*status.Job {
	out := make([]*status.Job, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	keys := sortKeys(order)
	slices.SortFunc(out, func(a, b *status.Job) int { return compareBy(keys, a, b, s) })
	return out
}

// compareBy compares jobs by the keys, the first of which counts most. As in Slurm 22.05.8,
// sorting by start or nodes turns the order around in which jobs without either were before.
func compareBy(keys []sortKey, a, b *status.Job, s *Settings) int {
	if len(keys) == 0 {
		return compareUnsorted(a, b)
	}
	k := &keys[0]
	if c := k.compare(a, b, s); c != 0 {
		return c
	}
	rest := compareBy(keys[1:], a, b, s)
	if k.turnsAround(a) && k.turnsAround(b) {
		return -rest
	}
	return rest
}

// turnsAround reports whether sorting by the key turns the order of j and its like around.
func (k *sortKey) turnsAround(j *status.Job) bool {
	switch k.column.Letter {
	case 'S':
		return j.Start == 0
	case 'N':
		return j.NodeList == "" && !k.descending
	}
	return false
}

// compareUnsorted orders jobs that are equal by every key, as Slurm 22.05.8 lists them: the
// latest start, also a planned one, first; then those without a start, the newest first.
func compareUnsorted(a, b *status.Job) int {
	if a.Start == 0 && b.Start == 0 {
		return CompareID(b, a)
	}
	return cmp.Or(cmp.Compare(b.Start, a.Start), CompareID(a, b))
}

type sortKey struct {
	column     *jobColumn
	descending bool
}

func (k *sortKey) compare(a, b *status.Job, s *Settings) int {
	if missing := k.column.Missing; missing != nil {
		switch x, y := missing(a), missing(b); {
		case x && y:
			return 0
		case x:
			return 1
		case y:
			return -1
		}
	}
	var c int
	switch {
	case k.column.Letter == 'N':
		c = compareNodeLists(a, b)
	case k.column.Compare != nil:
		c = k.column.Compare(a, b)
	case k.column.Value != nil:
		c = cmp.Compare(k.column.Value(a, s), k.column.Value(b, s))
	default:
		c = cmp.Compare(string(k.column.Append(nil, a, s)), string(k.column.Append(nil, b, s)))
	}
	if k.descending {
		return -c
	}
	return c
}

// compareNodeLists compares jobs by their nodes. Jobs without nodes come last, against the
// usual order, as in Slurm.
func compareNodeLists(a, b *status.Job) int {
	switch {
	case a.NodeList == "" && b.NodeList == "":
		return 0
	case a.NodeList == "":
		return 1
	case b.NodeList == "":
		return -1
	}
	return cmp.Compare(a.NodeList, b.NodeList)
}

func sortKeys(order string) []sortKey {
	var keys []sortKey
	descending := false
	for i := range len(order) {
		switch order[i] {
		case '-':
			descending = true
			continue
		case '+', ',', '#', 'n': // Slurm accepts n, and does not sort by it
		default:
			col := findColumn(JobColumns(), func(c *jobColumn) bool { return c.Letter == order[i] })
			if col != nil {
				keys = append(keys, sortKey{col, descending})
			}
		}
		descending = false
	}
	return keys
}
