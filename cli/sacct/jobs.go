package sacct

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/value"
)

// namesJobs reports whether -j names jobs: an empty list is as if it were not given.
func (o *Options) namesJobs(v *option.Values) bool { return len(value.SplitJobs(v.Joined("jobs"))) > 0 }

// jobs reads -j: jobs, and steps of them.
func (o *Options) jobs(v *option.Values) error {
	o.steps = map[string][]string{}
	for _, text := range value.SplitJobs(v.Joined("jobs")) {
		job, step, err := parseJob(text)
		switch {
		case err != nil:
			return err
		case job == "0": // it stands for every job
			o.query.Jobs, o.steps = nil, map[string][]string{}
			return nil
		}
		o.query.Jobs = append(o.query.Jobs, job)
		o.steps[job] = append(o.steps[job], step)
	}
	return nil
}

func checkJobs(text string) error {
	for _, job := range value.SplitJobs(text) {
		if _, _, err := parseJob(job); err != nil {
			return err
		}
	}
	return nil
}

// parseJob parses ID, ID_TASK or ID+OFFSET, with .STEP or without. As in Slurm, what
// follows the digits of a number does not count. Every ID of 0 has the result "0".
func parseJob(text string) (job, step string, err error) {
	job, step, isStep := strings.Cut(text, ".")
	number, task, isTask := strings.Cut(job, "_")
	number, offset, isHet := strings.Cut(number, "+")
	id, ok := leadingDigits(number)
	switch {
	case !ok:
		return "", "", slurmerr.Newf(slurmerr.Fatal, "Bad job/step specified: %s", text)
	case id == "0":
		return id, "", nil
	}
	job = id
	if isHet {
		if offset, ok = leadingDigits(offset); !ok {
			return "", "", slurmerr.Newf(slurmerr.Fatal, "Bad hetjob offset specified: %s", id)
		}
		job += "+" + offset
	}
	if isTask && task != "*" {
		if task, ok = leadingDigits(task); !ok {
			return "", "", slurmerr.Newf(slurmerr.Fatal, "Bad job array element specified: %s", id)
		}
	}
	if isTask {
		job += "_" + task
	}
	switch {
	case !isStep:
	case step == "batch", step == "extern", step == "interactive":
	default:
		if step, ok = leadingStep(step); !ok {
			return "", "", slurmerr.Newf(slurmerr.Fatal, "Bad step specified: %s", job)
		}
	}
	return job, step, nil
}

// leadingDigits returns the digits at the beginning of text, without leading zeros. ok is
// false if there are none, or too many.
func leadingDigits(text string) (digits string, ok bool) {
	end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		text = text[:end]
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return strconv.FormatUint(n, 10), err == nil
}

// leadingStep parses a step: STEP, or STEP+OFFSET of a heterogeneous step.
func leadingStep(text string) (step string, ok bool) {
	number, offset, isHet := strings.Cut(text, "+")
	if step, ok = leadingDigits(number); ok && isHet {
		step += "+" + offset
	}
	return step, ok
}
