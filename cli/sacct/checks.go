package sacct

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// checks returns those of values that Slurm refuses where they stand.
func (o *Options) checks() option.Checks {
	return option.Checks{
		"starttime": o.checkTime, "endtime": o.checkTime,
		"timelimit-min": checkTimeLimit, "timelimit-max": checkTimeLimit,
		"ncpus":  func(text string) error { return checkSpan(text, "cpu") },
		"nnodes": func(text string) error { return checkSpan(text, "node") },
		"units":  checkUnit,
		"jobs":   checkJobs,
		"flags":  func(text string) error { _, err := parseFlags(text); return err },
		"uid":    o.checkNames(&o.given.Users), "gid": o.checkNames(&o.given.Groups),
		"state": checkStates, "reason": checkReasons, "whole-hetjob": o.checkWholeHet, "nodelist": o.checkNodes(),
	}
}

func (o *Options) checkTime(text string) error {
	if text == "" {
		return nil
	}
	if _, err := value.PastInstant(text, o.p.Now()); err != nil {
		return badTime(text, err)
	}
	return nil
}

func checkTimeLimit(text string) error {
	if minutes, err := value.Minutes(text); err != nil || minutes == job.Unlimited {
		return slurmerr.New(slurmerr.Fatal, "Invalid time limit specification")
	}
	return nil
}

func checkSpan(text, what string) error {
	_, err := parseSpan(text, what)
	return err
}

// checkUnit checks the letter at the beginning.
func checkUnit(text string) error {
	e := &slurmerr.Error{Kind: slurmerr.Fatal, Message: "Invalid unit type"}
	switch {
	case text == "": // Slurm's message ends at the byte 0
		e.Before = []string{"sacct: error: Invalid unit type '"}
	case !strings.Contains("KMGTP", strings.ToUpper(text[:1])):
		e.Before = []string{fmt.Sprintf("sacct: error: Invalid unit type '%s'. Possible options are 'KMGTP'",
			printable.Escape(text[:1]))}
	default:
		return nil
	}
	return e
}

// checkNames keeps the names of users or groups, for the error about an unknown one, and
// refuses a list that is empty, or adds none to those of the lists before it.
func (o *Options) checkNames(to *[]string) func(string) error {
	seen := map[string]bool{}
	return func(text string) error {
		known := len(seen)
		for name := range strings.SplitSeq(text, ",") {
			if name != "" {
				seen[name] = true
			}
		}
		if len(seen) == known {
			return &slurmerr.Error{Code: 1} // Slurm says nothing
		}
		for name := range strings.SplitSeq(text, ",") {
			if _, err := strconv.ParseInt(name, 10, 64); name != "" && err != nil {
				*to = append(*to, name)
			}
		}
		return nil
	}
}

func checkStates(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if _, err := parseState(name); name != "" && err != nil {
			return err
		}
	}
	return nil
}

func checkReasons(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		if name != "" && !status.KnownReason(name) {
			return slurmerr.Newf(slurmerr.Fatal, "unrecognized job reason value '%s'", printable.Escape(name))
		}
	}
	return nil
}

// checkWholeHet parses yes or no, or the first letter of them.
func (o *Options) checkWholeHet(text string) error {
	switch strings.ToLower(text) {
	case "yes", "y":
		o.ownComponents = false
	case "no", "n":
		o.ownComponents = true
	default:
		return slurmerr.Newf(slurmerr.Refused, "Invalid --whole-hetjob value \"%s\". Valid values: [yes|no].",
			printable.Escape(text))
	}
	return nil
}

// checkNodes reports every list of nodes but the first, which counts.
func (o *Options) checkNodes() func(string) error {
	var first *string
	return func(text string) error {
		if first != nil {
			fmt.Fprintf(o.p.Err, "sacct: error: Already asked for nodes '%s'\n", printable.Escape(*first))
			return nil
		}
		first = &text
		return nil
	}
}
