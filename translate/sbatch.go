// Package translate translates a command line, an environment and a batch script
// to the neutral Job. It is pure: results depend only on the arguments, one of which
// is the function that reads files.
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

// Input is everything that a submission by sbatch depends on.
type Input struct {
	Args []string // the command line without the command's name
	Env  []string // NAME=value

	// Script is the text of the script, ScriptName its name on the command line,
	// and ScriptPath the path of its file (see Command). With --wrap all three
	// are empty. ScriptName is empty for a script from standard input.
	Script     []byte
	ScriptName string
	ScriptPath string

	Dir      string // current directory, absolute
	Hostname string
	Session  int32     // session id of the process; 0: unknown
	Now      time.Time // with the user's time zone
	Umask    int       // of the process; -1: unknown

	// Limits are the soft resource limits of the process, by Slurm's names.
	Limits map[string]uint64

	// ReadFile reads the files that options name (--export-file, --nodefile).
	ReadFile func(name string) ([]byte, error)

	// UID is that of the caller. Group resolves the name or number of a group
	// (--gid); nil: there are no groups.
	UID   int
	Group func(text string) (name string, gid int64, ok bool)

	// wrapped: any component has --wrap. Otherwise script has what readScript has read.
	wrapped bool
	script  *script
	// part is the index of the component of a heterogeneous job, and line the
	// whole command line.
	part     int
	line     string
	warnings []string
}

// Submission is the job to submit, and the options of the command itself.
type Submission struct {
	Job         job.Job
	Components  []job.Job // further ones, of a heterogeneous job
	Script      []byte
	Environment []string
	Client      option.Client
	// Warnings are lines to print before the submission, each after the command's
	// name.
	Warnings []string
	// Options is the list of parsed options that --verbose prints; empty without
	// it.
	Options string
}

// Sbatch returns the submission of a call of sbatch. Errors are *slurmerr.Error
// with Slurm's text. With those that Slurm's controller would send, the submission has
// Client alone.
func Sbatch(in Input) (*Submission, error) { return sbatch(in, false) }

// sbatch is Sbatch; if lenient is true, it also accepts options that Berth refuses.
func sbatch(in Input, lenient bool) (*Submission, error) {
	call, err := command(&in, lenient)
	if err != nil {
		return nil, err
	}
	s, err := submission(in, call, lenient)
	if err != nil {
		return s, call.AfterPower(err)
	}
	s.Warnings = append(call.power, s.Warnings...)
	return s, nil
}

// submission returns the submission of a call.
func submission(in Input, call *Call, lenient bool) (*Submission, error) {
	if call.Client.OnlyPrints() {
		return &Submission{Client: call.Client}, nil
	}
	if in.wrapped = call.Wrapped; !in.wrapped {
		in.script = readScript(&in)
	}
	parts, err := split(&in, call)
	if err != nil {
		return nil, err
	}
	if len(parts) > 1 {
		p, err := call.next(&in, lenient)
		if err != nil {
			return nil, err
		}
		return heterogeneous(parts, p)
	}
	p := option.New(option.Sbatch)
	p.Lenient, p.NotRoot = lenient, in.UID != 0
	return component(in, p)
}

// component returns the submission of one component of a heterogeneous job, or of
// the whole job. p has the options of earlier components that apply to it too.
func component(in Input, p *option.Parsed) (*Submission, error) {
	warnings, err := parse(&in, p)
	if err != nil {
		return nil, p.Corrected(err, false)
	}
	if p.Client.OnlyPrints() {
		return &Submission{Client: p.Client}, nil
	}
	j := &p.Job
	setNames(j, &in, p)
	if err := complete(&in, p); err != nil {
		return &Submission{Client: p.Client}, p.Corrected(err, true)
	}
	environment, err := environment(&in, p)
	if err != nil {
		return nil, err
	}
	options := ""
	if p.Client.Verbose > 0 {
		options = p.Verbose(in.Dir)
	}
	submitted := *j
	wholeMemory(&submitted.Shape)
	dropPastBegin(&submitted, &in)
	return &Submission{
		Options: options, Job: submitted, Script: in.Script, Environment: environment, Client: p.Client,
		Warnings: append(p.Warnings, warnings...),
	}, nil
}

// dropPastBegin removes a begin time that is not in the future: as in Slurm, it is as if it
// were not given.
func dropPastBegin(j *job.Job, in *Input) {
	if j.Time.Begin <= in.Now.Unix() {
		j.Time.Begin = 0
	}
}

