package option

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// errNumber is the error of a setter whose value is not a valid number.
var errNumber = errors.New("invalid numeric value")

// New returns an empty Parsed for command c.
func New(c Command) *Parsed {
	return &Parsed{Command: c, Given: map[string]Given{}}
}

// Parse parses the environment (NAME=value entries) and then the command line of
// c, without the command's own name. Begin and deadline stay texts until
// ResolveTimes. Errors are *slurmerr.Error, in Slurm's words.
func Parse(c Command, args, env []string) (*Parsed, error) { return ParseAs(0, c, args, env) }

// ParseAs is Parse for the user with the uid: some options are only for root.
func ParseAs(uid int, c Command, args, env []string) (*Parsed, error) {
	p := New(c)
	p.NotRoot = uid != 0
	if err := p.Environment(env); err != nil {
		return nil, p.Corrected(err, false)
	}
	if err := p.CommandLine(args); err != nil {
		return nil, p.Corrected(err, false)
	}
	return p, nil
}

// CommandLine applies the options at the beginning of args and stores the rest in
// p.Args. As in Slurm, it stops at the first option that is wrong or that only
// prints a text, and ignores what follows.
func (p *Parsed) CommandLine(args []string) error {
	occurrences, operands, syntaxErr := grammars[p.Command]().parse(args)
	p.Args = operands
	if err := p.applyAll(occurrences, FromCommandLine); err != nil {
		return err
	}
	if p.Client.OnlyPrints() {
		return nil
	}
	return syntaxErr
}

// PowerErrors returns the errors about --power so far. Slurm's sbatch prints those of its command
// line twice, because it parses it twice.
func (p *Parsed) PowerErrors() (lines []string) {
	for _, w := range p.Warnings {
		if strings.HasPrefix(w, ignoredPower) {
			lines = append(lines, w)
		}
	}
	return lines
}

// Directives applies the words of the #SBATCH lines of a job, or of a component, and
// returns those that are not options. As in Slurm, the lines are one list of arguments:
// an option at the end of a line takes its argument from the next one.
func (p *Parsed) Directives(words []string) (operands []string, err error) {
	occurrences, operands, syntaxErr := grammars[p.Command]().parse(words)
	if err := p.applyAll(occurrences, FromScript); err != nil || p.Client.OnlyPrints() {
		return nil, err
	}
	return operands, syntaxErr
}

// stepGRES is an input variable that srun reads only inside a job.
const stepGRES = "SLURM_STEP_GRES"

// Environment applies the input variables among env.
func (p *Parsed) Environment(env []string) error {
	vars := make(map[string]string, len(env))
	for _, entry := range env {
		if name, val, ok := strings.Cut(entry, "="); ok && strings.HasPrefix(name, "S") {
			vars[name] = val
		}
	}
	if len(vars) == 0 {
		return nil
	}
	_, p.insideJob = vars["SLURM_JOB_ID"]
	if p.Command == Srun {
		p.jobNodes = vars["SLURM_JOB_NODELIST"]
	}
	p.switchesWait = switchesWait(vars[p.Command.envPrefix()+"WAIT4SWITCH"])
	for _, v := range variablesOf[p.Command]() {
		val, ok := vars[v.name]
		if v.name == "SLURM_DISTRIBUTION" && val == "plane" { // the form in a job's environment
			val += "=" + vars["SLURM_DIST_PLANESIZE"]
		}
		if !ok || v.name == stepGRES && !p.insideJob {
			continue
		}
		hasValue := val != "" || v.option.Arg == RequiredArg
		if err := p.applyAll([]occurrence{{v.option, val, hasValue}}, FromEnv); err != nil {
			return err
		}
	}
	return nil
}

// applyAll applies options until one is wrong or only prints a text.
func (p *Parsed) applyAll(occurrences []occurrence, from Source) error {
	p.from = from
	for _, f := range occurrences {
		if err := p.apply(f); err != nil || p.Client.OnlyPrints() {
			return err
		}
	}
	return nil
}

