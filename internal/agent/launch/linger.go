package launch

import (
	"fmt"
	"time"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
)

// Pauses between looks at what a task has left running, and at the count of
// processes killed for memory.
const (
	childrenPause = 100 * time.Millisecond
	memoryPause   = 200 * time.Millisecond
)

// awaitChildren returns when nothing runs any more that the task k has started,
// or the step is killed (--wait-for-children). What has left the task's session
// is known by its environment.
func (t *tasks) awaitChildren(k *task) {
	own := []string{
		fmt.Sprintf("SLURM_JOB_ID=%d", jobID(t.launch)), fmt.Sprintf("SLURM_STEP_ID=%d", t.launch.Step.ID),
		fmt.Sprintf("SLURM_PROCID=%d", k.id),
	}
	for pause := time.Millisecond; !t.killed(); pause = min(2*pause, childrenPause) {
		left := spawn.Kill(0, func(p spawn.Proc) bool {
			return p.PID != k.proc.PID && (p.Session == k.proc.PID || spawn.Owns(p.PID, own...))
		})
		if left == 0 {
			return
		}
		time.Sleep(pause)
	}
}

func (t *tasks) killed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dead
}

// watchMemory has the step end when the kernel kills a process of the pod for
// memory (--oom-kill-step). The kernel counts by pod, not by step.
func (t *tasks) watchMemory() {
	if !t.launch.Command.OOMKillStep || t.node.OOMKills == nil {
		return
	}
	before := t.node.OOMKills()
	go func() {
		tick := time.NewTicker(memoryPause)
		defer tick.Stop()
		for {
			select {
			case <-t.over:
				return
			case <-tick.C:
			}
			if kills := t.node.OOMKills() - before; kills > 0 {
				line := OOMLine(fmt.Sprintf("%d.%d", jobID(t.launch), t.launch.Step.ID), kills) + "\n"
				t.up.Send(&step.Frame{Type: step.FrameAbort, Task: step.AllTasks, Data: []byte(line)}) //nolint:errcheck // then nobody listens
				return
			}
		}
	}()
}

// OOMLine tells the user that a step, such as 7.0 or 7.batch, lost processes, in
// Slurm's words.
func OOMLine(stepID string, kills int64) string {
	events := "event"
	if kills > 1 {
		events = "events"
	}
	return fmt.Sprintf("slurmstepd: error: Detected %d oom_kill %s in StepId=%s. Some of the step tasks have been OOM Killed.", kills, events, stepID)
}
