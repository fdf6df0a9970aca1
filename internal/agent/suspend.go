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

// suspendTime bounds how long the agent of another node may take to stop or
// continue its processes.
const suspendTime = 10 * time.Second

// suspend stops every process of the job on all of its nodes, or continues them.
func (a *Agent) suspend(stop bool) {
	kind, here := step.KindContinue, spawn.Continue
	if stop {
		kind, here = step.KindStop, spawn.Stop
	}
	var wg sync.WaitGroup
	for node := 1; node < len(a.welcome.Hosts); node++ {
		wg.Go(func() {
			if err := a.suspendOn(int32(node), kind); err != nil {
				a.log.Error("cannot "+kind+" the job's processes on a node", "node", a.welcome.Hosts[node].Name, "error", err)
			}
		})
	}
	here()
	wg.Wait()
}

func (a *Agent) suspendOn(node int32, kind string) error {
	ctx, cancel := context.WithTimeout(context.Background(), suspendTime)
	defer cancel()
	conn, err := a.dial(ctx, node, kind)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Receive(); err != nil && !errors.Is(err, io.EOF) { // it is done when the connection ends
		return err
	}
	return nil
}
