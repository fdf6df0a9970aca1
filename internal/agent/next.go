package agent

import (
	"context"
	"fmt"

	"github.com/berth-hpc/berth/internal/agent/peer"
	"github.com/berth-hpc/berth/internal/wire"
)

// runAll runs the batch script, and those of further jobs for as long as the API
// role has one for this pod. Each gets an Agent of its
// own: folder, socket, key and coordinator; the pod, the process and its
// address stay. It returns the exit code of the last.
func (a *Agent) runAll(ctx context.Context) int {
	defer func() { a.leave() }()
	for {
		a.prolog(ctx)
		code, next := a.runBatch(ctx)
		if !next || ctx.Err() != nil {
			return code
		}
		w, err := a.api.Next(ctx, &wire.NextQuery{JobID: a.welcome.JobID, Attempt: a.welcome.Attempt})
		if err != nil {
			a.log.Debug("no further job", "why", err)
			return code
		}
		after, err := a.follow(ctx, w)
		if err != nil {
			a.log.Error("cannot start", "job", w.JobID, "error", err)
			a.last(&wire.Report{JobID: w.JobID, Attempt: w.Attempt, Kind: wire.ReportFailed, Message: err.Error()})
			return 1
		}
		a = after
	}
}

// follow makes the agent of the next job in this pod and closes what was a's
// alone.
func (a *Agent) follow(ctx context.Context, w *wire.Welcome) (*Agent, error) {
	config := *a.config
	config.JobID, config.Attempt = w.JobID, w.Attempt
	next := &Agent{config: &config, log: a.log, api: a.api, spawn: a.spawn, tcp: a.tcp, door: a.door, welcome: w}
	a.leave()
	var err error
	if next.dir, next.lock, err = privateDir(config.TempDir); err != nil {
		return nil, err
	}
	if next.unix, next.socket, err = peer.Listen(next.dir); err != nil {
		next.leave()
		return nil, err
	}
	if err := next.adopt(); err != nil {
		next.leave()
		return nil, fmt.Errorf("job %d: %w", w.JobID, err)
	}
	a.door.agent.Store(next)
	go next.serveUnix(ctx)
	return next, nil
}
