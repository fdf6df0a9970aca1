package option

import (
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
		n, err := value.CountOrZero(v)
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

func hosts(field func(*Parsed) *[]string) setter {
	return func(p *Parsed, v string, _ bool) error {
		names, err := hostlist.Expand(v)
		if err != nil {
			return p.refuseLater(p.submission("Invalid node name specified"))
		}
		*field(p) = names
		return nil
	}
}

// refuseLater keeps a refusal that comes after all options have been read; it
// returns nil.
func (p *Parsed) refuseLater(err error) error {
	p.late = append(p.late, err)
	return nil
}

// submission is a refusal that in Slurm comes from the controller.
func (p *Parsed) submission(text string) error {
	switch p.Command {
	case Srun:
		text = "Unable to allocate resources: " + text
	case Salloc:
		text = "Job submit/allocate failed: " + text
	default:
		text = "Batch job submission failed: " + text
	}
	return slurmerr.New(slurmerr.Refused, text)
}
