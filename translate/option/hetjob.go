package option

// ofComponent are the options that every component of a heterogeneous job has
// for itself. The others hold for the components that follow as well, until one
// says otherwise (as sbatch 22.05.8 shows them with -v; options that it has
// not are sorted by what they are like).
var ofComponent = map[string]bool{
	"bb": true, "bbf": true, "constraint": true, "contiguous": true, "core-spec": true, "cores-per-socket": true, "cpu-freq": true,
	"cpus-per-gpu": true, "cpus-per-task": true, "distribution": true, "exclusive": true, "extra-node-info": true, "gpu-bind": true,
	"gpu-freq": true, "gpus": true, "gpus-per-node": true, "gpus-per-socket": true, "gpus-per-task": true, "gres": true, "gres-flags": true,
	"licenses": true, "mail-type": true, "mail-user": true, "mem-bind": true, "mem-per-cpu": true, "mem-per-gpu": true, "mincpus": true,
	"network": true, "nodefile": true, "nodelist": true, "nodes": true, "ntasks": true, "ntasks-per-core": true, "ntasks-per-gpu": true,
	"ntasks-per-node": true, "ntasks-per-socket": true, "ntasks-per-tres": true, "overcommit": true, "oversubscribe": true, "partition": true,
	"power": true, "sockets-per-node": true, "spread-job": true, "switches": true, "thread-spec": true, "threads-per-core": true, "tmp": true,
	"use-min-nodes": true, "export-file": true,

	"tres-per-task": true, "tres-bind": true, "segment": true, "consolidate-segments": true, "spread-segments": true, "resources": true,
}

// said is an option that was applied, and where it came from.
type said struct {
	occurrence
	from Source
}

// remember keeps what was applied, once for each option.
func (p *Parsed) remember(f occurrence) {
	for i := range p.said {
		if p.said[i].option == f.option {
			p.said = append(p.said[:i], p.said[i+1:]...)
			break
		}
	}
	p.said = append(p.said, said{f, p.from})
}

// Next is what the next component of a heterogeneous job begins with: those of
// p's options that hold for it too.
func (p *Parsed) Next() (*Parsed, error) {
	next := New(p.Command)
	next.Lenient, next.switchesWait = p.Lenient, p.switchesWait
	if err := next.handOn(p, 0); err != nil {
		return nil, err
	}
	return next, nil
}
