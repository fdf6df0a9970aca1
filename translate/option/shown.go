package option

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// Shown is an option as --verbose shows it.
type Shown struct{ Name, Value string }

// Defined returns the given options by name with their values as they were
// parsed, as Slurm's commands print them for --verbose. dir is the current
// directory. Aliases, such as --tasks-per-node and --ntasks-per-node, have one
// line.
func (p *Parsed) Defined(dir string) []Shown {
	var out []Shown
	for name, g := range p.Given {
		o := Lookup(p.Command, name)
		if o == nil || name == "het-group" { // which Slurm's commands do not show
			continue
		}
		text := g.Value
		if form := forms[name]; form != nil {
			text = form(p, g.Value)
		} else if o.Arg == NoArg || o.Arg == OptionalArg && text == "" {
			text = "set"
		}
		relative := name == "chdir" || p.Command == Sbatch && (name == "output" || name == "error" || name == "input")
		if relative && !path.IsAbs(text) {
			text = path.Join(dir, text)
		}
		out = append(out, Shown{name, text})
	}
	if p.jobNodes != "" { // Slurm's option for them has no name
		out = append(out, Shown{"(null)", p.jobNodes})
	}
	slices.SortFunc(out, func(a, b Shown) int { return strings.Compare(shownKey(a.Name), shownKey(b.Name)) })
	return out
}

// shownKey returns the name by which an option is sorted among those that are shown.
func shownKey(name string) string {
	if name == "jobid" {
		return "job-id"
	}
	return name
}

// Verbose returns the lines of Defined with the command's name in front, or "" if
// no option was given.
func (p *Parsed) Verbose(dir string) string {
	list := p.Defined(dir)
	if len(list) == 0 {
		return ""
	}
	const rule = "-------------------- --------------------\n"
	prefix := p.Command.String() + ": "
	var b strings.Builder
	b.WriteString(prefix + "defined options\n" + prefix + rule)
	for _, s := range list {
		fmt.Fprintf(&b, "%s%-20s: %s\n", prefix, s.Name, s.Value)
	}
	b.WriteString(prefix + rule + prefix + "end of defined options\n")
	return b.String()
}

