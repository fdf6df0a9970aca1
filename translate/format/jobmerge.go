package format

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// MergeTasks puts pending tasks that are jobs of their own back into the row of
// what is left of their array, as squeue shows them without -r: the reasons of
// all behind each other, and no limit on how many run (asked of Slurm 22.05).
func MergeTasks(rows []status.Job) []status.Job {
	whole := map[int64]bool{}
	for i := range rows {
		if r := &rows[i]; r.ArrayWhole && r.State == "PENDING" {
			whole[r.ArrayJobID] = true
		}
	}
	tasks := map[int64][]status.Job{}
	for _, r := range rows {
		if whole[r.ArrayJobID] && !r.ArrayWhole && r.State == "PENDING" {
			tasks[r.ArrayJobID] = append(tasks[r.ArrayJobID], r)
		}
	}
	if len(tasks) == 0 {
		return rows
	}
	out := make([]status.Job, 0, len(rows))
	for _, r := range rows {
		switch more := tasks[r.ArrayJobID]; {
		case len(more) == 0 || r.State != "PENDING":
			out = append(out, r)
		case r.ArrayWhole:
			out = append(out, merged(r, more)...)
		}
	}
	return out
}

// merged is the row of an array with tasks of it; all rows, if there is one that
// cannot be read.
func merged(whole status.Job, tasks []status.Job) []status.Job {
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
