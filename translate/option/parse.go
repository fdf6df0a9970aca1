package option

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// errNumber is a setter's answer to a count that is none.
var errNumber = errors.New("invalid numeric value")

// New makes an empty Parsed for command c.
func New(c Command) *Parsed {
	return &Parsed{Command: c, Given: map[string]Given{}}
}

// Parse reads the environment (NAME=value entries) and then the command line
// of c, without the command's own name. Begin and deadline are still texts;
// see ResolveTimes. Errors are *slurmerr.Error, in Slurm's words.
func Parse(c Command, args, env []string) (*Parsed, error) {
	p := New(c)
	if err := p.Environment(env); err != nil {
		return nil, err
	}
	if err := p.CommandLine(args); err != nil {
		return nil, err
	}
	return p, nil
}

// CommandLine applies the options at the front of args and keeps the rest in
// p.Args. As in Slurm they are judged one by one: the first that is wrong, or
// that asks for a text, is the last that is looked at.
func (p *Parsed) CommandLine(args []string) error {
	found, rest, wrong := getopt(p.Command, args)
	p.Args = rest
	if err := p.applyAll(found, FromCommandLine); err != nil || p.Client.Asks() {
		return err
	}
	return wrong
}

// Directive applies the words of one #SBATCH line. Words that are no options
// are returned: the caller knows what to say about them.
func (p *Parsed) Directive(words []string) (rest []string, err error) {
	found, rest, err := getopt(p.Command, words)
	if err != nil {
		return nil, err
	}
	return rest, p.applyAll(found, FromScript)
}

// stepGRES counts inside of jobs alone.
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
	p.switchesWait = switchesWait(vars[p.Command.envPrefix()+"WAIT4SWITCH"])
	for _, o := range table {
		if o.In&p.Command == 0 {
			continue
		}
		for _, name := range o.EnvNames(p.Command) {
			val, ok := vars[name]
			if name == "SLURM_DISTRIBUTION" && val == "plane" { // as a job has it
				val += "=" + vars["SLURM_DIST_PLANESIZE"]
			}
			if !ok || name == stepGRES && !p.insideJob {
				continue
			}
			if err := p.applyAll([]occurrence{{o, val, val != "" || o.Arg == RequiredArg}}, FromEnv); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Parsed) applyAll(found []occurrence, from Source) error {
	p.from = from
	for _, f := range found {
		if err := p.apply(f); err != nil || p.Client.Asks() {
			return err
		}
	}
	return nil
}

func (p *Parsed) apply(f occurrence) error {
	o := f.option
	status, reason := o.For(p.Command)
	if status == Refused && !p.Lenient {
		return slurmerr.Newf(slurmerr.Refused, "--%s is not possible here: %s", o.Name, reason)
	}
	if o.Arg == NoArg && p.from == FromEnv && switchedOff(f.value) {
		return nil
	}
	if err := o.take(p, f); err != nil {
		return o.explain(f.value, err)
	}
	p.remember(f)
	_, again := p.Given[o.Name]
	p.Given[o.Name] = Given{f.value, p.from}
	// A job's own environment holds variables that srun reads; what they ask
	// for was said when the job was submitted.
	quiet := p.Command == Srun && p.from == FromEnv
	if status == Warned && !again && !quiet {
		p.Warnings = append(p.Warnings, cmp.Or(o.Says, fmt.Sprintf("warning: --%s has no effect: %s", o.Name, reason)))
	}
	return nil
}

// notNumeric refuses a count with the exit code that Slurm always has for it.
func notNumeric(format string, args ...any) error {
	e := slurmerr.Newf(slurmerr.Refused, format, args...)
	e.Code = 1
	return e
}

// take stores the value: through the row's setter, or as text.
func (o *Option) take(p *Parsed, f occurrence) error {
	if o.set != nil {
		return o.set(p, f.value, f.has)
	}
	p.keep(o.Name, f.value)
	return nil
}

// keep stores an option that has no field of its own.
func (p *Parsed) keep(name, v string) {
	if p.Job.Options == nil {
		p.Job.Options = map[string]string{}
	}
	p.Job.Options[name] = v
}

// switchedOff reads the value of a variable that stands for a switch.
func switchedOff(v string) bool {
	switch strings.ToLower(v) {
	case "0", "no", "false":
		return true
	}
	return false
}

// explain puts a setter's error into Slurm's words.
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
	case errors.As(err, &bind) && o.Name == "cpu-bind":
		e := slurmerr.New(slurmerr.Fatal, "Failed to parse --cpu-bind= values.")
		e.Before = []string{"srun: error: " + bind.Text}
		return e
	case errors.As(err, &bind):
		return slurmerr.New(slurmerr.BadValue, bind.Text)
	case errors.Is(err, errNumber):
		return notNumeric("Invalid numeric value %q for %s.", v, o.numericName())
	}
	return slurmerr.Newf(slurmerr.BadValue, "Invalid --%s specification", o.Name)
}

// numericName is how an option is called where its value is no number.
func (o *Option) numericName() string {
	switch o.Name {
	case "immediate":
		return o.Name
	case "resv-ports":
		return "--resv-port"
	}
	return "--" + o.Name
}

func instantError(name, text string, err error) error {
	e := slurmerr.Newf(slurmerr.BadValue, "Invalid --%s specification", name)
	var at *value.InstantError
	if errors.As(err, &at) {
		e.Before = []string{fmt.Sprintf("Invalid time specification (pos=%d): %s", at.Pos, text)}
	}
	return e
}

// Scan names the options on a command line and gives what follows them. It
// fails on what getopt refuses and looks at no values.
func Scan(c Command, args []string) (names, rest []string, err error) {
	found, rest, err := getopt(c, args)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range found {
		names = append(names, f.option.Name)
	}
	return names, rest, nil
}
