package value

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
)

// dependTypes are the types that name jobs.
var dependTypes = []string{"after", "afterany", "afterok", "afternotok", "aftercorr", "afterburstbuffer", "expand"}

// Dependencies parses --dependency: terms TYPE:ID[:ID...] and singleton, separated by
// commas (all must be met) or question marks (one must be met). An id alone means
// afterany. Duplicates are dropped. An empty text means no dependency.
func Dependencies(s string) (job.Dependencies, error) {
	d := job.Dependencies{Any: strings.Contains(s, "?")}
	if s == "" {
		return d, nil
	}
	seen := map[dependKey]bool{}
	for part := range strings.SplitSeq(strings.ReplaceAll(s, "?", ","), ",") {
		items, err := dependTerm(part)
		if err != nil {
			return job.Dependencies{}, err
		}
		for _, item := range items {
			if k := keyOf(&item); !seen[k] {
				seen[k] = true
				d.Items = append(d.Items, item)
			}
		}
	}
	return d, nil
}

// UnreadableDependencies returns what stands for a text that is no list of dependencies, until
// the server refuses it: one on a job that cannot exist.
func UnreadableDependencies() job.Dependencies {
	return job.Dependencies{Items: []job.Dependency{{Type: "afterany"}}}
}

// dependKey is a comparable form of a dependency.
type dependKey struct {
	job.Dependency
	task int32
}

func keyOf(d *job.Dependency) dependKey {
	k := dependKey{*d, -1}
	if k.Task = nil; d.Task != nil {
		k.task = *d.Task
	}
	return k
}

// dependTerm parses one term.
func dependTerm(s string) ([]job.Dependency, error) {
	fields := strings.Split(s, ":")
	kind := strings.ToLower(fields[0])
	if kind == "singleton" && len(fields) == 1 {
		return []job.Dependency{{Type: kind}}, nil
	}
	isNumber := fields[0] != "" && fields[0][0] >= '0' && fields[0][0] <= '9'
	if len(fields) == 1 && isNumber {
		kind, fields = "afterany", []string{"", fields[0]}
	}
	if len(fields) < 2 || !slices.Contains(dependTypes, kind) {
		return nil, ErrInvalid
	}
	items := make([]job.Dependency, 0, len(fields)-1)
	for _, f := range fields[1:] {
		item, err := dependJob(kind, f)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// dependJob parses ID, ID_TASK or ID_*, each with an optional +MINUTES.
func dependJob(kind, s string) (job.Dependency, error) {
	item := job.Dependency{Type: kind}
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

// FormatDependencies formats d in the syntax of --dependency.
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
