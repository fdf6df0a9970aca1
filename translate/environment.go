package translate

import (
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
)

// environment makes the part of the job's environment that comes from the
// submission (--export, sbatch(1)); the agent adds the rest.
func environment(in *Input, p *option.Parsed) ([]string, error) {
	own := env.Without(in.Env, fromJob)
	export := p.Job.Batch.Export
	var out []string
	switch strings.ToUpper(export) {
	case "", "ALL":
		out = own
	case "NONE", "NIL":
		out = onlySlurm(own)
	default:
		out = exported(own, export)
	}
	if p.Client.ExportFile != "" {
		more, err := exportFile(in, p.Client.ExportFile)
		if err != nil {
			return nil, err
		}
		out = env.Merge(out, more...)
	}
	set := []string{
		"SLURM_SUBMIT_DIR=" + in.Dir,
		"SLURM_SUBMIT_HOST=" + in.Hostname,
		"SLURM_PRIO_PROCESS=0",
	}
	if getsUserEnv(export) || strings.EqualFold(export, "NIL") {
		set = append(set, "SLURM_EXPORT_ENV="+export)
		if getsUserEnv(export) {
			set = append(set, "SLURM_GET_USER_ENV=1")
		}
	}
	return env.Merge(out, set...), nil
}

// getsUserEnv tells whether the login environment is to lie below what is
// submitted. It does wherever names are given, even those of ALL and more.
func getsUserEnv(export string) bool {
	switch strings.ToUpper(export) {
	case "", "ALL", "NIL":
		return false
	}
	return true
}

// keptInJobs are SLURM_* variables that users set for themselves.
var keptInJobs = map[string]bool{"SLURM_CONF": true, "SLURM_TIME_FORMAT": true, "SLURM_BITSTR_LEN": true,
	"SLURM_EXIT_ERROR": true, "SLURM_EXIT_IMMEDIATE": true, "SLURM_DEBUG_FLAGS": true, "SLURM_HINT": true}

// FromJob tells variables that a job gives to its processes, which another job
// must not take over.
func FromJob(name string) bool { return fromJob(name) }

// fromJob tells variables that another job gave to its processes: a job that
// is submitted from inside a job must not take them for its own. Slurm hands
// some of them on, with values that are wrong there.
func fromJob(name string) bool {
	switch {
	case keptInJobs[name]:
		return false
	case strings.HasPrefix(name, "SLURM_"), strings.HasPrefix(name, "SLURMD_"), strings.HasPrefix(name, "BERTH_"):
		return true
	case strings.HasPrefix(name, "PMI_"):
		return true
	}
	return name == "ENVIRONMENT"
}

// onlySlurm keeps what --export=NONE keeps.
func onlySlurm(list []string) []string {
	return env.Without(list, func(name string) bool {
		return !strings.HasPrefix(name, "SLURM_") && !strings.HasPrefix(name, "SPANK_")
	})
}

// exported makes the environment of a list of NAME and NAME=VALUE.
func exported(own []string, list string) []string {
	out := onlySlurm(own)
	for _, item := range exportItems(list) {
		name, _, assigned := strings.Cut(item, "=")
		switch {
		case assigned:
			out = env.Merge(out, item)
		case strings.EqualFold(name, "ALL"):
			out = env.Merge(own, out...)
		default:
			if v, ok := env.Get(own, name); ok {
				out = env.Merge(out, name+"="+v)
			}
		}
	}
	return out
}

// exportItems splits at commas outside of quotes; the quotes go.
func exportItems(list string) []string {
	var items []string
	var b strings.Builder
	quote := byte(0)
	for i := range len(list) {
		c := list[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && c == ',':
			items = append(items, b.String())
			b.Reset()
		default:
			b.WriteByte(c)
		}
	}
	items = append(items, b.String())
	return items
}

// exportFile reads --export-file: NAME=value entries, each ended by a NUL.
func exportFile(in *Input, name string) ([]string, error) {
	if in.ReadFile == nil {
		return nil, slurmerr.New(slurmerr.Refused, "Could not open user environment file "+name)
	}
	data, err := in.ReadFile(name)
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "Could not open user environment file "+name)
	}
	return env.Split(data), nil
}
