package format

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// The orders of squeue: as usual, and with --start.
const (
	JobOrder      = "P,t,-p"
	JobOrderStart = "S"
)

// CompareID orders by job, array task and component.
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

// leadID is the number the job's id begins with.
func leadID(j *status.Job) int64 { return cmp.Or(j.ArrayJobID, j.HetJobID, j.ID) }

// taskNumber is the index of an array task; what is not split off comes first.
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

// timeLeft is what is left of the limit, in seconds.
func timeLeft(j *status.Job, s *Settings) int64 {
	if j.TimeLimit < 0 {
		return math.MaxInt64
	}
	return int64(j.TimeLimit)*60 - elapsed(j, s)
}

// SortFields lists the row fields an order reads.
func SortFields(order string) []string {
	var out []string
	for _, k := range sortKeys(order) {
		out = append(out, k.column.Fields...)
	}
	return append(out, idFields...)
}

// SortJobs gives the rows in the order named by column letters, each with - in
// front for descending, as squeue -S takes them. What is equal is ordered by
// id. Letters that are no column are ignored.
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
	slices.SortFunc(out, func(a, b *status.Job) int {
		for i := range keys {
			if c := keys[i].compare(a, b, s); c != 0 {
				return c
			}
		}
		return CompareID(a, b)
	})
	return out
}

type sortKey struct {
	column     *jobColumn
	descending bool
}

func (k *sortKey) compare(a, b *status.Job, s *Settings) int {
	if missing := k.column.Missing; missing != nil && missing(a) != missing(b) {
		if missing(a) {
			return 1
		}
		return -1
	}
	var c int
	switch {
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

func sortKeys(order string) []sortKey {
	var keys []sortKey
	descending := false
	for i := range len(order) {
		switch order[i] {
		case '-':
			descending = true
			continue
		case '+', ',', '#':
		default:
			col := find(JobColumns, func(c *jobColumn) bool { return c.Letter == order[i] })
			if col != nil {
				keys = append(keys, sortKey{col, descending})
			}
		}
		descending = false
	}
	return keys
}

// ExpandArrays gives each pending task of an array a row of its own, as
// squeue -r shows them.
func ExpandArrays(rows []status.Job) []status.Job {
	return expandArrays(rows, func(*status.Job) bool { return true })
}

// SplitArrays does so for the arrays whose tasks wait for one task each
// (aftercorr): Slurm makes jobs of them at once, and shows them apart.
func SplitArrays(rows []status.Job) []status.Job {
	if !slices.ContainsFunc(rows, func(r status.Job) bool { return waitsByTask(&r) }) {
		return rows
	}
	return expandArrays(rows, waitsByTask)
}

// SplitPartitions gives each pending job a row for each partition that it may
// run in, as squeue -P shows them.
func SplitPartitions(rows []status.Job) []status.Job {
	out := make([]status.Job, 0, len(rows))
	for _, r := range rows {
		if r.State != "PENDING" {
			out = append(out, r)
			continue
		}
		for name := range strings.SplitSeq(r.Partition, ",") {
			r.Partition = name
			out = append(out, r)
		}
	}
	return out
}

func waitsByTask(r *status.Job) bool {
	return r.ArrayWhole && strings.Contains(r.Dependency, "aftercorr:")
}

func expandArrays(rows []status.Job, wanted func(*status.Job) bool) []status.Job {
	out := make([]status.Job, 0, len(rows))
	for _, r := range rows {
		tasks, ok := ParseTasks(r.ArrayTaskID)
		if r.ArrayJobID == 0 || !ok || !wanted(&r) {
			out = append(out, r)
			continue
		}
		for _, t := range tasks {
			r.ArrayTaskID, r.ArrayWhole = strconv.Itoa(t), false
			out = append(out, r)
		}
	}
	return out
}

// maxTasks bounds an expansion.
const maxTasks = 1 << 22

// ParseTasks reads an index set such as 0-9:3,12%2, without its throttle.
func ParseTasks(spec string) ([]int, bool) {
	spec, _, _ = strings.Cut(spec, "%")
	var out []int
	for part := range strings.SplitSeq(spec, ",") {
		part, step, stepped := strings.Cut(part, ":")
		lo, hi, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(lo)
		last, by := first, 1
		if err == nil && isRange {
			last, err = strconv.Atoi(hi)
		}
		if err == nil && stepped {
			by, err = strconv.Atoi(step)
		}
		if err != nil || by < 1 || first < 0 || last-first > maxTasks || len(out) > maxTasks {
			return nil, false
		}
		for n := first; n <= last; n += by {
			out = append(out, n)
		}
	}
	return out, true
}
