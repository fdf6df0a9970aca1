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
// all behind each other. What is left must be several tasks: the last one is a job
// like the others (asked of Slurm 22.05).
func MergeTasks(rows []status.Job) []status.Job {
	whole := map[int64]int{}
	for i := range rows {
		if r := &rows[i]; r.ArrayWhole && r.State == "PENDING" && several(r) {
			whole[r.ArrayJobID] = i
		}
	}
	more := map[int][]*status.Job{}
	for i := range rows {
		if r := &rows[i]; r.ArrayJobID != 0 && !r.ArrayWhole && r.State == "PENDING" {
			if at, ok := whole[r.ArrayJobID]; ok {
				more[at] = append(more[at], r)
			}
		}
	}
	if len(more) == 0 {
		return rows
	}
	out := make([]status.Job, 0, len(rows))
	for i, r := range rows {
		if tasks := more[i]; tasks != nil && !merge(&r, tasks) {
			return rows
		}
		if at, ok := whole[r.ArrayJobID]; !ok || at == i || !slices.Contains(more[at], &rows[i]) {
			out = append(out, r)
		}
	}
	return out
}

// several tells whether the row of an array stands for more than one task.
func several(whole *status.Job) bool {
	spec, _, _ := strings.Cut(whole.ArrayTaskID, "%")
	numbers, ok := ParseTasks(spec)
	return ok && len(numbers) > 1
}

// merge adds tasks to the row of their array.
func merge(whole *status.Job, tasks []*status.Job) bool {
	spec, throttle, limited := strings.Cut(whole.ArrayTaskID, "%")
	numbers, ok := ParseTasks(spec)
	if !ok {
		return false
	}
	set := make([]int32, 0, len(numbers)+len(tasks))
	for _, n := range numbers {
		set = append(set, int32(n))
	}
	reasons := []string{shownReason(whole)}
	for _, t := range tasks {
		n, err := strconv.ParseInt(t.ArrayTaskID, 10, 32)
		if err != nil {
			return false
		}
		set = append(set, int32(n))
		if r := shownReason(t); !slices.Contains(reasons, r) {
			reasons = append(reasons, r)
		}
	}
	slices.Sort(set)
	whole.ArrayTaskID = value.ArraySpec(set, 0)
	if limited {
		whole.ArrayTaskID += "%" + throttle
	}
	whole.Reason = strings.Join(reasons, ",")
	return true
}

func shownReason(j *status.Job) string {
	if j.Reason == "" {
		return "None"
	}
	return j.Reason
}
