package change

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// setNodeCount sets the number of nodes or a range of it. As in Slurm, a single number is
// the least one, and each node has a task. The size of a job that has started cannot be
// changed.
func setNodeCount(c *jobChange, v string) error {
	isZero := strings.TrimLeft(v, "0") == ""
	isRange := strings.Contains(v, "-")
	if Live(c.b) && !isZero && (!isRange || isDescending(v)) {
		return refusal.NotSupported
	}
	least, most, err := value.Nodes(v)
	if strings.HasPrefix(v, "-") && !isZero && err == nil {
		err = &value.CountError{} // -MOST, which only options accept
	}
	s := &c.b.Spec.Job.Shape
	switch {
	case isZero, isDescending(v), Pending(c.b) && err == nil && !isRange && s.MaxNodes > 0 && least > s.MaxNodes:
		return refusal.InvalidNodeCount
	case errors.As(err, new(*value.CountError)):
		return refuseSetting(
			status.CodeInvalidCount, "NumNodes", v, `Invalid numeric value "`+v+`" for requested node count.`,
		)
	case err != nil:
		return invalidValue("NumNodes", v)
	}
	s.MinNodes = least
	if isRange {
		s.MaxNodes = most
	}
	if s.Tasks > 0 {
		s.Tasks = max(s.Tasks, least)
	}
	return nil
}

// isDescending reports whether v is a range whose first number is the larger one.
func isDescending(v string) bool {
	first, last, found := strings.Cut(v, "-")
	a, errA := strconv.ParseUint(first, 10, 31)
	b, errB := strconv.ParseUint(last, 10, 31)
	return found && errA == nil && errB == nil && a > b
}

func setNumCPUs(c *jobChange, v string) error {
	err := c.setCPUs(v)
	if err != nil {
		return malformedCount(
			"NumCPUs", v, `Invalid numeric value "`+v+"\" for NumCPUs.\nInvalid NumCPUs value: "+v,
		)
	}
	return nil
}

// setCPUs sets the number of tasks to what the total of CPUs needs; of a range it
// uses the first number.
func (c *jobChange) setCPUs(v string) error {
	first, _, _ := strings.Cut(v, "-")
	n, err := value.Count(first)
	if err != nil {
		return err
	}
	s := &c.b.Spec.Job.Shape
	perTask := max(s.CPUsPerTask, 1)
	s.Tasks = max(1, (n+perTask-1)/perTask)
	return nil
}

func setTasks(c *jobChange, v string) error {
	n, err := value.Count(v)
	switch {
	case v == "0" && Pending(c.b):
		return refusal.InvalidTaskCount
	case v == "0":
		return nil // the state is refused afterwards
	case err != nil:
		return invalidValue("NumTasks", v)
	}
	c.b.Spec.Job.Shape.Tasks = n
	return nil
}

func setTmpDisk(c *jobChange, v string) error {
	n, err := strconv.ParseUint(v, 10, 31) // megabytes, without a unit
	if err != nil {
		return invalidValue("MinTmpDiskNode", v)
	}
	c.b.Spec.Job.Shape.TmpDisk = int64(n)
	return nil
}

// setGRES sets the generic resources of each node: a list of NAME[:TYPE][:COUNT].
func setGRES(c *jobChange, v string) error {
	if v == "" && Pending(c.b) {
		return refusal.InvalidTRES
	}
	terms := strings.Split(v, ",")
	if slices.Contains(terms, "none") && Pending(c.b) {
		return refusal.InvalidGRES
	}
	for i := range terms {
		terms[i] = "gres:" + strings.TrimPrefix(terms[i], "gres:")
	}
	return gresSetter(job.PerNode)(c, strings.Join(terms, ","))
}

// gresSetter returns the setter of the generic resources of a scope: a list of
// gres:NAME[:TYPE][:COUNT]. Scopes other than a node have GPUs only.
func gresSetter(per string) jobSetter {
	return func(c *jobChange, v string) error {
		if !Pending(c.b) {
			return nil // the state is refused afterwards
		}
		var terms []string
		for term := range strings.SplitSeq(v, ",") {
			name, found := strings.CutPrefix(term, "gres:")
			switch {
			case v == "":
				continue
			case !found:
				return refusal.InvalidTRES
			case per != job.PerNode && name != "gpu" && !strings.HasPrefix(name, "gpu:"):
				return refusal.InvalidGRES
			}
			terms = append(terms, name)
		}
		list, err := value.GRES(strings.Join(terms, ","), per)
		if err != nil {
			return refusal.InvalidGRES
		}
		j := &c.b.Spec.Job
		kept := slices.DeleteFunc(slices.Clone(j.Shape.GRES), func(g job.GRES) bool { return g.Per == per })
		j.Shape.GRES = append(kept, list...)
		options := maps.Clone(j.Options)
		if options == nil {
			options = map[string]string{}
		}
		delete(options, option.GPUOptions[per])
		if per == job.PerNode {
			options["gres"] = strings.Join(terms, ",")
		} else if len(terms) > 0 {
			options[option.GPUOptions[per]] = cmp.Or(strings.TrimPrefix(strings.TrimPrefix(terms[0], "gpu"), ":"), "1")
		}
		j.Options = options
		return nil
	}
}
