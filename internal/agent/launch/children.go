package launch

import (
	"fmt"
	"time"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
)

// Intervals at which the remaining children of a task, and the number of OOM kills, are
// checked.
const (
	childrenInterval = 100 * time.Millisecond
	oomInterval      = 200 * time.Millisecond
)

// waitForChildren waits until all processes that the task k has started have
// ended, or the step is killed (--wait-for-children). Processes outside of the
// task's session are recognized by their environment.
func (t *tasks) waitForChildren(k *task) {
	variables := []string{
		fmt.Sprintf("SLURM_JOB_ID=%d", jobID(t.launch)), fmt.Sprintf("SLURM_STEP_ID=%d", t.launch.Step.ID),
		fmt.Sprintf("SLURM_PROCID=%d", k.id),
	}
	for pause := time.Millisecond; !t.killed(); pause = min(2*pause, childrenInterval) {
		left := spawn.Kill(0, func(p spawn.Proc) bool {
			return p.PID != k.proc.PID && (p.Session == k.proc.PID || spawn.Owns(p.PID, variables...))
		})
		if left == 0 {
			return
		}
		time.Sleep(pause)
	}
}

// killed reports whether the step is being killed.
func (t *tasks) killed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dead
}

// watchOOMKills aborts the step when the OOM killer kills a process of the pod
// (--oom-kill-step). The kernel counts by pod, not by step.
func (t *tasks) watchOOMKills() {
	if !t.launch.Command.OOMKillStep || t.node.OOMKills == nil {
		return
	}
	before := t.node.OOMKills()
	go func() {
		tick := time.NewTicker(oomInterval)
		defer tick.Stop()
		for {
			select {
			case <-t.over:
				return
			case <-tick.C:
			}
			if kills := t.node.OOMKills() - before; kills > 0 {
				line := OOMLine(fmt.Sprintf("%d.%d", jobID(t.launch), t.launch.Step.ID), kills) + "\n"
				_ = t.up.Send(
					&step.Frame{Type: step.FrameAbort, Task: step.AllTasks, Data: []byte(line)},
				) //nolint:errcheck // the client may be gone
				return
			}
		}
	}()
}

// OOMLine returns Slurm's message that processes of a step, such as 7.0 or
// 7.batch, were OOM killed.
func OOMLine(stepID string, kills int64) string {
	events := "event"
	if kills > 1 {
		events = "events"
	}
	return fmt.Sprintf(
		"slurmstepd: error: Detected %d oom_kill %s in StepId=%s. Some of the step tasks have been OOM Killed.",
		kills, events, stepID)
}
