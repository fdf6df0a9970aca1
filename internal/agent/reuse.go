package agent

import (
	"context"
	"fmt"

	"github.com/berth-hpc/berth/internal/agent/peer"
	"github.com/berth-hpc/berth/internal/wire"
)

// runJobs runs the batch script, and then those of further jobs while the API role
// has one for this pod. Each job has its own Agent, with directory, socket, key and
// coordinator; the pod, the process and its address remain. It returns the exit
// code of the last job.
func (a *Agent) runJobs(ctx context.Context) int {
	defer func() { a.closeJob() }()
	for {
		a.prolog(ctx)
		code, more := a.runBatch(ctx)
		if !more || ctx.Err() != nil {
			return code
		}
		w, err := a.api.Next(ctx, &wire.NextQuery{JobID: a.welcome.JobID, Attempt: a.welcome.Attempt})
		if err != nil {
			a.log.Debug("no further job", "error", err)
			return code
		}
		next, err := a.startNext(ctx, w)
		if err != nil {
			a.root.Error("cannot start the next job", "job", w.JobID, "error", err)
			a.writeTerminationLog(&wire.Report{
				JobID: w.JobID, Attempt: w.Attempt, Kind: wire.ReportFailed, Message: err.Error(),
			})
			return 1
		}
		a = next
	}
}

// startNext starts the agent of the next job in this pod, and releases the resources of the
// previous job.
func (a *Agent) startNext(ctx context.Context, w *wire.Welcome) (*Agent, error) {
	config := *a.config
	config.JobID, config.Attempt = w.JobID, w.Attempt
	next := &Agent{
		config: &config, root: a.root, log: a.root.With("job", w.JobID), api: a.api, spawn: a.spawn, tcp: a.tcp,
		peers: a.peers, welcome: w,
	}
	a.closeJob()
	var err error
	if next.dir, next.dirLock, err = privateDir(config.TempDir); err != nil {
		return nil, err
	}
	if next.unix, next.socket, err = peer.Listen(next.dir); err != nil {
		next.closeJob()
		return nil, err
	}
	if err := next.configure(); err != nil {
		next.closeJob()
		return nil, fmt.Errorf("job %d: %w", w.JobID, err)
	}
	a.peers.agent.Store(next)
	go next.serveUnix(ctx)
	return next, nil
}
