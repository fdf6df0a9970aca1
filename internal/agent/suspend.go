package agent

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
)

// suspendTimeout limits how long the agent of another node may take to stop or
// continue its processes.
const suspendTimeout = 10 * time.Second

// suspend stops every process of the job on all of its nodes, or continues them.
func (a *Agent) suspend(stop bool) {
	kind, here := step.KindContinue, spawn.Continue
	if stop {
		kind, here = step.KindStop, spawn.Stop
	}
	var wg sync.WaitGroup
	for node := 1; node < len(a.welcome.Hosts); node++ {
		wg.Go(func() {
			if err := a.suspendNode(int32(node), kind); err != nil {
				a.log.Error("cannot "+kind+" the job's processes on a node",
					"node", a.welcome.Hosts[node].Name, "error", err)
			}
		})
	}
	here()
	wg.Wait()
}

// suspendNode stops or continues the job's processes on another node.
func (a *Agent) suspendNode(node int32, kind string) error {
	ctx, cancel := context.WithTimeout(context.Background(), suspendTimeout)
	defer cancel()
	conn, err := a.dial(ctx, node, kind)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	// The other agent closes the connection when it is done.
	if _, err := conn.Receive(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
