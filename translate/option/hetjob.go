package option

import "slices"

// componentOptions are the options that are specific to one component of a
// heterogeneous job. The others apply to the following components too, until one
// of them overrides them (as sbatch 22.05.8 shows with -v; options that it does
// not have are treated like similar ones).
var componentOptions = map[string]bool{
	"bb": true, "bbf": true, "constraint": true, "contiguous": true, "core-spec": true, "cores-per-socket": true,
	"cpu-freq":     true,
	"cpus-per-gpu": true, "cpus-per-task": true, "distribution": true, "exclusive": true, "extra-node-info": true,
	"gpu-bind": true,
	"gpu-freq": true, "gpus": true, "gpus-per-node": true, "gpus-per-socket": true, "gpus-per-task": true,
	"gres": true, "gres-flags": true,
	"licenses": true, "mail-type": true, "mail-user": true, "mem-bind": true, "mem-per-cpu": true,
	"mem-per-gpu": true, "mincpus": true,
	"network": true, "nodefile": true, "nodelist": true, "nodes": true, "ntasks": true, "ntasks-per-core": true,
	"ntasks-per-gpu":  true,
	"ntasks-per-node": true, "ntasks-per-socket": true, "ntasks-per-tres": true, "overcommit": true,
	"oversubscribe": true, "partition": true,
	"power": true, "sockets-per-node": true, "spread-job": true, "switches": true, "thread-spec": true,
	"threads-per-core": true, "tmp": true,
	"use-min-nodes": true, "export-file": true,

	"tres-per-task": true, "tres-bind": true, "segment": true, "consolidate-segments": true, "spread-segments": true,
	"resources": true,
}

// appliedOption is an option that was applied, and where it came from.
type appliedOption struct {
	occurrence
	from Source
}

// recordApplied records an applied option, in place of an earlier occurrence.
func (p *Parsed) recordApplied(f occurrence) {
	p.applied = slices.DeleteFunc(p.applied, func(a appliedOption) bool { return a.option == f.option })
	p.applied = append(p.applied, appliedOption{f, p.from})
}

// NextComponent returns the initial options of the next component of a
// heterogeneous job: those of p's that are not specific to a component.
func (p *Parsed) NextComponent() (*Parsed, error) {
	next := New(p.Command)
	next.Lenient, next.NotRoot, next.switchesWait = p.Lenient, p.NotRoot, p.switchesWait
	if err := next.inherit(p, 0); err != nil {
		return nil, err
	}
	return next, nil
}
