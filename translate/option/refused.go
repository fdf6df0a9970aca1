package option

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
)

const (
	invalidLicense = "Invalid license specification"
	invalidTimeMin = "Invalid time-min specification (exceeds job's time or other limits)"
)

// orderRefusals puts a --time-min above the time limit, which the server finds too, in place of
// licenses: Slurm's controller finds it first. Before everything else, it refuses --reboot.
func (p *Parsed) orderRefusals() {
	slices.SortStableFunc(p.deferred, func(a, b refusal) int {
		return cmp.Compare(orderOf(a), orderOf(b))
	})
	t := &p.Job.Time
	above := t.Min == job.Unlimited && t.Limit != job.Unlimited || t.Min > 0 && t.Limit > 0 && t.Min > t.Limit
	for i := range p.deferred {
		if r := &p.deferred[i]; above && r.reason == invalidLicense {
			r.reason = invalidTimeMin
		}
	}
}

// orderOf returns 0 for a refusal that comes before others, else 1.
func orderOf(r refusal) int {
	if r.option == "reboot" {
		return 0
	}
	return 1
}

// refused returns the first deferred refusal of a job or a step, or nil. What the command
// finds itself comes before what the controller would find.
func (p *Parsed) refused(step bool) error {
	elsewhere := "" // what Slurm leaves to the other cluster
	for _, r := range p.deferred {
		switch {
		case r.reason != "" || step && r.ofJob:
		case p.Client.Clusters != "" && isInvalidGRES(r.err) && !step:
			lines := strings.Split(r.err.Error(), "\n")
			elsewhere = cmp.Or(elsewhere, lines[len(lines)-1])
		default:
			return r.err
		}
	}
	for _, r := range p.deferred {
		switch {
		case r.reason == "" || step && r.ofJob:
		case r.before != "":
			return withBefore(p.RefusedByController(r.reason), p.Command.String()+": error: "+r.before)
		case p.Client.TestOnly:
			return p.RefusedByController(r.reason)
		case step:
			return slurmerr.Newf(slurmerr.Refused, "Unable to create step for job %d: %s", p.Step.JobID,
				cmp.Or(p.badHosts, r.reason))
		default:
			return p.submission(r.reason)
		}
	}
	if elsewhere != "" {
		return p.RefusedByController(elsewhere)
	}
	return nil
}

// isInvalidGRES reports whether an error is about a request for generic resources.
func isInvalidGRES(err error) bool {
	text := err.Error()
	return strings.HasSuffix(text, invalidGRES) || text == mixedGRES
}

// withBefore returns err with a line in front of it.
func withBefore(err error, line string) error {
	if e, ok := errors.AsType[*slurmerr.Error](err); ok {
		e.Before = append([]string{line}, e.Before...)
	}
	return err
}

// RefusedLocally reports whether srun itself finds why the job cannot be, in place of the
// controller.
func (p *Parsed) RefusedLocally() bool { return len(p.deferred) > 0 }
