package translate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/directive"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// maxComponents is the maximum number of components of a heterogeneous job, which
// admission also enforces. Slurm 22.05 allows a thousand; here all components are
// in one object.
const maxComponents = 128

// split returns the Input of each component of a heterogeneous job: its part of
// the command line, between the colons, and of the script's directives, between
// the hetjob lines. The first component runs the script with its arguments. Other
// jobs have one component.
func split(in *Input, call *Call) ([]Input, error) {
	segments := call.segments
	count := len(segments)
	var warnings []string
	if !in.wrapped { // an error of the script is reported when the directives are parsed
		count = max(count, len(in.script.components))
		warnings = in.script.warnings
	}
	if count == 1 {
		return []Input{*in}, nil
	}
	if err := checkComponents(count); err != nil {
		return nil, err
	}
	parts := make([]Input, count)
	for i := range parts {
		part := *in
		part.part = i
		part.line = "sbatch " + strings.Join(in.Args, " ")
		// The last part of the command line applies to all further components.
		part.Args = slices.Concat(segments[min(i, len(segments)-1)], call.command)
		if i == 0 {
			part.warnings = warnings
		}
		parts[i] = part
	}
	return parts, nil
}

// Segments returns the options of each component on the command line of sbatch or
// salloc; command is the script, or program, and its arguments. A part with a
// syntax error is the last one: parsing it returns the error.
func Segments(c option.Command, args []string) (parts [][]string, command []string) {
	for {
		_, rest, err := option.Scan(c, args)
		if err != nil {
			return append(parts, args), nil
		}
		parts = append(parts, args[:len(args)-len(rest)])
		if len(rest) == 0 || rest[0] != ":" {
			return parts, rest
		}
		args = rest[1:]
	}
}

// componentsOf splits directives at the separators of components.
func componentsOf(lines []directive.Line) [][]directive.Line {
	var out [][]directive.Line
	begin := 0
	for i := range lines {
		if lines[i].Separator {
			out = append(out, lines[begin:i])
			begin = i + 1
		}
	}
	return append(out, lines[begin:])
}

// separatorWarnings returns the warnings about separators of components.
func separatorWarnings(lines []directive.Line) (warnings []string) {
	deprecated := false
	for _, l := range lines {
		if !l.Separator {
			continue
		}
		deprecated = deprecated || strings.EqualFold(l.Words[0], directive.OldSeparator)
		if len(l.Words) > 1 && !strings.HasPrefix(l.Words[1], "#") {
			warnings = append(warnings,
				fmt.Sprintf("warning: line %d: the words after %s are ignored", l.Number, l.Words[0]))
		}
	}
	if deprecated {
		warnings = append(warnings, oldSeparatorWarning)
	}
	return warnings
}

// oldSeparatorWarning is Slurm's warning about the deprecated separator.
const oldSeparatorWarning = `Warning: the "packjob" component separator is being deprecated. ` +
	`Please, use "hetjob" instead.`

// afterWarning returns the error with the warning before it that Slurm prints when it comes
// to the deprecated separator.
func afterWarning(err error, in *Input) error {
	e, ok := errors.AsType[*slurmerr.Error](err)
	if ok && !in.wrapped && slices.Contains(in.script.warnings, oldSeparatorWarning) {
		e.Before = append([]string{"sbatch: " + oldSeparatorWarning}, e.Before...)
	}
	return err
}

// heterogeneous returns the submission of several components. p holds the options
// of the whole command line, the initial options of the first component.
func heterogeneous(parts []Input, p *option.Parsed) (*Submission, error) {
	var submission *Submission
	for i := range parts {
		s, err := component(parts[i], p)
		if err != nil {
			if i > 0 { // the separator is behind the options of the first component
				err = afterWarning(err, &parts[i])
			}
			return nil, err
		}
		if s.Client.OnlyPrints() {
			return s, nil
		}
		if s.Job.Array != nil {
			return nil, afterWarning(p.RefusedByController("Invalid job array specification"), &parts[i])
		}
		if p, err = p.NextComponent(); err != nil {
			return nil, err
		}
		s.Job.Het = &job.Het{Offset: int32(i), Size: int32(len(parts))}
		if i == 0 {
			submission = s
			submission.Warnings = append(parts[0].warnings, submission.Warnings...)
			continue
		}
		if s.Client.Wrap != nil {
			submission.Script = s.Script
		}
		// These options delay the whole job.
		if s.Job.Hold == "" {
			s.Job.Hold = submission.Job.Hold
		}
		if len(s.Job.Dependencies.Items) == 0 {
			s.Job.Dependencies = submission.Job.Dependencies
		}
		s.Job.Time.Begin = max(s.Job.Time.Begin, submission.Job.Time.Begin)
		submission.Components = append(submission.Components, s.Job)
		submission.Warnings = append(submission.Warnings, s.Warnings...)
		mergeClient(&submission.Client, &s.Client)
	}
	return submission, nil
}

// mergeClient adds the options of sbatch itself, which any component may have, into to.
func mergeClient(to, from *option.Client) {
	to.Wait = to.Wait || from.Wait
	to.Parsable = to.Parsable || from.Parsable
	to.TestOnly = to.TestOnly || from.TestOnly
	to.Quiet, to.Verbose = max(to.Quiet, from.Quiet), max(to.Verbose, from.Verbose)
}
