package srun

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/env"
	"github.com/berth-hpc/berth/translate/option"
)

// parts parses the command line for each component in which the step runs: those of
// --het-group, or those separated by colons. For a step in a job that is not
// heterogeneous it returns the plain command line.
func (o *Options) parts(ctx context.Context, args []string) ([]*option.Parsed, error) {
	segments := option.Components(args)
	plain, err := o.read(segments, o.p.Environ())
	if err != nil {
		return nil, err
	}
	if plain[0].Client.OnlyPrints() {
		return plain, nil
	}
	if len(segments) > 1 {
		if _, err := groups(plain, 0); err != nil {
			return nil, err
		}
	}
	if len(segments) == 1 && (!plain[0].Has("het-group") || plain[0].Step.JobID == 0) {
		return plain, nil
	}
	if err := inheritCommands(plain); err != nil {
		return nil, err
	}
	if plain[0].Step.JobID == 0 {
		return plain, nil // the job is not submitted yet
	}
	job, err := o.components(ctx, plain[0].Step.JobID)
	if err != nil {
		return nil, err
	}
	size := job.size
	if size == 0 && plain[0].Step.HetGroup == "" && len(segments) > 1 {
		return plain, shareNodes(plain, job.nodes)
	}
	segmentOf, err := groups(plain, size)
	if err != nil {
		return nil, err
	}
	var parts []*option.Parsed
	for group, segment := range segmentOf {
		if segment < 0 {
			continue
		}
		environ := o.p.Environ()
		if size > 0 && job.ids == nil {
			environ = o.componentEnviron(group)
		}
		all, err := o.read(segments, environ)
		if err == nil {
			err = inheritCommands(all)
		}
		if err != nil {
			return nil, err
		}
		if job.ids != nil {
			all[segment].Step.JobID = job.ids[group]
		}
		parts = append(parts, all[segment])
	}
	if size == 0 {
		return parts, shareNodes(parts, job.nodes)
	}
	return parts, nil
}

// read parses the parts of the command line, each based on the one before it. As in Slurm, it
// checks --het-group of each part before all of its other options, even those that do not exist.
func (o *Options) read(segments [][]string, environ []string) ([]*option.Parsed, error) {
	if _, err := parseHetGroup(option.HetGroup(segments[0])); err != nil {
		return nil, err
	}
	first, err := option.ParseAs(o.p.UID, option.Srun, segments[0], environ)
	all := []*option.Parsed{first}
	if err != nil || first.Client.OnlyPrints() {
		return all, err
	}
	for _, args := range segments[1:] {
		if _, err := parseHetGroup(option.HetGroup(args)); err != nil {
			return nil, err
		}
		next, err := all[len(all)-1].ParseNextComponent(args, environ)
		if err != nil {
			return nil, err
		}
		if next.Client.OnlyPrints() {
			return []*option.Parsed{next}, nil
		}
		all = append(all, next)
	}
	return all, nil
}

// inheritCommands gives a part without a command that of the next part.
func inheritCommands(parts []*option.Parsed) error {
	for i, p := range slices.Backward(parts) {
		if len(p.Args) > 0 {
			continue
		}
		if i == len(parts)-1 {
			return slurmerr.New(slurmerr.Fatal, "No command given to execute.")
		}
		p.Args = parts[i+1].Args
	}
	return nil
}

// maxGroups is the maximum number of groups in a job without components, where
// they are shares of its nodes.
const maxGroups = 128

