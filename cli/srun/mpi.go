package srun

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/option"
)

// mpi handles --mpi: done means that srun is over.
func (o *Options) mpi(ctx context.Context, p *option.Parsed) (done bool, err error) {
	kind := p.Step.MPI
	if _, given := p.Given["mpi"]; !given || kind == "openmpi" { // which is Slurm's old name of none
		p.Step.MPI, kind = "none", "none"
	}
	switch kind {
	case "none", step.MPIPMI2, step.MPIPMIx:
		return false, nil
	case "list":
		fmt.Fprint(o.p.Out, "MPI plugin types are...\n\tnone\n\tpmi2\n")
		if version := o.pmix(ctx); version != "" {
			major, _, _ := strings.Cut(version, ".")
			fmt.Fprintf(o.p.Out, "\tpmix\nspecific pmix plugin versions available: pmix_v%s\n", major)
		}
		return true, nil
	default:
		if version := o.pmix(ctx); version != "" && strings.HasPrefix(kind, "pmix_v") && strings.HasPrefix(version, kind[len("pmix_v"):]+".") {
			p.Step.MPI = step.MPIPMIx
			return false, nil
		}
		const lines = "Couldn't find the specified plugin name for mpi/%[1]s looking at all files\n" +
			"cannot find mpi plugin for mpi/%[1]s\nMPI: Cannot create context for mpi/%[1]s\nMPI: Unable to load any plugin\n" +
			"Invalid MPI type '%[1]s', --mpi=list for acceptable types"
		return true, slurmerr.Newf(slurmerr.Refused, lines, kind).
			Hint("start the program with its MPI's own mpirun: it uses srun to reach the nodes")
	}
}

// pmix is the version of the PMIx library by which the agent beside this srun
// can serve steps; empty: there is none.
func (o *Options) pmix(ctx context.Context) string {
	dir := o.p.Env(wire.EnvBinDir)
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return ""
		}
		dir = filepath.Dir(self)
	}
	version, err := exec.CommandContext(ctx, filepath.Join(dir, wire.PMIxServer), "--version").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(version))
}
