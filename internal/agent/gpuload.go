package agent

import (
	"context"

	"github.com/berth-hpc/berth/internal/agent/gpu"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/affinity"
)

// gpuLoad returns the load of the job's GPUs on this node, or nil if it is
// unknown.
func (a *Agent) gpuLoad() []step.GPU {
	host := &a.welcome.Hosts[a.welcome.Index]
	count, indexes := int64(0), []int(nil)
	for _, g := range host.GRES {
		if g.Name != "gpu" {
			continue
		}
		list, err := affinity.ParseCPUList(g.Indexes)
		if err != nil {
			a.log.Warn("cannot parse the indexes of GPUs", "error", err)
		}
		count, indexes = count+g.Count, append(indexes, list...)
	}
	if count == 0 {
		return nil
	}
	list, err := gpu.Sample(context.Background())
	if err != nil {
		a.log.Debug("cannot measure the load of GPUs", "error", err)
		return nil
	}
	list = gpu.Own(list, count, indexes)
	for i := range list {
		list[i].Node = host.Name
	}
	return list
}