// groups returns, for each component of the job, the index of its part of the
// command line, or -1. size is the number of components; 0: the job has none.
func groups(parts []*option.Parsed, size int) (segmentOf []int, err error) {
	most := size
	if size == 0 {
		most = maxGroups
	}
	segmentOf = slices.Repeat([]int{-1}, most)
	named := 0
	for i, p := range parts {
		list := []int{i}
		if named, err := parseHetGroup(p.Step.HetGroup, p.Has("het-group")); err != nil {
			return nil, err
		} else if named != nil {
			list = named
		}
		for _, g := range list {
			switch {
			case g >= most:
				return nil, slurmerr.Newf(slurmerr.Refused, "Attempt to run a job step with het group value of %d, "+
					"but the job allocation has maximum value of %d", list[len(list)-1], most-1)
			case segmentOf[g] >= 0:
				return nil, slurmerr.New(slurmerr.Fatal, "Duplicate het groups in single srun not supported")
			}
			segmentOf[g] = i
			named++
		}
	}
	if size == 0 && named == 1 {
		return nil, refuseOnlyGroup(slices.IndexFunc(segmentOf, func(i int) bool { return i >= 0 }))
	}
	return segmentOf, nil
}

// refuseOnlyGroup returns the error of a step that names one group, in a job
// without components.
func refuseOnlyGroup(group int) error {
	if group > 0 {
		return slurmerr.Newf(
			slurmerr.Refused,
			"Requested het-group offset exceeds highest hetjob index (%d > 0)",
			group,
		)
	}
	return slurmerr.New(slurmerr.Refused, "No directives to start application on any available hetjob components")
}

// parseHetGroup returns the numbers of --het-group, which may be in brackets, or nil if it was
// not given.
func parseHetGroup(text string, given bool) (all []int, err error) {
	if !given {
		return nil, nil
	}
	list := text
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		list = inner[:len(inner)-1]
	}
	for item := range strings.SplitSeq(list, ",") {
		first, last, ok := parseRange(item)
		switch {
		case !ok:
			return nil, slurmerr.New(slurmerr.Refused,
				fmt.Sprintf("_parse_single_range: Invalid range: `%s'\nInvalid --het-group value: %s", item, text))
		case last >= maxGroups:
			return nil, slurmerr.New(slurmerr.Refused, "Invalid --het-group value: "+text)
		}
		for n := first; n <= last; n++ {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// parseRange parses 3 or 0-3. As in Slurm, 3- is 3, and blanks or a sign may precede the first
// number.
func parseRange(text string) (first, last int, ok bool) {
	from, to, isRange := strings.Cut(strings.TrimPrefix(strings.TrimLeft(text, " \t"), "+"), "-")
	if !isRange || to == "" {
		to = from
	}
	a, err := strconv.ParseUint(from, 10, 31)
	b, err2 := strconv.ParseUint(to, 10, 31)
	return int(a), int(b), err == nil && err2 == nil && a <= b
}

// componentEnviron returns the environment of srun for a step in a component, with
// the component's values in the variables from which options are read.
func (o *Options) componentEnviron(group int) []string {
	if group == 0 {
		return o.p.Environ()
	}
	suffix := "_HET_GROUP_" + strconv.Itoa(group)
	kept := env.Without(o.p.Environ(), func(name string) bool {
		return sizeVariables[name] || strings.HasPrefix(name, "SLURM_MEM_PER_")
	})
	for _, e := range o.p.Environ() {
		name, value, _ := strings.Cut(e, "=")
		if own, ok := strings.CutSuffix(name, suffix); ok {
			kept = env.Merge(kept, own+"="+value)
		}
	}
	return kept
}

// sizeVariables are the variables with the size of the first component, which other
// components may lack.
var sizeVariables = map[string]bool{
	"SLURM_NTASKS": true, "SLURM_NPROCS": true, "SLURM_NNODES": true, "SLURM_JOB_NUM_NODES": true,
	"SLURM_NTASKS_PER_NODE": true, "SLURM_NTASKS_PER_CORE": true, "SLURM_NTASKS_PER_SOCKET": true,
	"SLURM_CPUS_PER_TASK": true, "SLURM_GPUS": true, "SLURM_GPUS_PER_NODE": true, "SLURM_GPUS_PER_TASK": true,
	"SLURM_JOB_ID": true, "SLURM_DISTRIBUTION": true, "SLURM_STEP_GRES": true, "SLURM_GRES": true,
}