// apply stores one option in p, or returns why it is refused or wrong.
func (p *Parsed) apply(f occurrence) error {
	o := f.option
	status, reason := o.For(p.Command)
	if status == Refused && !p.Lenient && (!o.RootOnly || !p.NotRoot) {
		return slurmerr.Newf(slurmerr.Refused, "--%s is not possible here: %s", o.Name, reason)
	}
	if o.Arg == NoArg && p.from == FromEnv && switchedOff(f.value) {
		return nil
	}
	// A later value replaces a wrong one.
	p.deferred = slices.DeleteFunc(p.deferred, func(r refusal) bool { return r.option == o.Name })
	known := len(p.deferred)
	if err := o.store(p, f); err != nil {
		return o.explain(f.value, err)
	}
	for i := range p.deferred[known:] {
		p.deferred[known+i].option = o.Name
	}
	p.recordApplied(f)
	_, again := p.Given[o.Name]
	p.Given[o.Name] = Given{f.value, p.from}
	// A job's environment holds variables that srun reads. The user got the
	// warning about them when the job was submitted.
	quiet := p.Command == Srun && p.from == FromEnv && p.insideJob
	if status == Warned && !again && !quiet && !requestsNothing(f) {
		p.Warnings = append(p.Warnings,
			cmp.Or(o.Warning, fmt.Sprintf("warning: --%s has no effect: %s", o.Name, reason)))
	}
	return nil
}

// requestsNothing reports whether the value of an option is what applies without it, as
// --profile=none.
func requestsNothing(f occurrence) bool {
	none := f.option.Name == "profile" && strings.EqualFold(f.value, "none")
	return none || f.option.Arg == RequiredArg && f.value == "" && f.option.Warning == ""
}

// notNumeric returns the error about an invalid number, whose exit code is 1 in
// every command of Slurm.
func notNumeric(format string, args ...any) error {
	e := slurmerr.Newf(slurmerr.Refused, format, args...)
	e.Code = 1
	return e
}

// badNumber returns the error about a number that is not valid or is too large. what names
// the number.
func badNumber(v, what string) error {
	if value.TooLarge(v) {
		return notNumeric("Numeric argument (%d) to big for %s.", int64(math.MaxInt64), what)
	}
	return notNumeric("Invalid numeric value %q for %s.", v, what)
}

// store stores the value: through the row's setter, or as text.
func (o *Option) store(p *Parsed, f occurrence) error {
	if o.set != nil {
		return o.set(p, f.value, f.hasValue)
	}
	p.setText(o.Name, f.value)
	return nil
}

// setText stores an option that has no field of its own.
func (p *Parsed) setText(name, v string) {
	if p.Job.Options == nil {
		p.Job.Options = map[string]string{}
	}
	p.Job.Options[name] = v
}

// switchedOff reports whether the value of a variable turns its option off.
func switchedOff(v string) bool {
	switch strings.ToLower(v) {
	case "0", "no", "false":
		return true
	}
	return false
}

// explain returns a setter's error in Slurm's words.
func (o *Option) explain(v string, err error) error {
	var known *slurmerr.Error
	var count *value.CountError
	var bind *value.BindError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &count):
		return slurmerr.New(slurmerr.BadValue, count.Text)
	case errors.As(err, &bind) && o.Name == "distribution":
		return slurmerr.New(slurmerr.BadValue, bind.Text+"\nInvalid --distribution specification")
	case errors.As(err, &bind):
		return slurmerr.New(slurmerr.BadValue, bind.Text)
	case errors.Is(err, errNumber):
		return badNumber(v, o.numericName())
	}
	return slurmerr.Newf(slurmerr.BadValue, "Invalid --%s specification", o.Name)
}

// numericName returns the option's name as errors about its number have it.
func (o *Option) numericName() string {
	switch o.Name {
	case "immediate":
		return o.Name
	case "resv-ports":
		return "--resv-port"
	}
	return "--" + o.Name
}

// instantError returns the error about an invalid time of the named option.
func instantError(name, text string, err error) error {
	e := slurmerr.Newf(slurmerr.BadValue, "Invalid --%s specification", name)
	var at *value.InstantError
	if errors.As(err, &at) {
		e.Before = []string{fmt.Sprintf("Invalid time specification (pos=%d): %s", at.Pos, text)}
	}
	return e
}

// Scan returns the names of the options on a command line, and the operands. It
// fails on errors of syntax and does not check values.
func Scan(c Command, args []string) (names, operands []string, err error) {
	occurrences, operands, err := grammars[c]().parse(args)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range occurrences {
		names = append(names, f.option.Name)
	}
	return names, operands, nil
}

// HetGroup returns the last value of --het-group on a command line of srun, also if other options
// are wrong.
func HetGroup(args []string) (text string, given bool) {
	g := grammars[Srun]()
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && args[0] != "--" {
		found, rest, err := g.parseOption(args)
		if err != nil {
			rest = args[1:]
		}
		for _, o := range found {
			if o.option.Name == "het-group" {
				text, given = o.value, true
			}
		}
		args = rest
	}
	return text, given
}
