package launch

import (
	"slices"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
)

// sampleChunk is the maximum number of tasks in one frame.
const sampleChunk = 2000

// sample sends the usage of the local tasks so far, also of those that have ended, and with
// gpus the load of the node's GPUs.
func (t *tasks) sample(gpus bool) {
	t.mu.Lock()
	sessions := map[int]bool{}
	list := make([]step.TaskSample, len(t.tasks))
	live := make([]int, len(t.tasks))
	for i, k := range t.tasks {
		list[i] = step.TaskSample{Task: k.id, Used: k.used}
		if k.proc != nil && !k.ended {
			sessions[k.proc.PID], live[i] = true, k.proc.PID
		}
	}
	t.mu.Unlock()
	used, pids := spawn.Sample(sessions)
	for i, session := range live {
		if session != 0 {
			list[i].Used, list[i].PIDs = used[session], pids[session]
		}
	}
	if gpus && len(list) > 0 && t.node.GPULoad != nil {
		list[0].GPUs = t.node.GPULoad()
	}
	for part := range slices.Chunk(list, sampleChunk) {
		t.send(step.FrameSamples, part)
	}
}
