package translate

import (
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
)

// environment returns the part of the job's environment that comes from the
// submission (--export, sbatch(1)). The agent adds the rest.
func environment(in *Input, p *option.Parsed) ([]string, error) {
	own := env.Without(in.Env, FromJob)
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

// getsUserEnv reports whether the job also gets the user's login environment, with
// lower precedence than the submitted one. It does if --export lists names, even
// together with ALL.
func getsUserEnv(export string) bool {
	switch strings.ToUpper(export) {
	case "", "ALL", "NIL":
		return false
	}
	return true
}

// userVariables are the SLURM_* variables that users set for themselves.
var userVariables = map[string]bool{
	"SLURM_CONF": true, "SLURM_TIME_FORMAT": true, "SLURM_BITSTR_LEN": true, "SLURM_EXIT_ERROR": true,
	"SLURM_EXIT_IMMEDIATE": true, "SLURM_DEBUG_FLAGS": true, "SLURM_HINT": true, "SLURM_HOSTFILE": true,
}

// FromJob reports whether a job sets the variable in the environment of its
// processes. A job that is submitted from inside a job does not inherit it. Slurm
// passes some of these variables on, with values that are wrong for the new job.
func FromJob(name string) bool {
	switch {
	case userVariables[name]:
		return false
	case strings.HasPrefix(name, "SLURM_"), strings.HasPrefix(name, "SLURMD_"), strings.HasPrefix(name, "BERTH_"):
		return true
	case strings.HasPrefix(name, "PMI_"):
		return true
	}
	return name == "ENVIRONMENT"
}

// onlySlurm returns the variables that --export=NONE exports.
func onlySlurm(list []string) []string {
	return env.Without(list, func(name string) bool {
		return !strings.HasPrefix(name, "SLURM_") && !strings.HasPrefix(name, "SPANK_")
	})
}

// exported returns the environment of a list of NAME and NAME=VALUE.
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

// exportItems splits a list at commas outside of quotes. As in Slurm, the quotes remain.
func exportItems(list string) []string {
	var items []string
	var b strings.Builder
	quote := byte(0)
	for i := range len(list) {
		c := list[i]
		switch {
		case quote == 0 && c == ',':
			items = append(items, b.String())
			b.Reset()
			continue
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		}
		b.WriteByte(c)
	}
	items = append(items, b.String())
	return items
}

// exportFile reads the file of --export-file: NUL-terminated NAME=value entries.
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