// forms return the values that are not shown as they were written.
var forms = map[string]func(p *Parsed, given string) string{
	"bell":    func(*Parsed, string) string { return "bell-always" },
	"no-bell": func(*Parsed, string) string { return "bell-never" },
	"begin":   func(p *Parsed, given string) string { return instant(p.Job.Time.Begin, given) },
	"deadline": func(p *Parsed, given string) string {
		return instant(p.Job.Time.Deadline, given)
	},
	"bcast":               func(_ *Parsed, given string) string { return orSet(given) },
	"compress":            func(p *Parsed, _ string) string { return p.Job.Options["compress"] },
	"cores-per-socket":    number(func(p *Parsed) int32 { return p.Job.Shape.CoresPerSocket }),
	"core-spec":           number(func(p *Parsed) int32 { return p.Job.Shape.CoreSpec }),
	"cpu-freq":            func(_ *Parsed, given string) string { return title(given) },
	"cpus-per-gpu":        number(func(p *Parsed) int32 { return p.Job.Shape.CPUsPerGPU }),
	"cpus-per-task":       number(func(p *Parsed) int32 { return p.Job.Shape.CPUsPerTask }),
	"delay-boot":          func(_ *Parsed, given string) string { return clock(given) },
	"distribution":        func(p *Parsed, _ string) string { return p.Job.Placement.Distribution },
	"exclusive":           sharing,
	"oversubscribe":       sharing,
	"extra-node-info":     func(p *Parsed, _ string) string { return geometry(p.Job.Shape) },
	"error":               func(_ *Parsed, given string) string { return orNull(given) },
	"input":               func(_ *Parsed, given string) string { return orNull(given) },
	"output":              func(_ *Parsed, given string) string { return orNull(given) },
	"get-user-env":        func(p *Parsed, _ string) string { return p.Job.Options["get-user-env"] },
	"gid":                 func(p *Parsed, given string) string { return account(p.Client.GID, given) },
	"uid":                 func(p *Parsed, given string) string { return account(p.Client.UID, given) },
	"gres":                gresForm,
	"gres-flags":          func(_ *Parsed, given string) string { return strings.ToLower(given) },
	"immediate":           func(p *Parsed, _ string) string { return strconv.Itoa(int(*p.Client.Immediate)) },
	"kill-command":        func(p *Parsed, _ string) string { return value.SignalName(*p.Client.KillCommand) },
	"kill-on-bad-exit":    func(_ *Parsed, given string) string { return orOne(given) },
	"kill-on-invalid-dep": func(_ *Parsed, given string) string { return strings.ToLower(given) },
	"mail-type":           func(p *Parsed, _ string) string { return mailForm(p.Job.Mail.Types) },
	"mem":                 func(p *Parsed, _ string) string { return size(p.Job.Shape.MemPerNode) },
	"mem-bind":            func(p *Parsed, _ string) string { return p.Step.MemBind },
	"mem-per-cpu":         func(p *Parsed, _ string) string { return size(p.Job.Shape.MemPerCPU) },
	"mem-per-gpu":         func(p *Parsed, _ string) string { return size(p.Job.Shape.MemPerGPU) },
	"mincpus":             number(func(p *Parsed) int32 { return p.Job.Shape.MinCPUs }),
	"nice":                number(func(p *Parsed) int32 { return p.Job.Nice }),
	"no-kill":             func(p *Parsed, _ string) string { return setOrUnset(p.Job.Batch.NoKill) },
	"no-requeue":          func(*Parsed, string) string { return "no-requeue" },
	"nodelist":            func(p *Parsed, given string) string { return nodeListForm(p, given) },
	"nodes": func(p *Parsed, _ string) string {
		return value.FormatNodes(p.Job.Shape.MinNodes, p.Job.Shape.MaxNodes)
	},
	"ntasks":       number(func(p *Parsed) int32 { return p.Job.Shape.Tasks }),
	"open-mode":    func(p *Parsed, _ string) string { return p.Job.Batch.OpenMode },
	"power":        func(_ *Parsed, given string) string { return powerForm(given) },
	"priority":     func(p *Parsed, _ string) string { return priorityForm(p.Job.Priority) },
	"profile":      func(p *Parsed, _ string) string { return p.Job.Options["profile"] },
	"propagate":    func(_ *Parsed, given string) string { return orAll(given) },
	"requeue":      func(*Parsed, string) string { return "requeue" },
	"resv-ports":   func(_ *Parsed, given string) string { return orZero(given) },
	"send-libs":    func(_ *Parsed, given string) string { return librariesForm(given) },
	"signal":       func(p *Parsed, _ string) string { return signalForm(p.Job.Time) },
	"slurmd-debug": func(p *Parsed, _ string) string { return p.Job.Options["slurmd-debug"] },
	"switches":     func(p *Parsed, given string) string { return switchesForm(p, given) },
	"time":         func(p *Parsed, _ string) string { return value.FormatMinutes(p.Job.Time.Limit) },
	"time-min":     func(p *Parsed, _ string) string { return value.FormatMinutes(p.Job.Time.Min) },
	"tmp":          func(p *Parsed, _ string) string { return size(&p.Job.Shape.TmpDisk) },
	"verbose":      func(p *Parsed, _ string) string { return strconv.Itoa(p.Client.Verbose) },
	"wait":         func(p *Parsed, given string) string { return waitForm(p, given) },
}

func number(field func(*Parsed) int32) func(*Parsed, string) string {
	return func(p *Parsed, _ string) string { return strconv.Itoa(int(field(p))) }
}

func orDefault(text, missing string) string {
	if text == "" {
		return missing
	}
	return text
}

