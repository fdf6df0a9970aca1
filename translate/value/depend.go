package value

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
)

// dependTypes are the types that name jobs.
var dependTypes = []string{"after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer", "expand"}

// Dependencies reads --dependency: TYPE:ID[:ID...] terms and singleton, with
// commas (all must hold) or question marks (any) between them. A bare id means
// afterany. Repeated terms count once. The empty text is no dependency.
func Dependencies(s string) (job.Dependencies, error) {
	d := job.Dependencies{Any: strings.Contains(s, "?")}
	if s == "" {
		return d, nil
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(s, "?", ","), ",") {
		items, err := dependTerm(part)
		if err != nil {
			return job.Dependencies{}, err
		}
		for _, item := range items {
			if !slices.ContainsFunc(d.Items, item.same) {
				d.Items = append(d.Items, item.Dependency)
			}
		}
	}
	return d, nil
}

// dependItem is a job.Dependency that can be compared.
type dependItem struct{ job.Dependency }

func (i dependItem) same(o job.Dependency) bool {
	if i.Type != o.Type || i.JobID != o.JobID || i.AllTask != o.AllTask || i.Delay != o.Delay {
		return false
	}
	return i.Task == nil && o.Task == nil || i.Task != nil && o.Task != nil && *i.Task == *o.Task
}

func dependTerm(s string) ([]dependItem, error) {
	fields := strings.Split(s, ":")
	kind := strings.ToLower(fields[0])
	if kind == "singleton" && len(fields) == 1 {
		return []dependItem{{job.Dependency{Type: kind}}}, nil
	}
	if len(fields) == 1 && fields[0] != "" && fields[0][0] >= '0' && fields[0][0] <= '9' {
		kind, fields = "afterany", []string{"", fields[0]}
	}
	if len(fields) < 2 || !slices.Contains(dependTypes, kind) {
		return nil, ErrInvalid
	}
	var items []dependItem
	for _, f := range fields[1:] {
		item, err := dependJob(kind, f)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// dependJob reads ID, ID_TASK or ID_*, each with an optional +MINUTES.
func dependJob(kind, s string) (dependItem, error) {
	item := dependItem{job.Dependency{Type: kind}}
	id, delay, delayed := strings.Cut(s, "+")
	if delayed {
		n, err := CountOrZero(delay)
		if err != nil || !digits(delay) {
			return item, ErrInvalid
		}
		item.Delay = n
	}
	id, task, tasked := strings.Cut(id, "_")
	switch {
	case !tasked:
	case task == "*":
		item.AllTask = true
	default:
		n, err := index(task)
		if err != nil {
			return item, ErrInvalid
		}
		item.Task = &n
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1 || !digits(id) {
		return item, ErrInvalid
	}
	item.JobID = n
	return item, nil
}

// FormatDependencies writes d as --dependency takes it.
func FormatDependencies(d job.Dependencies) string {
	sep := ","
	if d.Any {
		sep = "?"
	}
	terms := make([]string, len(d.Items))
	for i, item := range d.Items {
		terms[i] = item.Type
		if item.Type == "singleton" {
			continue
		}
		terms[i] += ":" + strconv.FormatInt(item.JobID, 10)
		if item.AllTask {
			terms[i] += "_*"
		} else if item.Task != nil {
			terms[i] += "_" + strconv.Itoa(int(*item.Task))
		}
		if item.Delay != 0 {
			terms[i] += "+" + strconv.Itoa(int(item.Delay))
		}
	}
	return strings.Join(terms, sep)
}
