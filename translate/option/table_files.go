package option

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// fileOptions returns the options about files, directories and the environment.
func fileOptions() []*Option {
	return []*Option{
		{Name: "chdir", Short: 'D', Arg: RequiredArg, Meta: "DIR", In: all, Group: GroupFiles,
			EnvFull: map[Command][]string{Srun: {"SLURM_REMOTE_CWD", "SLURM_WORKING_DIR"}},
			Help:    "work directory of the job", set: setChdir},
		{Name: "output", Short: 'o', Arg: RequiredArg, Meta: "FILE", In: Sbatch | Srun, Group: GroupFiles,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_OUTPUT"}, Srun: {"SLURM_STDOUTMODE"}},
			Help:    "file for standard output; %j is the job id",
			set:     text(func(p *Parsed) *string { return &p.Job.Batch.Output })},
		{Name: "error", Short: 'e', Arg: RequiredArg, Meta: "FILE", In: Sbatch | Srun, Group: GroupFiles,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_ERROR"}, Srun: {"SLURM_STDERRMODE"}},
			Help:    "file for standard error (default: that of --output)",
			set:     text(func(p *Parsed) *string { return &p.Job.Batch.Error })},
		{Name: "input", Short: 'i', Arg: RequiredArg, Meta: "FILE", In: Sbatch | Srun, Group: GroupFiles,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_INPUT"}, Srun: {"SLURM_STDINMODE"}},
			Help:    "file for standard input", set: text(func(p *Parsed) *string { return &p.Job.Batch.Input })},
		{Name: "open-mode", Arg: RequiredArg, Meta: "append|truncate", In: Sbatch | Srun, Env: "OPEN_MODE",
			Group: GroupFiles,
			Help:  "append to output files or truncate them", set: setOpenMode},
		{Name: "export", Arg: RequiredArg, Meta: "NAMES", In: Sbatch | Srun, Group: GroupFiles,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_EXPORT"}, Srun: {"SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV"}},
			Help:    "environment of the job: ALL, NONE, NIL, NAME[=VALUE]",
			set:     text(func(p *Parsed) *string { return &p.Job.Batch.Export })},
		{Name: "export-file", Arg: RequiredArg, Meta: "FILE", In: Sbatch, Group: GroupFiles,
			Help: "read the environment from a file of NUL-terminated NAME=VALUE entries",
			set:  text(func(p *Parsed) *string { return &p.Client.ExportFile })},
		{Name: "get-user-env", Arg: OptionalArg, Meta: "TIMEOUT", In: Sbatch | Salloc,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_GET_USER_ENV"}}, Group: GroupFiles,
			Limits: []Limit{{In: Salloc, Status: Warned, Reason: "the command inherits the environment of salloc"}},
			Help:   "use the environment of a login shell",
			set:    setGetUserEnv},
		{Name: "wrap", Arg: RequiredArg, Meta: "COMMAND", In: Sbatch, Group: GroupFiles,
			Help: "run COMMAND in a shell in place of a script",
			set:  setWrap},
		{Name: "ignore-pbs", In: Sbatch, Env: "IGNORE_PBS", Group: GroupFiles, Help: "ignore #PBS and #BSUB lines",
			set: flag(func(p *Parsed) *bool { return &p.Client.IgnorePBS })},
		{Name: "propagate", Arg: OptionalArg, Meta: "LIMITS", In: Sbatch | Srun, Group: GroupFiles,
			Help: "resource limits to propagate to the job: ALL, NONE, names", set: setPropagate},
		{Name: "bb", Arg: RequiredArg, Meta: "SPEC", In: all, Group: GroupFiles, Env: "BURST_BUFFER",
			Status: Refused, Reason: "there are no burst buffers", Help: "burst buffer specification"},
		{Name: "bbf", Arg: RequiredArg, Meta: "FILE", In: all, Group: GroupFiles,
			Status: Refused, Reason: "there are no burst buffers", Help: "burst buffer specification in a file"},
		{Name: "container", Arg: RequiredArg, Meta: "BUNDLE", In: all, Group: GroupFiles,
			EnvFull: map[Command][]string{
				Sbatch: {"SBATCH_CONTAINER"}, Srun: {"SRUN_CONTAINER"}, Salloc: {"SALLOC_CONTAINER"},
			},
			Status: Refused, Reason: "OCI bundles are not supported; the partition sets the image",
			Help: "OCI bundle to run in"},
	}
}

