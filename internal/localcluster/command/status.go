package command

import (
	"context"
	"fmt"

	"github.com/berth-hpc/berth/internal/localcluster"
)

// status prints how the cluster is; no running cluster is an error.
func (p *program) status(_ context.Context) error {
	if err := p.complete(); err != nil {
		return err
	}
	locked, err := localcluster.Locked(p.StateDir)
	if err != nil {
		return err
	}
	if !locked {
		return fmt.Errorf("%w (state directory %s)", errNotRunning, p.StateDir)
	}
	process, err := localcluster.ReadProcess(p.StateDir)
	if err != nil || !process.Ready {
		fmt.Fprintln(p.Out, "starting")
		return nil //nolint:nilerr // the lock is held, and the file comes in a moment
	}
	fmt.Fprintf(p.Out, "running: process %d, %d nodes\nAPI server: %s\nkubeconfig: %s/%s\nstate: %s\n",
		process.PID, process.Nodes, process.Server, p.StateDir, localcluster.FileAdmin, p.StateDir)
	for _, m := range process.Missing {
		fmt.Fprintln(p.Out, "note: "+m)
	}
	return nil
}
