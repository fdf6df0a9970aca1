package option

import (
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/value"
)

// The functions below return setters that several rows share. field returns the
// field that the setter fills.

func text(field func(*Parsed) *string) setter {
	return func(p *Parsed, v string, _ bool) error {
		*field(p) = v
		return nil
	}
}

// identity returns the setter of an option that only root may use.
func identity(name string, field func(*Parsed) *string) setter {
	return func(p *Parsed, v string, _ bool) error {
		if p.NotRoot {
			return slurmerr.Newf(slurmerr.BadValue, "--%s only permitted by root user", name)
		}
		*field(p) = v
		return nil
	}
}

func flag(field func(*Parsed) *bool) setter {
	return func(p *Parsed, _ string, _ bool) error {
		*field(p) = true
		return nil
	}
}

// optFlag returns a setter of an optional bool, which it sets to on.
func optFlag(on bool, field func(*Parsed) **bool) setter {
	return func(p *Parsed, _ string, _ bool) error {
		*field(p) = &on
		return nil
	}
}

func count(field func(*Parsed) *int32) setter {
	return func(p *Parsed, v string, _ bool) error {
		n, err := value.Count(v)
		if err != nil {
			return errNumber
		}
		*field(p) = n
		return nil
	}
}

func countOrZero(field func(*Parsed) *int32) setter {
	return func(p *Parsed, v string, _ bool) error {
		n, err := value.CountOrZero(orZero(v))
		if err != nil {
			return errNumber
		}
		*field(p) = n
		return nil
	}
}

func minutes(field func(*Parsed) *int32) setter {
	return func(p *Parsed, v string, _ bool) (err error) {
		n, err := value.Minutes(v)
		if err != nil {
			return err
		}
		*field(p) = n
		return nil
	}
}

// memory returns a setter of one of the three memory fields. They are mutually
// exclusive only if they come from the same source; a higher source replaces a
// lower one (resolveMemory).
func memory(field func(*Parsed) **int64) setter {
	return func(p *Parsed, v string, _ bool) error {
		n, err := value.Megabytes(v)
		if err != nil {
			return err
		}
		*field(p) = &n
		return nil
	}
}

// setNodeList stores the nodes that the job must have. Their names may also be in a file,
// which ReadNodes reads. A bracket that is not closed stands for a node that does not exist.
func setNodeList(p *Parsed, v string, _ bool) error {
	if p.Preliminary || strings.Contains(v, "/") { // the path of a file
		return nil
	}
	if strings.Trim(v, ", ") == "" && p.Command != Sbatch && p.from == FromCommandLine {
		return p.refuseJob("Node count specification invalid")
	}
	names, err := hostlist.ExpandLenient(v)
	if err != nil {
		p.badHosts = "Requested node configuration is not available"
		if line := hostlist.RangeError(err); line != "" {
			return p.refuseLater(slurmerr.New(slurmerr.Refused, line+"\nmemory allocation failure"))
		}
		return p.refuseAsController("Invalid node name specified")
	}
	p.Job.Placement.NodeList = names
	return nil
}

// noNode is a name that no node has. It stands for a list of excluded nodes that cannot be read,
// as Slurm's controller reads the list after it has found other errors.
const noNode = "]"

// setExclude is setNodeList for the nodes that the job must not have.
func setExclude(p *Parsed, v string, _ bool) error {
	if p.Preliminary || strings.Contains(v, "/") {
		return nil
	}
	names, err := hostlist.Expand(v)
	if err != nil {
		names = []string{noNode}
	}
	p.Job.Placement.Exclude = names
	return nil
}

// refusal is an error that Verify reports.
type refusal struct {
	err error // found by the command itself
	// reason, if not empty, is the reason that Slurm's controller would send; err is
	// nil then.
	reason string
	ofJob  bool   // VerifyStep ignores it
	before string // what the command says before it
	option string // whose value is refused; empty: several options contradict each other
}

// refuseLater records an error for Verify and returns nil.
func (p *Parsed) refuseLater(err error) error {
	p.deferred = append(p.deferred, refusal{err: err})
	return nil
}

// refuseAsController is refuseLater for an error that Slurm's controller finds.
func (p *Parsed) refuseAsController(reason string) error {
	p.deferred = append(p.deferred, refusal{reason: reason})
	return nil
}

// refuseJob is refuseAsController for options that only a new job has; a step ignores
// the refusal.
func (p *Parsed) refuseJob(reason string) error {
	p.deferred = append(p.deferred, refusal{reason: reason, ofJob: true})
	return nil
}

// RefusedByController returns a refusal of the whole job that Slurm's controller would send,
// as --test-only or a submission prints it.
func (p *Parsed) RefusedByController(reason string) error {
	if p.Client.TestOnly {
		return &slurmerr.Error{
			Kind: slurmerr.Refused, Code: 1, ByController: true, Before: []string{"allocation failure: " + reason},
		}
	}
	return p.submission(reason)
}

// submission returns a refusal of the kind that Slurm's controller sends.
func (p *Parsed) submission(text string) error {
	switch p.Command {
	case Srun:
		text = "Unable to allocate resources: " + text
	case Salloc:
		text = "Job submit/allocate failed: " + text
	default:
		text = "Batch job submission failed: " + text
	}
	return &slurmerr.Error{Kind: slurmerr.Refused, Message: text, ByController: true}
}
