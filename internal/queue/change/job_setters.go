package change

import (
	"maps"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/value"
)

func textSetter(field func(*job.Job) *string) jobSetter {
	return func(c *jobChange, v string) error {
		*field(&c.b.Spec.Job) = v
		return nil
	}
}

// optionSetter parses the value as that of an option of sbatch. message is what the
// refusal of a value says before it.
func optionSetter(name, parameter, message string) jobSetter {
	return func(c *jobChange, v string) error {
		if option.Apply(option.Sbatch, &c.b.Spec.Job, name, v) != nil {
			return malformed(parameter, v, message+": "+v)
		}
		return nil
	}
}

func countSetter(name string, field func(*job.Shape) *int32) jobSetter {
	return func(c *jobChange, v string) error {
		n, err := value.CountOrZero(v)
		if err != nil {
			return invalidValue(name, v)
		}
		*field(&c.b.Spec.Job.Shape) = n
		return nil
	}
}

func memorySetter(name string, field func(*job.Shape) **int64) jobSetter {
	return func(c *jobChange, v string) error {
		n, err := strconv.ParseUint(v, 10, 31) // megabytes; the options' suffixes are refused here
		if err != nil {
			return invalidValue(name, v)
		}
		megabytes := int64(n)
		s := &c.b.Spec.Job.Shape
		s.MemPerNode, s.MemPerCPU, s.MemPerGPU = nil, nil, nil
		if *field(s) = &megabytes; megabytes == 0 { // all of the node's, as of --mem-per-cpu=0
			s.MemPerNode, s.MemPerCPU = &megabytes, nil
		}
		return nil
	}
}

// nodeListSetter returns the setter of a list of nodes. As in Slurm, the job shows the list
// as it was written: the job keeps that under the name of the option.
func nodeListSetter(name string, field func(*job.Placement) *[]string) jobSetter {
	return func(c *jobChange, v string) error {
		names, err := hostlist.Expand(v)
		if err != nil {
			return refusal.InvalidNode
		}
		var distinct []string
		seen := map[string]bool{}
		for _, name := range names {
			switch {
			case !c.Node(name):
				return refusal.InvalidNode
			case !seen[name]:
				seen[name], distinct = true, append(distinct, name)
			}
		}
		j := &c.b.Spec.Job
		*field(&j.Placement) = distinct
		options := maps.Clone(j.Options)
		if options == nil {
			options = map[string]string{}
		}
		if options[name] = v; len(distinct) == 0 {
			delete(options, name)
		}
		j.Options = options
		return nil
	}
}

func flagSetter(name string, field func(*job.Placement) *bool) jobSetter {
	return func(c *jobChange, v string) error {
		switch upper := strings.ToUpper(v); {
		case v == "1", v != "" && strings.HasPrefix("YES", upper):
			*field(&c.b.Spec.Job.Placement) = true
		case v == "0", v != "" && strings.HasPrefix("NO", upper):
			*field(&c.b.Spec.Job.Placement) = false
		default:
			return invalidValue(name, v)
		}
		return nil
	}
}
