package launch

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/env"
)

// recorder records the frames that go up and reports their types.
type recorder struct {
	mu     sync.Mutex
	frames []step.Frame
	types  chan step.Type
}

func (s *recorder) Send(f *step.Frame) error {
	s.mu.Lock()
	s.frames = append(s.frames, step.Frame{Type: f.Type, Data: append([]byte(nil), f.Data...)})
	s.mu.Unlock()
	s.types <- f.Type
	return nil
}

// TestOOMKillStep checks that with --oom-kill-step the step is aborted as soon as
// the kernel has killed a process of the pod for memory, and not without.
func TestOOMKillStep(t *testing.T) {
	spawner, err := newSpawner()
	if err != nil {
		t.Fatal(err)
	}
	for _, enabled := range []bool{true, false} {
		var kills atomic.Int64
		kills.Store(3) // of an earlier step
		n := &Node{
			Spawn: spawner, OOMKills: kills.Load,
			Env: func(*step.Launch, *step.NodeTasks, int) []string { return nil },
		}
		up := &recorder{types: make(chan step.Type, 100)}
		tree := Start(context.Background(), n, &step.Launch{
			JobID: 7,
			Step:  env.StepShape{Nodes: []env.StepNode{{Name: "n1", Tasks: []int32{0}}}},
			Nodes: []step.NodeTasks{{Tasks: []uint32{0}}},
			Command: step.Command{
				Args:        []string{"/bin/sleep", "600"},
				Dir:         "/",
				OOMKillStep: enabled,
				Stdin:       step.StdinNone,
			},
		}, up, true)
		await := func(want step.Type) {
			t.Helper()
			limit := time.After(eventually.Timeout)
			for {
				select {
				case got := <-up.types:
					if got == want {
						return
					}
				case <-limit:
					t.Fatalf("--oom-kill-step %v: no frame of type %d", enabled, want)
				}
			}
		}
		await(step.FrameStarted)
		kills.Add(1)
		if enabled {
			await(step.FrameAbort)
		}
		tree.Abort()
		tree.Wait()
		aborts := 0
		for _, f := range up.frames {
			if f.Type == step.FrameAbort {
				aborts++
				const want = "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. " +
					"Some of the step tasks have been OOM Killed.\n"
				if string(f.Data) != want {
					t.Errorf("%q, want %q", f.Data, want)
				}
			}
			if f.Type == step.FrameNotice && strings.Contains(string(f.Data), "error") {
				t.Errorf("%s", f.Data)
			}
		}
		if enabled != (aborts == 1) {
			t.Errorf("--oom-kill-step %v: %d aborts", enabled, aborts)
		}
	}
}
