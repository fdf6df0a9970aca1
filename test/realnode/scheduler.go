package realnode

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/berth-hpc/berth/internal/wire"
)

// StartBerth makes the local cluster's partition one for real nodes and starts
// Berth's scheduler; then jobs can be submitted.
func (s *Site) StartBerth(ctx context.Context) error {
	if err := s.usePartition(ctx, "main"); err != nil {
		return fmt.Errorf("partition: %w", err)
	}
	return s.startScheduler(ctx)
}

// startScheduler starts Berth's scheduler beside the control plane and returns
// when its API role answers. The scheduler ends with the site.
func (s *Site) startScheduler(ctx context.Context) error {
	args, err := s.plane.schedulerArgs()
	if err != nil {
		return err
	}
	log := s.log("scheduler")
	p, err := start(exec.Command(filepath.Join(s.build, "scheduler"), args...), log)
	if err != nil {
		return err
	}
	s.scheduler = p
	err = waitFor(ctx, time.Minute, func() bool { return p.ended() || s.answers(ctx) })
	if p.ended() {
		err = errors.New(p.cmd.ProcessState.String() + ": " + lastWords(log))
	}
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return nil
}

// answers says whether the queue API can be asked.
func (s *Site) answers(ctx context.Context) bool {
	return s.Client.CoreV1().RESTClient().Get().AbsPath(wire.QueueRoot, "clusterinfo").Do(ctx).Error() == nil
}

// KillScheduler kills the scheduler as a crash would.
func (s *Site) KillScheduler() { s.scheduler.kill() }
