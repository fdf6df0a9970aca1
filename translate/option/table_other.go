package option

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// syntaxTime stands for the current time when only the syntax of a time is checked.
var syntaxTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// otherOptions returns the options about the command itself.
func otherOptions() []*Option {
	return []*Option{
		{Name: "parsable", In: Sbatch, Group: GroupOther, Help: "print only the job id",
			set: flag(func(p *Parsed) *bool { return &p.Client.Parsable })},
		{Name: "wait", Short: 'W', In: Sbatch, Env: "WAIT", Group: GroupOther,
			Help: "wait until the job has ended, and exit with its exit code",
			set:  flag(func(p *Parsed) *bool { return &p.Client.Wait })},
		{Name: "test-only", In: Sbatch | Srun, Group: GroupOther,
			Help: "print when and where the job would start, without submitting it",
			set:  flag(func(p *Parsed) *bool { return &p.Client.TestOnly })},
		{Name: "quiet", Short: 'Q', In: all, Group: GroupOther, Help: "print errors only",
			set: setQuiet},
		{Name: "verbose", Short: 'v', In: all, Group: GroupOther, Env: "DEBUG",
			Help: "increase verbosity; may be repeated", set: setVerbose},
		{Name: "no-shell", In: Salloc, Group: GroupOther, Help: "do not run a command in the allocation",
			set: flag(func(p *Parsed) *bool { return &p.Client.NoShell })},
		{Name: "bell", In: Salloc, Env: "BELL", Group: GroupOther, Help: "ring the bell when the allocation is granted",
			set: func(p *Parsed, _ string, _ bool) error { p.Client.Bell = "always"; return nil }},
		{Name: "no-bell", In: Salloc, Env: "NO_BELL", Group: GroupOther, Help: "never ring the bell",
			set: func(p *Parsed, _ string, _ bool) error { p.Client.Bell = "never"; return nil }},
		{Name: "kill-command", Short: 'K', Arg: OptionalArg, Meta: "SIGNAL", In: Salloc, Env: "KILL_CMD",
			Group: GroupOther,
			Help:  "signal to send to the command when the allocation ends", set: setKillCommand},
		{Name: "clusters", Aliases: []string{"cluster"}, Short: 'M', Arg: RequiredArg, Meta: "NAMES", In: all,
			Group: GroupOther,
			EnvFull: map[Command][]string{
				Sbatch: {"SLURM_CLUSTERS", "SBATCH_CLUSTERS"}, Salloc: {"SLURM_CLUSTERS", "SALLOC_CLUSTERS"},
				Srun: {"SLURM_CLUSTERS"},
			},
			Help: "clusters to submit to; of several, the one where the job starts first",
			set:  text(func(p *Parsed) *string { return &p.Client.Clusters })},
		{Name: "uid", Arg: RequiredArg, Meta: "USER", In: all, Group: GroupOther,
			Limits:   []Limit{{In: Srun | Salloc, Status: Refused, Reason: "a step runs as the user who starts it"}},
			RootOnly: true,
			Help:     "user to run as (root only)",
			set:      identity("uid", func(p *Parsed) *string { return &p.Client.AsUser })},
		{Name: "gid", Arg: RequiredArg, Meta: "GROUP", In: all, Group: GroupOther,
			Help: "group to run as (root only)",
			set:  identity("gid", func(p *Parsed) *string { return &p.Client.AsGroup })},
		{Name: "acctg-freq", Arg: RequiredArg, Meta: "INTERVALS", In: all, Env: "ACCTG_FREQ", Group: GroupOther,
			Status: Warned, Reason: "usage is not sampled at intervals", Help: "sampling intervals of resource usage",
			set: setAcctgFreq},
		{Name: "profile", Arg: RequiredArg, Meta: "TYPES", In: all, Env: "PROFILE", Group: GroupOther,
			Status: Warned, Reason: "profiles are not collected", Help: "profiles to collect", set: setProfile},
		{Name: "power", Arg: RequiredArg, Meta: "FLAGS", In: all, Env: "POWER", Group: GroupOther,
			Help: "power management, which is recorded and has no effect without a plugin, as in Slurm", set: setPower},
		{Name: "cpu-freq", Arg: RequiredArg, Meta: "FREQUENCY", In: all, Group: GroupOther,
			Env: "CPU_FREQ_REQ", Status: Warned, Reason: "CPU frequencies are not changed",
			Help: "frequency of the CPUs", set: setCPUFreq},
		{Name: "context", Arg: RequiredArg, Meta: "CONTEXT", In: all, Group: GroupOther,
			Status: Warned, Reason: "SELinux contexts are set by the partition", Help: "SELinux context"},
		{Name: "help", Short: 'h', In: all, Group: GroupOther, Help: "print this help",
			set: clientOnly(func(p *Parsed) *bool { return &p.Client.Help })},
		{Name: "usage", In: all, Group: GroupOther, Help: "print a short usage message",
			set: clientOnly(func(p *Parsed) *bool { return &p.Client.Usage })},
		{Name: "version", Short: 'V', In: all, Group: GroupOther, Help: "print the version",
			set: clientOnly(func(p *Parsed) *bool { return &p.Client.Version })},
	}
}

// clientOnly returns a setter of a flag that counts only on the command line.
func clientOnly(field func(*Parsed) *bool) setter {
	return func(p *Parsed, _ string, _ bool) error {
		if p.from == FromCommandLine {
			*field(p) = true
		}
		return nil
	}
}

