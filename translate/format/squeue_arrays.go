package format

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// MergeTasks merges pending tasks that were split off into the row of their array,
// as squeue shows them without -r: the row lists the reasons of all tasks, without
// the limit on concurrent tasks (as in Slurm 22.05).
func MergeTasks(rows []status.Job) []status.Job {
	whole := map[int64]bool{}
	for i := range rows {
		if r := &rows[i]; r.ArrayWhole && r.State == status.StatePending {
			whole[r.ArrayJobID] = true
		}
	}
	tasks := map[int64][]status.Job{}
	for _, r := range rows {
		if whole[r.ArrayJobID] && !r.ArrayWhole && r.State == status.StatePending {
			tasks[r.ArrayJobID] = append(tasks[r.ArrayJobID], r)
		}
	}
	if len(tasks) == 0 {
		return rows
	}
	out := make([]status.Job, 0, len(rows))
	for _, r := range rows {
		switch more := tasks[r.ArrayJobID]; {
		case len(more) == 0 || r.State != status.StatePending:
			out = append(out, r)
		case r.ArrayWhole:
			out = append(out, mergeRows(r, more)...)
		}
	}
	return out
}

// mergeRows returns the row of an array merged with tasks of it, or all rows if the
// tasks of one are invalid.
func mergeRows(whole status.Job, tasks []status.Job) []status.Job {
	numbers, ok := ParseTasks(whole.ArrayTaskID)
	all := append([]status.Job{whole}, tasks...)
	if !ok {
		return all
	}
	set := make([]int32, 0, len(numbers)+len(tasks))
	for _, n := range numbers {
		set = append(set, int32(n))
	}
	reasons := []string{shownReason(&whole)}
	for i := range tasks {
		n, err := strconv.ParseInt(tasks[i].ArrayTaskID, 10, 32)
		if err != nil {
			return all
		}
		set = append(set, int32(n))
		if r := shownReason(&tasks[i]); !slices.Contains(reasons, r) {
			reasons = append(reasons, r)
		}
	}
	slices.Sort(set)
	whole.ArrayTaskID, whole.Reason = value.ArraySpec(set, 0), strings.Join(reasons, ",")
	return []status.Job{whole}
}

func shownReason(j *status.Job) string {
	if j.Reason == "" {
		return "None"
	}
	return j.Reason
}

// ExpandArrays returns a row for each pending task of an array, as squeue -r shows
// them.
func ExpandArrays(rows []status.Job) []status.Job {
	return expandArrays(rows, func(*status.Job) bool { return true })
}

// SplitArrays is ExpandArrays for the arrays whose tasks each depend on one task
// (aftercorr). Slurm splits off their tasks immediately.
func SplitArrays(rows []status.Job) []status.Job {
	if !slices.ContainsFunc(rows, func(r status.Job) bool { return waitsByTask(&r) }) {
		return rows
	}
	return expandArrays(rows, waitsByTask)
}

// SplitPartitions returns a row for each partition of each pending job, as
// squeue -P shows them.
func SplitPartitions(rows []status.Job) []status.Job {
	out := make([]status.Job, 0, len(rows))
	for _, r := range rows {
		if r.State != status.StatePending {
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

// maxTasks is the maximum number of tasks in a set.
const maxTasks = 1 << 22

// ParseTasks returns the indexes in a set such as 0-9:3,12%2.
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
