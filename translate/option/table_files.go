package option

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/value"
)

// fileOptions: files, directories, environment.
func fileOptions() []*Option {
	return []*Option{
		{Name: "chdir", Short: 'D', Arg: RequiredArg, Meta: "DIR", In: all, Group: GroupFiles,
			EnvFull: map[Command][]string{Srun: {"SLURM_REMOTE_CWD", "SLURM_WORKING_DIR"}},
			Help:    "work directory of the job", set: setChdir},
		{Name: "output", Short: 'o', Arg: RequiredArg, Meta: "FILE", In: Sbatch | Srun, Group: GroupFiles,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_OUTPUT"}, Srun: {"SLURM_STDOUTMODE"}},
			Help:    "file for standard output; %j is the id", set: text(func(p *Parsed) *string { return &p.Job.Batch.Output })},
		{Name: "error", Short: 'e', Arg: RequiredArg, Meta: "FILE", In: Sbatch | Srun, Group: GroupFiles,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_ERROR"}, Srun: {"SLURM_STDERRMODE"}},
			Help:    "file for standard error, if not that of --output", set: text(func(p *Parsed) *string { return &p.Job.Batch.Error })},
		{Name: "input", Short: 'i', Arg: RequiredArg, Meta: "FILE", In: Sbatch | Srun, Group: GroupFiles,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_INPUT"}, Srun: {"SLURM_STDINMODE"}},
			Help:    "file for standard input", set: text(func(p *Parsed) *string { return &p.Job.Batch.Input })},
		{Name: "open-mode", Arg: RequiredArg, Meta: "append|truncate", In: Sbatch | Srun, Env: "OPEN_MODE", Group: GroupFiles,
			Help: "append to output files or truncate them", set: setOpenMode},
		{Name: "export", Arg: RequiredArg, Meta: "NAMES", In: Sbatch | Srun, Group: GroupFiles,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_EXPORT"}, Srun: {"SLURM_EXPORT_ENV", "SRUN_EXPORT_ENV"}},
			Help:    "environment of the job: ALL, NONE, NIL, NAME[=VALUE]", set: text(func(p *Parsed) *string { return &p.Job.Batch.Export })},
		{Name: "export-file", Arg: RequiredArg, Meta: "FILE", In: Sbatch, Group: GroupFiles,
			Help: "environment from a file of NAME=VALUE entries ended by NUL", set: text(func(p *Parsed) *string { return &p.Client.ExportFile })},
		{Name: "get-user-env", Arg: OptionalArg, Meta: "TIMEOUT", In: Sbatch | Salloc, EnvFull: map[Command][]string{Sbatch: {"SBATCH_GET_USER_ENV"}}, Group: GroupFiles,
			Limits: []Limit{{In: Salloc, Status: Warned, Reason: "the command has the environment of salloc"}}, Help: "environment of a login shell",
			set: setGetUserEnv},
		{Name: "wrap", Arg: RequiredArg, Meta: "COMMAND", In: Sbatch, Group: GroupFiles,
			Help: "run COMMAND by a shell instead of a script",
			set:  setWrap},
		{Name: "ignore-pbs", In: Sbatch, Env: "IGNORE_PBS", Group: GroupFiles, Help: "do not read #PBS and #BSUB lines",
			set: flag(func(p *Parsed) *bool { return &p.Client.IgnorePBS })},
		{Name: "propagate", Arg: OptionalArg, Meta: "LIMITS", In: Sbatch | Srun, Group: GroupFiles,
			Help: "resource limits to take over: ALL, NONE, names", set: setPropagate},
		{Name: "bb", Arg: RequiredArg, Meta: "SPEC", In: all, Group: GroupFiles, Env: "BURST_BUFFER", Status: Refused, Reason: "there are no burst buffers", Help: "burst buffer"},
		{Name: "bbf", Arg: RequiredArg, Meta: "FILE", In: all, Group: GroupFiles, Status: Refused, Reason: "there are no burst buffers", Help: "burst buffer, from a file"},
		{Name: "container", Arg: RequiredArg, Meta: "BUNDLE", In: all, Group: GroupFiles,
			EnvFull: map[Command][]string{Sbatch: {"SBATCH_CONTAINER"}, Srun: {"SRUN_CONTAINER"}, Salloc: {"SALLOC_CONTAINER"}},
			Status:  Refused, Reason: "OCI bundles are not run; the partition names the image", Help: "OCI bundle to run in"},
	}
}

func setChdir(p *Parsed, v string, _ bool) error {
	p.Job.Batch.WorkDir, p.Step.Chdir = v, v
	return nil
}

// setWrap takes a command from the command line; a script is not wrapped.
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

// Rlimits are the names of the resource limits, without RLIMIT_.
var Rlimits = []string{"AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "NOFILE", "NPROC", "RSS", "STACK"}

// rlimit is the name that text means, upper case and without RLIMIT_; ok is
// false for what is neither a limit nor ALL nor NONE.
func rlimit(text string) (name string, ok bool) {
	name = strings.TrimPrefix(strings.ToUpper(text), "RLIMIT_")
	return name, name == "ALL" || name == "NONE" || slices.Contains(Rlimits, name)
}

// RlimitNames are the limits that a list of slurm.conf names, which may have ALL
// or NONE in it; ok is false where it has something else.
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

// Unpropagated are the limits that jobs do not take over unless --propagate
// says so. only and except are PropagateResourceLimits and
// PropagateResourceLimitsExcept (slurm.conf(5)): at most one of them is set, and
// without either every limit is taken over.
func Unpropagated(only, except []string) []string {
	if len(except) > 0 {
		names, _ := RlimitNames(except)
		return names
	}
	if len(only) == 0 {
		return nil
	}
	kept, _ := RlimitNames(only)
	return slices.DeleteFunc(slices.Clone(Rlimits), func(name string) bool { return slices.Contains(kept, name) })
}

func setPropagate(p *Parsed, v string, has bool) error {
	if has && v == "" { // it names none
		return nil
	}
	if has {
		for name := range strings.SplitSeq(v, ",") {
			if _, known := rlimit(name); !known || name != strings.ToUpper(name) {
				return p.refuseLater(slurmerr.Newf(slurmerr.Refused, "Bad rlimit name: %s\n--propagate=%s is not valid.", name, v))
			}
		}
	}
	p.keep("propagate", orAll(v))
	return nil
}

// Propagated picks the limits that --propagate names; without it all, of which
// the cluster then takes away what it says (Unpropagated).
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

// setGetUserEnv reads [SECONDS][L|S]: how long to wait for the login shell, and
// whether to read its long or short start-up files.
func setGetUserEnv(p *Parsed, v string, has bool) error {
	seconds := strings.TrimRight(v, "lLsS")
	n, err := value.CountOrZero(orZero(seconds))
	if has && (err != nil || len(v)-len(seconds) > 1) {
		return value.ErrInvalid
	}
	p.Client.GetUserEnv = true
	p.keep("get-user-env", strconv.Itoa(int(n))+strings.ToUpper(v[len(seconds):]))
	return nil
}
