package option

import (
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/value"
)

// The setters below serve many rows; each takes the field it fills.

func text(field func(*Parsed) *string) setter {
	return func(p *Parsed, v string, _ bool) error {
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

// optFlag is a bool behind a pointer, set to on.
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

// memory fills one of the three memory fields. They exclude each other only
// where they come from the same source; a higher source replaces a lower one.
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

// hosts reads names of nodes, unless a file has them. inStep is what is said in a step of those that
// cannot be read.
func hosts(inStep string, field func(*Parsed) *[]string) setter {
	return func(p *Parsed, v string, _ bool) error {
		if strings.Contains(v, "/") { // a file: ReadNodes
			return nil
		}
		names, err := hostlist.Expand(v)
		if err != nil {
			p.badHosts = inStep
			return p.refuseLater(p.submission("Invalid node name specified"))
		}
		*field(p) = names
		return nil
	}
}

// refuseLater keeps a refusal that comes after all options have been read; it
// returns nil.
func (p *Parsed) refuseLater(err error) error {
	p.late = append(p.late, refusal{err: err})
	return nil
}

// refusal is an error that was put off. ofJob: a step takes no notice of it.
type refusal struct {
	err   error
	ofJob bool
}

// refuseJob is refuseLater for what only a new job is asked for: a step takes no
// notice of it.
func (p *Parsed) refuseJob(text string) error {
	p.late = append(p.late, refusal{p.submission(text), true})
	return nil
}

// noAllocation begins what srun says of a job that cannot be.
const noAllocation = "Unable to allocate resources: "

// submission is a refusal that in Slurm comes from the controller.
func (p *Parsed) submission(text string) error {
	switch p.Command {
	case Srun:
		text = noAllocation + text
	case Salloc:
		text = "Job submit/allocate failed: " + text
	default:
		text = "Batch job submission failed: " + text
	}
	return slurmerr.New(slurmerr.Refused, text)
}