// setQuiet ignores --quiet in a script, as Slurm does.
func setQuiet(p *Parsed, _ string, _ bool) error {
	if p.from != FromScript {
		p.Client.Quiet++
	}
	return nil
}

func setVerbose(p *Parsed, v string, _ bool) error {
	if p.from == FromEnv {
		n, err := strconv.Atoi(strings.TrimSpace(v))
		if n < 0 || errors.Is(err, strconv.ErrRange) {
			return errNumber
		}
		p.Client.Verbose = n // as in Slurm, 0 for a text that is not a number
		return nil
	}
	p.Client.Verbose++
	return nil
}

// defaultKillCommand is SIGTERM, the signal of -K without a value.
const defaultKillCommand = 15

func setKillCommand(p *Parsed, v string, hasValue bool) error {
	n := int32(defaultKillCommand)
	if hasValue {
		var err error
		if n, err = value.SignalNumber(v); err != nil {
			return value.ErrInvalid
		}
	}
	p.Client.KillCommand = &n
	return nil
}

// setAcctgFreq parses N or TYPE=N,...
func setAcctgFreq(p *Parsed, v string, _ bool) error {
	var wrong []string
	for part := range strings.SplitSeq(v, ",") {
		if part != "" && !interval().MatchString(part) {
			wrong = append(wrong, "Invalid --acctg-freq specification: "+part)
		}
	}
	if wrong != nil {
		return slurmerr.New(slurmerr.BadValue, strings.Join(wrong, "\n"))
	}
	p.setText("acctg-freq", v)
	return nil
}

// interval matches one interval of --acctg-freq. Slurm ignores what follows the
// digits, and accepts all negative numbers except -1.
var interval = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?i:.*(?:task|energy|network|filesystem)=)?(?:\+?\d|-(?:0|1\d|[2-9]))`)
})

// profiles are the types of profiles, in the order in which they are shown.
var profiles = []string{"Energy", "Lustre", "Network", "Task"}

func setProfile(p *Parsed, v string, _ bool) error {
	var found []string
	for part := range strings.SplitSeq(v, ",") {
		switch {
		case strings.EqualFold(part, "none"):
			p.setText("profile", "None")
			return nil
		case strings.EqualFold(part, "all"):
			found = profiles
		default:
			i := slices.IndexFunc(profiles, func(name string) bool { return strings.EqualFold(name, part) })
			if i < 0 {
				return slurmerr.Newf(slurmerr.BadValue, "invalid --profile=%s option", v)
			}
			found = append(slices.Clone(found), profiles[i])
		}
	}
	slices.SortFunc(found, strings.Compare)
	p.setText("profile", strings.Join(slices.Compact(found), ","))
	return nil
}

const ignoredPower = "error: Ignoring unrecognized power option"

func setPower(p *Parsed, v string, _ bool) error {
	for _, word := range splitList(v) {
		if strings.EqualFold(word, "level") {
			continue
		}
		p.warn(ignoredPower+" (%s)", word)
	}
	p.setText("power", v)
	return nil
}

// setCPUFreq parses FREQUENCY or LOW-HIGH, the latter with :GOVERNOR, or a governor.
func setCPUFreq(p *Parsed, v string, _ bool) error {
	if text := cpuFreqError(v); text != "" {
		return slurmerr.New(slurmerr.BadValue, text+"\nInvalid --cpu-freq argument")
	}
	p.setText("cpu-freq", v)
	return nil
}

// cpuFreqError returns what is wrong with a value of --cpu-freq, or "".
func cpuFreqError(v string) string {
	const unrecognized = "unrecognized --cpu-freq argument %q"
	span, governor, governed := strings.Cut(v, ":")
	low, high, ranged := strings.Cut(span, "-")
	least := frequency(low)
	switch {
	case least == 0:
		return fmt.Sprintf(unrecognized, low)
	case !governed && !ranged:
		return ""
	case !ranged && isGovernor(low):
		return fmt.Sprintf("governor cannot be specified twice %s{-}:%s in --cpu-freq", low, governor)
	case !ranged:
		return fmt.Sprintf("gov on cpu-frec (%s) illegal without max", governor)
	}
	switch most := frequency(high); {
	case most == 0:
		return fmt.Sprintf(unrecognized, high)
	case least > most:
		return fmt.Sprintf("min cpu-frec (%s) must be < max cpu-freq (%s)", low, high)
	case governed && !isGovernor(governor):
		return fmt.Sprintf("illegal governor: %s on --cpu-freq", governor)
	}
	return ""
}

// Slurm recognizes frequencies and governors by their first letters, whatever follows.
var (
	frequencies = []string{"lo", "med", "hi", "highm1", "him1"}
	governors   = []string{"co", "onde", "perf", "po", "user", "sche"}
)

func isGovernor(s string) bool {
	return slices.ContainsFunc(governors, func(g string) bool { return strings.HasPrefix(strings.ToLower(s), g) })
}

// frequency returns a number that orders CPU frequencies and governors as Slurm does; 0: it is
// neither. Of a number, what follows its digits is ignored.
func frequency(s string) uint64 {
	const named = 1 << 32
	for i, name := range slices.Backward(slices.Concat(frequencies, governors)) { // highm1 before hi
		if strings.HasPrefix(strings.ToLower(s), name) {
			return named + uint64(i) //nolint:gosec // an index
		}
	}
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	n, err := strconv.ParseUint(s[:digits], 10, 32)
	if err != nil {
		return 0
	}
	return n
}
