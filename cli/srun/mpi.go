package srun

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berth-hpc/berth/internal/sibling"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/option"
)

// mpi handles --mpi. It returns done if srun has nothing else to do.
func (o *Options) mpi(ctx context.Context, p *option.Parsed) (done bool, err error) {
	kind := p.Step.MPI
	if _, given := p.Given["mpi"]; !given || kind == "openmpi" { // Slurm's old name of none
		p.Step.MPI, kind = "none", "none"
	}
	switch kind {
	case "none", step.MPIPMI2, step.MPIPMIx:
		return false, nil
	case "list":
		fmt.Fprint(o.p.Out, "MPI plugin types are...\n\tnone\n\tpmi2\n")
		if version := o.pmixVersion(ctx); version != "" {
			major, _, _ := strings.Cut(version, ".")
			fmt.Fprintf(o.p.Out, "\tpmix\nspecific pmix plugin versions available: pmix_v%s\n", major)
		}
		return true, nil
	default:
		if major, ok := strings.CutPrefix(kind, "pmix_v"); ok && strings.HasPrefix(o.pmixVersion(ctx), major+".") {
			p.Step.MPI = step.MPIPMIx
			return false, nil
		}
		const lines = "Couldn't find the specified plugin name for mpi/%[1]s looking at all files\n" +
			"cannot find mpi plugin for mpi/%[1]s\nMPI: Cannot create context for mpi/%[1]s\nMPI: Unable to load any plugin\n" +
			"Invalid MPI type '%[1]s', --mpi=list for acceptable types"
		return true, slurmerr.Newf(slurmerr.Refused, lines, kind)
	}
}

// pmixVersion returns the version of the PMIx library with which the agent on
// this node serves steps, or "" if there is none.
func (o *Options) pmixVersion(ctx context.Context) string {
	path, err := sibling.Path(wire.PMIxServer)
	if dir := o.p.Env(wire.EnvBinDir); dir != "" {
		path, err = filepath.Join(dir, wire.PMIxServer), nil
	}
	if err != nil {
		return ""
	}
	version, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(version))
}