func orSet(text string) string  { return orDefault(text, "set") }
func orOne(text string) string  { return orDefault(text, "1") }
func orZero(text string) string { return orDefault(text, "0") }
func orAll(text string) string  { return orDefault(text, "ALL") }

func orNull(text string) string {
	if strings.EqualFold(text, "none") {
		return "/dev/null"
	}
	return text
}

func setOrUnset(on bool) string {
	if on {
		return "set"
	}
	return "unset"
}

// instant returns a time without a zone, in UTC if it is not resolved yet.
func instant(unix int64, given string) string {
	if unix == 0 {
		return given
	}
	return time.Unix(unix, 0).UTC().Format("2006-01-02T15:04:05")
}

func title(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// clock returns M or M:S as HH:MM:SS.
func clock(given string) string {
	s, err := value.Seconds(given)
	if err != nil {
		return "INVALID"
	}
	return value.FormatSeconds(s)
}

func sharing(p *Parsed, _ string) string {
	switch {
	case p.Job.Placement.OverSubscribe:
		return "oversubscribe"
	case p.Job.Placement.Exclusive == "node":
		return "exclusive"
	}
	return p.Job.Placement.Exclusive
}

func geometry(s job.Shape) string {
	var parts []string
	for _, n := range []int32{s.SocketsPerNode, s.CoresPerSocket, s.ThreadsPerCore} {
		text := ""
		if n > 0 {
			text = strconv.Itoa(int(n))
		}
		parts = append(parts, text)
	}
	return strings.TrimRight(strings.Join(parts, ":"), ":")
}

func account(id *int64, given string) string {
	if id == nil {
		return given
	}
	return strconv.FormatInt(*id, 10)
}

func gresForm(_ *Parsed, given string) string {
	if strings.EqualFold(given, "none") {
		return given
	}
	return "gres:" + strings.ReplaceAll(given, ",", ",gres:")
}

func size(mib *int64) string { return value.FormatMegabytes(*mib) }

func nodeListForm(p *Parsed, given string) string {
	if p.shortened != "" {
		return p.shortened
	}
	return given
}

func powerForm(given string) string {
	if strings.EqualFold(given, "level") {
		return "LEVEL"
	}
	return "unset"
}

func librariesForm(given string) string {
	if given == "" || strings.EqualFold(given, "yes") {
		return "set"
	}
	return "(null)"
}

func signalForm(t job.Time) string {
	text := value.SignalName(t.Signal)
	flags := ""
	if t.SignalResv {
		flags += "R"
	}
	if t.SignalBatch {
		flags += "B"
	}
	if flags != "" {
		text = flags + ":" + text
	}
	if t.SignalBefore != value.DefaultSignalTime {
		text += "@" + strconv.Itoa(int(t.SignalBefore))
	}
	return text
}

func switchesForm(p *Parsed, given string) string {
	text := strconv.Itoa(int(p.Job.Placement.Switches))
	if _, wait, timed := strings.Cut(given, "@"); timed {
		text += "@" + clock(wait)
	}
	return text
}

func waitForm(p *Parsed, _ string) string {
	if p.Command != Srun || p.Step.Wait == nil {
		return "set"
	}
	return strconv.Itoa(int(*p.Step.Wait))
}

// mailOrder is the order in which mail types are shown.
var mailOrder = []string{"ARRAY_TASKS", "INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT",
	"TIME_LIMIT_50", "TIME_LIMIT_80", "TIME_LIMIT_90", "TIME_LIMIT"}

func mailForm(types []string) string {
	var out []string
	for _, t := range mailOrder {
		if slices.Contains(types, t) {
			out = append(out, t)
		}
	}
	if len(out) == 0 {
		return "NONE"
	}
	return strings.Join(out, ",")
}

// priorityForm returns a priority as it is shown. nil means that the value was 0 or
// not a number.
func priorityForm(n *int64) string {
	if n == nil {
		return "0"
	}
	return strconv.Itoa(int(int32(*n)))
}
