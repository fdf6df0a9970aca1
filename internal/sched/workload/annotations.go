package workload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// Prefixes of the annotations with which a workload requests something of the queue: our
// own, and those of slurm-bridge, so that its users can keep their manifests.
const ownPrefix = "berth.hpc/"

var foreignPrefixes = []string{"slurmjob.slinky.slurm.net/", "slinky.slurm.net/"}

// BadAnnotation names the annotation that cannot be parsed.
type BadAnnotation struct {
	Name, Value, Why string
}

func (e *BadAnnotation) Error() string {
	return fmt.Sprintf("annotation %s=%q: %s", e.Name, e.Value, e.Why)
}

// setting parses one annotation into the job.
type setting func(j *job.Job, text string) error

// settings are the parsers by the name after the prefix. Names of slurm-bridge that
// differ are in aliases.
var settings = map[string]setting{
	"account":    text(func(j *job.Job) *string { return &j.Account }),
	"qos":        text(func(j *job.Job) *string { return &j.QOS }),
	"job-name":   text(func(j *job.Job) *string { return &j.Name }),
	"wckey":      text(func(j *job.Job) *string { return &j.WCKey }),
	"constraint": text(func(j *job.Job) *string { return &j.Placement.Constraint }),

	"reservation": text(func(j *job.Job) *string { return &j.Reservation }),
	"partition": func(j *job.Job, text string) error {
		j.Partitions = strings.Split(text, ",")
		if slices.Contains(j.Partitions, "") {
			return fmt.Errorf("an empty name")
		}
		return nil
	},
	"time-limit": func(j *job.Job, text string) (err error) {
		if j.Time.Limit, err = value.Minutes(text); err != nil {
			return fmt.Errorf("Invalid --time specification") //nolint:staticcheck // Slurm's text
		}
		return nil
	},
	"licenses": func(j *job.Job, text string) error {
		list, err := value.Licenses(text)
		if err != nil {
			return fmt.Errorf("Invalid license specification") //nolint:staticcheck // Slurm's text
		}
		j.Licenses = list
		return nil
	},
	"exclusive":      exclusive,
	"min-nodes":      count(func(j *job.Job) *int32 { return &j.Shape.MinNodes }),
	"max-nodes":      count(func(j *job.Job) *int32 { return &j.Shape.MaxNodes }),
	"tasks-per-node": count(func(j *job.Job) *int32 { return &j.Shape.TasksPerNode }),
	"nice": func(j *job.Job, text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("not a number from 0")
		}
		j.Nice = int32(n)
		return nil
	},
}

// aliases are slurm-bridge's names for settings.
var aliases = map[string]string{"timelimit": "time-limit", "constraints": "constraint"}

// ineffective are slurm-bridge's annotations that have no effect here, and why.
var ineffective = map[string]string{
	"user-id":      "pods of workloads belong to no user of the cluster",
	"group-id":     "pods of workloads belong to no user of the cluster",
	"priority":     "only an operator may set a priority",
	"cpu-per-task": "the pods' own requests count",
	"mem-per-node": "the pods' own requests count",
	"gres":         "the pods' own requests count",
}

func text(field func(*job.Job) *string) setting {
	return func(j *job.Job, s string) error {
		*field(j) = s
		return nil
	}
}

func count(field func(*job.Job) *int32) setting {
	return func(j *job.Job, s string) error {
		n, err := strconv.ParseInt(s, 10, 32)
		if err != nil || n < 1 {
			return fmt.Errorf("not a number from 1")
		}
		*field(j) = int32(n)
		return nil
	}
}

func exclusive(j *job.Job, s string) error {
	switch s {
	case "true", "node":
		j.Placement.Exclusive = "node"
	case "user":
		j.Placement.Exclusive = "user"
	case "false":
	default:
		return fmt.Errorf("neither true, false nor user")
	}
	return nil
}

// maxText bounds the texts that go into the queue, as for other jobs.
const maxText = 1024

// Apply sets in the job what the annotations request. layers are the annotations of
// the pod and of the objects that it belongs to, the nearest first: the nearest takes
// precedence, and ours over slurm-bridge's. ignored lists those that have no effect, with
// the reason. An error is a *BadAnnotation.
func Apply(j *job.Job, layers []map[string]string) (ignored []string, err error) {
	done := map[string]bool{}
	for _, layer := range layers {
		for _, prefix := range slices.Concat([]string{ownPrefix}, foreignPrefixes) {
			for _, key := range slices.Sorted(maps.Keys(layer)) {
				name, ours := strings.CutPrefix(key, prefix)
				if !ours {
					continue
				}
				if why := ineffective[name]; why != "" {
					ignored = append(ignored, fmt.Sprintf("annotation %s has no effect: %s", key, why))
					continue
				}
				if a := aliases[name]; a != "" && prefix != ownPrefix {
					name = a
				}
				set := settings[name]
				if set == nil && prefix != foreignPrefixes[1] {
					ignored = append(ignored, fmt.Sprintf("annotation %s is unknown", key))
				}
				if set == nil || done[name] {
					continue
				}
				done[name] = true
				if err := apply(set, j, layer[key]); err != nil {
					return nil, &BadAnnotation{key, layer[key], err.Error()}
				}
			}
		}
	}
	if j.Shape.MaxNodes > 0 && j.Shape.MinNodes > j.Shape.MaxNodes {
		return nil, &BadAnnotation{ownPrefix + "min-nodes", strconv.Itoa(int(j.Shape.MinNodes)), "more than max-nodes"}
	}
	return ignored, nil
}

func apply(set setting, j *job.Job, s string) error {
	switch {
	case s == "":
		return fmt.Errorf("empty")
	case len(s) > maxText || strings.ContainsAny(s, "\n\r\t\x00"):
		return fmt.Errorf("too long, or not one line")
	}
	return set(j, s)
}
