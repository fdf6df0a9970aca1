package cli

import (
	"context"

	"github.com/berth-hpc/berth/cli/run"
	"github.com/berth-hpc/berth/cli/sacct"
	"github.com/berth-hpc/berth/cli/sacctmgr"
	"github.com/berth-hpc/berth/cli/salloc"
	"github.com/berth-hpc/berth/cli/sattach"
	"github.com/berth-hpc/berth/cli/sbatch"
	"github.com/berth-hpc/berth/cli/sbcast"
	"github.com/berth-hpc/berth/cli/scancel"
	"github.com/berth-hpc/berth/cli/scontrol"
	"github.com/berth-hpc/berth/cli/scrontab"
	"github.com/berth-hpc/berth/cli/sdiag"
	"github.com/berth-hpc/berth/cli/seff"
	"github.com/berth-hpc/berth/cli/sinfo"
	"github.com/berth-hpc/berth/cli/sprio"
	"github.com/berth-hpc/berth/cli/squeue"
	"github.com/berth-hpc/berth/cli/sreport"
	"github.com/berth-hpc/berth/cli/srun"
	"github.com/berth-hpc/berth/cli/sshare"
	"github.com/berth-hpc/berth/cli/sstat"
	"github.com/berth-hpc/berth/cli/strigger"
	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/option"
)

// registry contains all commands of Slurm. The package of a command exports New(p, ...),
// which returns a value with Run.
var registry = map[string]factory{
	"sacct": func(p *stdio.Process, _ Deps) run.Runner {
		return sacct.New(p, func() (sacct.Accounting, error) { return jobs.Connect(p) })
	},
	"sacctmgr": func(p *stdio.Process, _ Deps) run.Runner {
		return sacctmgr.New(p, func() (sacctmgr.Manager, error) { return jobs.Connect(p) })
	},
	"salloc": func(p *stdio.Process, _ Deps) run.Runner {
		return salloc.New(p, func() (salloc.Cluster, error) { return run.Connect(p, "salloc") })
	},
	"sattach": func(p *stdio.Process, _ Deps) run.Runner {
		return sattach.New(p, func() (sattach.Cluster, error) { return jobs.Connect(p) })
	},
	"sbatch": func(p *stdio.Process, _ Deps) run.Runner {
		return sbatch.New(p, func() (sbatch.Cluster, error) { return run.Connect(p, "sbatch") })
	},
	"sbcast": func(p *stdio.Process, _ Deps) run.Runner {
		return sbcast.New(p, func() (sbcast.Cluster, error) { return jobs.Connect(p) })
	},
	"scancel": func(p *stdio.Process, _ Deps) run.Runner {
		return scancel.New(p, func() (scancel.Queue, error) { return jobs.Connect(p) })
	},
	"scontrol": func(p *stdio.Process, _ Deps) run.Runner {
		return scontrol.New(p, func() (scontrol.Cluster, error) { return jobs.Connect(p) })
	},
	"scrontab": func(p *stdio.Process, _ Deps) run.Runner {
		return scrontab.New(p, func() (scrontab.Cluster, error) { return jobs.Connect(p) })
	},
	"strigger": func(p *stdio.Process, _ Deps) run.Runner { return strigger.New(p) },
	"sdiag": func(p *stdio.Process, _ Deps) run.Runner {
		return sdiag.New(p, func() (sdiag.Cluster, error) { return jobs.Connect(p) })
	},
	"seff": func(p *stdio.Process, _ Deps) run.Runner {
		return seff.New(p, func() (seff.Accounting, error) { return jobs.Connect(p) })
	},
	"sinfo": func(p *stdio.Process, _ Deps) run.Runner {
		return sinfo.New(p, func() (sinfo.Lister, error) { return jobs.Connect(p) })
	},
	"slurmrestd": func(p *stdio.Process, d Deps) run.Runner {
		if d.Slurmrestd == nil {
			return elsewhere{p, option.Slurmrestd}
		}
		return d.Slurmrestd(p)
	},
	"sprio": func(p *stdio.Process, _ Deps) run.Runner {
		return sprio.New(p, func() (sprio.Cluster, error) { return jobs.Connect(p) })
	},
	"squeue": func(p *stdio.Process, d Deps) run.Runner {
		return squeue.New(p, func() (squeue.Lister, error) { return jobs.Connect(p) }).WithScreen(screen(p, d))
	},
	"sview": func(p *stdio.Process, d Deps) run.Runner {
		connect := func() (squeue.Lister, error) { return jobs.Connect(p) }
		return squeue.New(p, connect).WithScreen(screen(p, d)).AsView()
	},
	"sreport": func(p *stdio.Process, _ Deps) run.Runner {
		return sreport.New(p, func() (sreport.Accounting, error) { return jobs.Connect(p) })
	},
	"sshare": func(p *stdio.Process, _ Deps) run.Runner {
		return sshare.New(p, func() (sshare.Cluster, error) { return jobs.Connect(p) })
	},
	"sstat": func(p *stdio.Process, _ Deps) run.Runner {
		return sstat.New(p, func() (sstat.Cluster, error) { return jobs.Connect(p) })
	},
	"srun": func(p *stdio.Process, _ Deps) run.Runner {
		return srun.New(p, func() (srun.Cluster, error) { return run.Connect(p, "srun") })
	},
}

// screen returns a function that shows the terminal UI in this process, or nil if main did
// not provide it.
func screen(p *stdio.Process, d Deps) func(context.Context, jobs.Screen) error {
	if d.TUI == nil {
		return nil
	}
	return func(ctx context.Context, s jobs.Screen) error {
		c, err := jobs.Connect(p)
		if err != nil {
			return err
		}
		return d.TUI(ctx, p, c, s)
	}
}

// elsewhere is a command of another program. It only prints its help and version.
type elsewhere struct {
	p       *stdio.Process
	options *option.CommandOptions
}

// Run prints what the options request, or fails.
func (e elsewhere) Run(_ context.Context, args []string) error {
	v, _, err := e.options.ParseAndReport(args, e.p.LookupEnv, e.p.Print, e.p.Warn)
	if v == nil || err != nil {
		return err
	}
	return slurmerr.Newf(slurmerr.Internal, "this program does not contain %s: run 'berth %[1]s'", e.options.Name)
}
