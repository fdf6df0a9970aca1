package localcluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Stop signals the process that runs the cluster of dir to stop, and waits until it has
// exited, at most for timeout. It reports whether there was one. It signals a process only
// while that process has locked the state directory and is recorded there.
func Stop(ctx context.Context, dir string, timeout time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	asked := 0
	for {
		locked, err := Locked(dir)
		if err != nil {
			return asked != 0, err
		}
		if !locked {
			return asked != 0, nil
		}
		// The record is written just after the lock; signal each process once.
		if p, err := ReadProcess(dir); err == nil && p.PID != asked && p.Alive() {
			if err := syscall.Kill(p.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return false, fmt.Errorf("process %d: %w", p.PID, err)
			}
			asked = p.PID
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return asked != 0, fmt.Errorf("the cluster (process %d) has not ended in %s", asked, timeout)
		}
	}
}
