package localcluster

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"
)

// Stop asks the process that runs the cluster of dir to end and waits until
// it has. It tells whether there was one. A process is only ever signalled
// while it holds the state folder's lock and is the one recorded there.
func Stop(ctx context.Context, dir string, patience time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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
		// The record appears just after the lock; ask each process once.
		if p, err := ReadProcess(dir); err == nil && p.PID != asked && p.Alive() {
			if err := syscall.Kill(p.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return false, fmt.Errorf("process %d: %w", p.PID, err)
			}
			asked = p.PID
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return asked != 0, fmt.Errorf("the cluster (process %d) has not ended in %s", asked, patience)
		}
	}
}
