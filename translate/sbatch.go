// Package translate is the way from a command line, an environment and a
// script to the neutral Job. It is pure: everything it knows is in its
// arguments, and files are read by a function it is given.
package translate

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/directive"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// Input is all that a submission by sbatch depends on.
type Input struct {
	Args []string // the command line without the command's name
	Env  []string // NAME=value

	// Script is the script's text; ScriptName its name as it was given, and
	// ScriptPath where it was found (see Command). With --wrap all three are
	// empty. ScriptName is empty for a script from standard input.
	Script     []byte
	ScriptName string
	ScriptPath string

	Dir      string // current folder, absolute
	Hostname string
	Session  int32     // of the process; 0: not known
	Now      time.Time // with the user's time zone
	Umask    int       // of the process; -1: not known

	// Limits are the soft resource limits of the process, by Slurm's names.
	Limits map[string]uint64

	// ReadFile reads the files that options name (--export-file, --nodefile).
	ReadFile func(name string) ([]byte, error)

	// UID is the caller's; Group finds a group by its name or number (--gid). A
	// nil Group knows none.
	UID   int
	Group func(text string) (name string, gid int64, ok bool)

	// wrapped: --wrap is given, with any component.
	wrapped bool
	// Of a component of a heterogeneous job: which, and the command line as a
	// whole.
	part     int
	line     string
	warnings []string
}

// Submission is what sbatch sends, and what it does itself.
type Submission struct {
	Job         job.Job
	Components  []job.Job // further ones, of a heterogeneous job
	Script      []byte
	Environment []string
	Client      option.Client
	// Warnings are to be shown before the submission, one line each, behind the
	// command's name.
	Warnings []string
	// Options is the list of options as they were understood, which --verbose
	// shows; without it empty.
	Options string
}

// Sbatch turns a call of sbatch into a submission. Errors are *slurmerr.Error
// with Slurm's text.
func Sbatch(in Input) (*Submission, error) { return sbatch(in, false) }

// sbatch is Sbatch; lenient takes the options that are refused as well.
func sbatch(in Input, lenient bool) (*Submission, error) {
	call, err := command(&in, lenient)
	if err != nil {
		return nil, err
	}
	if call.Client.Asks() {
		return &Submission{Client: call.Client}, nil
	}
	in.wrapped = call.Wrapped
	parts, err := split(&in, call)
	if err != nil {
		return nil, err
	}
	if len(parts) > 1 {
		return heterogeneous(parts, call.before)
	}
	p := option.New(option.Sbatch)
	p.Lenient = lenient
	return component(in, p)
}

// component is sbatch for one component of a heterogeneous job, or the only
// one. p has what earlier components said for this one too.
func component(in Input, p *option.Parsed) (*Submission, error) {
	warnings, err := parse(&in, p)
	if err != nil {
		return nil, err
	}
	if p.Client.Asks() {
		return &Submission{Client: p.Client}, nil
	}
	j := &p.Job
	files(j, &in, p)
	if err := complete(&in, p); err != nil {
		return nil, err
	}
	environment, err := environment(&in, p)
	if err != nil {
		return nil, err
	}
	options := ""
	if p.Client.Verbose > 0 {
		options = p.Verbose(in.Dir)
	}
	return &Submission{
		Options: options, Job: *j, Script: in.Script, Environment: environment, Client: p.Client,
		Warnings: append(p.Warnings, warnings...),
	}, nil
}

// parse reads script, environment and command line, lowest first, into p.
func parse(in *Input, p *option.Parsed) (warnings []string, err error) {
	foreign := ""
	if !in.wrapped {
		if err := directive.Check(in.Script); err != nil {
			return nil, err
		}
		if foreign, warnings, err = directives(in, p); err != nil {
			return nil, err
		}
	}
	if err := p.Environment(in.Env); err != nil {
		return nil, err
	}
	if err := p.CommandLine(in.Args); err != nil {
		return nil, err
	}
	if p.Client.Wrap != nil {
		in.Script = wrap(*p.Client.Wrap)
	}
	if foreign != "" && !p.Client.IgnorePBS {
		warnings = append(warnings, "warning: "+foreign+" lines of the script are not read (--ignore-pbs drops this warning)")
	}
	return warnings, p.ResolveTimes(in.Now)
}

// wrap makes the script of --wrap.
func wrap(command string) []byte {
	return []byte("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + command + "\n")
}

// directives applies the #SBATCH lines. foreign is the marker of another batch
// system's lines, if there are some.
func directives(in *Input, p *option.Parsed) (foreign string, warnings []string, err error) {
	name := in.ScriptName
	if name == "" {
		name = "stdin"
	}
	read, err := directive.Read(name, in.Script)
	if err != nil {
		return "", nil, err
	}
	lines := componentsOf(read.Lines)
	if in.part >= len(lines) {
		return read.Foreign, nil, nil
	}
	for _, line := range lines[in.part] {
		rest, err := p.Directive(line.Words)
		if err != nil {
			return "", nil, err
		}
		if line.Cut {
			warnings = append(warnings, imageCut(line)...)
		}
		if len(rest) == 0 {
			continue
		}
		return "", nil, slurmerr.New(slurmerr.BadValue, "Invalid directive found in batch script: "+rest[0])
	}
	return read.Foreign, warnings, nil
}

// imageCut is a hint about an image whose name has lost its second half: with
// enroot a # parts registry and image, and to sbatch it begins a comment.
func imageCut(line directive.Line) []string {
	const name = "--container-image"
	value := line.Words[len(line.Words)-1]
	if v, ok := strings.CutPrefix(value, name+"="); ok {
		value = v
	} else if len(line.Words) < 2 || line.Words[len(line.Words)-2] != name {
		return nil
	}
	return []string{fmt.Sprintf("berth: hint: line %d: the image is %s: an unquoted # begins a comment; write %s=\"%s#...\"", line.Number, value, name, value)}
}

// files fills in names, folders and files.
func files(j *job.Job, in *Input, p *option.Parsed) {
	b := &j.Batch
	b.SubmitHost, b.SubmitSID = in.Hostname, in.Session
	b.SubmitLine = "sbatch " + strings.Join(in.Args, " ")
	if in.line != "" {
		b.SubmitLine = in.line
	}
	b.Command = in.ScriptPath
	if len(p.Args) > 1 {
		b.Args = p.Args[1:]
	}
	if !p.Has("job-name") {
		switch {
		case in.wrapped:
			j.Name = "wrap"
		case in.ScriptName == "":
			j.Name = "sbatch"
		default:
			j.Name = path.Base(in.ScriptName)
		}
	}
	switch {
	case b.WorkDir == "":
		b.WorkDir = in.Dir
	case !path.IsAbs(b.WorkDir):
		b.WorkDir = path.Join(in.Dir, b.WorkDir)
	}
	for _, f := range []*string{&b.Output, &b.Error, &b.Input} {
		if strings.EqualFold(*f, "none") {
			*f = "/dev/null"
		}
	}
	b.Rlimits = option.Propagated(p, in.Limits)
	if umask := env.Umask(in.Env, in.Umask); umask >= 0 {
		b.Umask = int32(umask) + 1
	}
}
