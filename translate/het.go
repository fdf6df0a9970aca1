package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/directive"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// maxComponents bounds a heterogeneous job; admission knows the same bound.
// Slurm 22.05 takes a thousand: components travel in one object here.
const maxComponents = 128

// split gives every component of a heterogeneous job an Input of its own: its
// part of the command line, between the colons, and of the script's directives,
// between the hetjob lines. The script and its arguments are the first one's,
// which runs it. One component: not such a job.
func split(in *Input, call *Call) ([]Input, error) {
	segments := call.segments
	count := len(segments)
	var warnings []string
	if !in.wrapped && directive.Check(in.Script) == nil {
		read, err := directive.Read(in.ScriptName, in.Script)
		if err == nil { // else it is said where the directives are read
			count = max(count, len(componentsOf(read.Lines)))
			warnings = separators(read.Lines)
		}
	}
	if count == 1 {
		return []Input{*in}, nil
	}
	if err := tooMany(count); err != nil {
		return nil, err
	}
	parts := make([]Input, count)
	for i := range parts {
		part := *in
		part.part = i
		part.line = "sbatch " + strings.Join(in.Args, " ")
		// The last part of the command line holds for all further components.
		part.Args = slices.Concat(segments[min(i, len(segments)-1)], call.command)
		if i == 0 {
			part.warnings = warnings
		}
		parts[i] = part
	}
	return parts, nil
}

// Segments are the options of each component on the command line of sbatch or
// salloc; command is the script, or program, and its arguments. A part that
// getopt refuses is the last: who reads it is told why.
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

// componentsOf parts directives at the lines that begin a further component.
func componentsOf(lines []directive.Line) [][]directive.Line {
	out := [][]directive.Line{nil}
	for _, l := range lines {
		if l.Separator {
			out = append(out, nil)
			continue
		}
		out[len(out)-1] = append(out[len(out)-1], l)
	}
	return out
}

// separators says what is to be said of the lines that part components.
func separators(lines []directive.Line) (warnings []string) {
	old := false
	for _, l := range lines {
		if !l.Separator {
			continue
		}
		old = old || strings.EqualFold(l.Words[0], directive.OldSeparator)
		if len(l.Words) > 1 && !strings.HasPrefix(l.Words[1], "#") {
			warnings = append(warnings, fmt.Sprintf("warning: line %d: what follows %s is not read", l.Number, l.Words[0]))
		}
	}
	if old {
		warnings = append(warnings, `Warning: the "packjob" component separator is being deprecated. Please, use "hetjob" instead.`)
	}
	return warnings
}

// heterogeneous is the submission of several components. p is what the whole
// command line says, with which the first of them begins.
func heterogeneous(parts []Input, p *option.Parsed) (*Submission, error) {
	var whole *Submission
	for i := range parts {
		s, err := component(parts[i], p)
		if err != nil || s.Client.Asks() {
			return s, err
		}
		if p, err = p.Next(); err != nil {
			return nil, err
		}
		if s.Job.Array != nil {
			return nil, slurmerr.New(slurmerr.Refused, "Batch job submission failed: Invalid job array specification")
		}
		s.Job.Het = &job.Het{Offset: int32(i), Size: int32(len(parts))}
		if i == 0 {
			whole = s
			whole.Warnings = append(parts[0].warnings, whole.Warnings...)
			continue
		}
		if s.Client.Wrap != nil {
			whole.Script = s.Script
		}
		// These are about when the job as a whole may start.
		if s.Job.Hold == "" {
			s.Job.Hold = whole.Job.Hold
		}
		if len(s.Job.Dependencies.Items) == 0 {
			s.Job.Dependencies = whole.Job.Dependencies
		}
		s.Job.Time.Begin = max(s.Job.Time.Begin, whole.Job.Time.Begin)
		whole.Components = append(whole.Components, s.Job)
		whole.Warnings = append(whole.Warnings, s.Warnings...)
		merge(&whole.Client, &s.Client)
	}
	return whole, nil
}

// merge takes over what sbatch itself is to do, whichever component says so.
func merge(to, from *option.Client) {
	to.Wait = to.Wait || from.Wait
	to.Parsable = to.Parsable || from.Parsable
	to.TestOnly = to.TestOnly || from.TestOnly
	to.Quiet, to.Verbose = max(to.Quiet, from.Quiet), max(to.Verbose, from.Verbose)
}