// parse applies the options of script, environment and command line to p, in
// ascending precedence.
func parse(in *Input, p *option.Parsed) (warnings []string, err error) {
	foreign := ""
	if !in.wrapped {
		if in.script.err != nil {
			return nil, in.script.err
		}
		foreign = in.script.foreign
		if warnings, err = directives(in, p); err != nil {
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
		warnings = append(warnings,
			"warning: "+foreign+" lines of the script are ignored (--ignore-pbs suppresses this warning)")
	}
	return warnings, p.ResolveTimes(in.Now)
}

// wrap returns the script of --wrap.
func wrap(command string) []byte {
	return []byte("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n" + command + "\n")
}

// script is what a batch script says about its job.
type script struct {
	components [][]directive.Line
	warnings   []string // about separators of components
	foreign    string   // the marker of directives of another batch system, if there are any
	err        error    // what is wrong with the script or its directives
}

// readScript checks the script and reads its directives.
func readScript(in *Input) *script {
	if err := directive.Check(in.Script); err != nil {
		return &script{err: err}
	}
	name := in.ScriptName
	if name == "" {
		name = "stdin"
	}
	read, err := directive.Read(name, in.Script)
	if err != nil {
		return &script{err: err}
	}
	return &script{components: componentsOf(read.Lines), warnings: separatorWarnings(read.Lines), foreign: read.Foreign}
}

// directives applies the #SBATCH lines of a component.
func directives(in *Input, p *option.Parsed) (warnings []string, err error) {
	if in.part >= len(in.script.components) {
		return nil, nil
	}
	var words []string
	for _, line := range in.script.components[in.part] {
		words = append(words, line.Words...)
		if line.Cut {
			warnings = append(warnings, imageHint(line)...)
		}
		warnings = append(warnings, endWarning(line)...)
	}
	rest, err := p.Directives(words)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, slurmerr.New(slurmerr.BadValue, "Invalid directive found in batch script: "+rest[0])
	}
	return warnings, nil
}

// endWarning returns a warning about the words of a line that Slurm ignores: those after
// an empty word or after a separator that is not the first word.
func endWarning(line directive.Line) []string {
	if !line.Ignored {
		return nil
	}
	if !line.EndsAtSeparator() {
		return []string{fmt.Sprintf("warning: line %d: the words after %s are ignored", line.Number, line.End)}
	}
	return []string{fmt.Sprintf("warning: line %d: %s is not the first word, so it and the words after it are ignored",
		line.Number, line.End)}
}

// imageHint returns a hint about an image name that a comment cuts short: enroot
// separates registry and image by #, which starts a comment in a directive.
func imageHint(line directive.Line) []string {
	const name = "--container-image"
	value := line.Words[len(line.Words)-1]
	if v, ok := strings.CutPrefix(value, name+"="); ok {
		value = v
	} else if len(line.Words) < 2 || line.Words[len(line.Words)-2] != name {
		return nil
	}
	return []string{
		fmt.Sprintf("berth: hint: line %d: the image is %s, as an unquoted # starts a comment; write %s=\"%s#...\"",
			line.Number, value, name, value),
	}
}

// setNames sets the names of the job, its directory and files.
func setNames(j *job.Job, in *Input, p *option.Parsed) {
	b := &j.Batch
	b.SubmitHost, b.SubmitAddress, b.SubmitSID = in.Hostname, in.address(), in.Session
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
	if b.WorkDir == "" && p.Has("chdir") { // as Slurm shows an empty --chdir
		b.WorkDir = in.Dir + "/"
	}
	b.WorkDir = absolute(in.Dir, b.WorkDir)
	for _, f := range []*string{&b.Output, &b.Error, &b.Input} {
		if strings.EqualFold(*f, "none") {
			*f = "/dev/null"
		}
	}
	b.Rlimits = option.Propagated(p, in.Limits)
	setUmask(b, in)
}

// absolute returns name as an absolute path, relative to dir; an empty name is dir. As
// in Slurm the path is not cleaned: scontrol shows it as it was given.
func absolute(dir, name string) string {
	if path.IsAbs(name) {
		return name
	}
	if name == "" {
		return dir
	}
	return dir + "/" + name
}

// setUmask sets the umask of the job, if it is known.
func setUmask(b *job.Batch, in *Input) {
	if umask := env.Umask(in.Env, in.Umask); umask >= 0 {
		b.Umask = int32(umask) + 1
	}
}