func setChdir(p *Parsed, v string, _ bool) error {
	p.Job.Batch.WorkDir, p.Step.Chdir = v, v
	return nil
}

// setWrap stores the command of --wrap, which counts only on the command line.
func setWrap(p *Parsed, v string, _ bool) error {
	if p.from == FromCommandLine {
		p.Client.Wrap = &v
	}
	return nil
}

func setOpenMode(p *Parsed, v string, _ bool) error {
	switch v {
	case "a", "A", "append", "APPEND", "Append":
		p.Job.Batch.OpenMode = "a"
	case "t", "T", "truncate", "TRUNCATE", "Truncate":
		p.Job.Batch.OpenMode = "t"
	default:
		return value.ErrInvalid
	}
	p.Step.OpenMode = p.Job.Batch.OpenMode
	return nil
}

// Rlimits are the names of the resource limits, without the prefix RLIMIT_.
var Rlimits = []string{"AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"}

// rlimit returns the name of a limit in upper case and without RLIMIT_; ok is
// false if text is neither a limit nor ALL nor NONE.
func rlimit(text string) (name string, ok bool) {
	name = strings.TrimPrefix(strings.ToUpper(text), "RLIMIT_")
	return name, name == "ALL" || name == "NONE" || slices.Contains(Rlimits, name)
}

// RlimitNames returns the limits in a list of slurm.conf, which may contain ALL or
// NONE; ok is false if it contains anything else.
func RlimitNames(list []string) (names []string, ok bool) {
	for _, text := range list {
		name, known := rlimit(text)
		switch {
		case !known:
			return nil, false
		case name == "ALL":
			return Rlimits, true
		case name != "NONE":
			names = append(names, name)
		}
	}
	return names, true
}

// Unpropagated returns the limits that are not propagated to jobs without
// --propagate. only and except are PropagateResourceLimits and
// PropagateResourceLimitsExcept (slurm.conf(5)): at most one of them is set, and
// without either, every limit is propagated.
func Unpropagated(only, except []string) []string {
	if len(except) > 0 {
		names, _ := RlimitNames(except)
		return names
	}
	if len(only) == 0 {
		return nil
	}
	propagated, _ := RlimitNames(only)
	return slices.DeleteFunc(slices.Clone(Rlimits), func(name string) bool {
		return slices.Contains(propagated, name)
	})
}

func setPropagate(p *Parsed, v string, hasValue bool) error {
	if hasValue && v == "" { // no limits
		return nil
	}
	if hasValue {
		for name := range strings.SplitSeq(v, ",") {
			if _, known := rlimit(name); !known || name != strings.ToUpper(name) {
				return p.refuseLater(slurmerr.Newf(slurmerr.Refused,
					"Bad rlimit name: %s\n--propagate=%s is not valid.", name, v))
			}
		}
	}
	p.setText("propagate", orAll(v))
	return nil
}

// Propagated returns the limits that --propagate names, or all of them without it.
// The cluster then removes those of Unpropagated.
func Propagated(p *Parsed, limits map[string]uint64) map[string]uint64 {
	names := strings.Split(strings.ToUpper(orAll(p.Job.Options["propagate"])), ",")
	out := map[string]uint64{}
	for _, name := range names {
		name = strings.TrimPrefix(name, "RLIMIT_")
		switch n, known := limits[name]; {
		case name == "ALL":
			return limits
		case name == "NONE":
			return nil
		case known:
			out[name] = n
		}
	}
	return out
}

// setGetUserEnv parses [SECONDS][L|S]: how long to wait for the login shell, and
// whether it is a full login (L) or not (S).
func setGetUserEnv(p *Parsed, v string, hasValue bool) error {
	seconds := strings.TrimRight(v, "lLsS")
	n, err := value.CountOrZero(orZero(seconds))
	if hasValue && (err != nil || len(v)-len(seconds) > 1) {
		return value.ErrInvalid
	}
	p.Client.GetUserEnv = true
	p.setText("get-user-env", strconv.Itoa(int(n))+strings.ToUpper(v[len(seconds):]))
	return nil
}
