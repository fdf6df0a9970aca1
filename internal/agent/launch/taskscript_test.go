package launch

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/exectest"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/env"
)

// newSpawner returns the Spawner of this process. Two would reap each other's
// children.
var newSpawner = sync.OnceValues(spawn.New)

// TestEpilogTimeout checks that an epilog is killed when its time is over.
func TestEpilogTimeout(t *testing.T) {
	spawner, err := newSpawner()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "epilog")
	exectest.Write(t, program, "#!/bin/sh\nexec /bin/sleep 600\n")
	var errors strings.Builder
	scripts := &TaskScripts{Spawn: spawner, Dir: "/", Error: func(text string) { errors.WriteString(text) }}
	scripts.Epilog("user", program, []string{"PATH=/bin:/usr/bin"}, time.Millisecond)
	if want := "slurmstepd: error: TaskEpilog failed status=9\n"; errors.String() != want {
		t.Errorf("%q, want %q", errors.String(), want)
	}
}

// TestArgvZeroIsThePath checks that a task's argv[0] is the path that was found,
// as with Slurm's srun.
func TestArgvZeroIsThePath(t *testing.T) {
	spawner, err := newSpawner()
	if err != nil {
		t.Fatal(err)
	}
	node := &Node{
		Spawn: spawner,
		Env:   func(*step.Launch, *step.NodeTasks, int) []string { return []string{"PATH=/nonexistent:/bin"} },
	}
	up := &recorder{types: make(chan step.Type, 100)}
	Start(t.Context(), node, &step.Launch{
		JobID: 7, Step: env.StepShape{Nodes: []env.StepNode{{Name: "n1", Tasks: []int32{0}}}},
		Nodes:   []step.NodeTasks{{Tasks: []uint32{0}}},
		Command: step.Command{Args: []string{"sh", "-c", "echo $0"}, Dir: "/", Stdin: step.StdinNone},
	}, up, true).Wait()
	var output strings.Builder
	for _, f := range up.frames {
		if f.Type == step.FrameStdout {
			output.Write(f.Data)
		}
	}
	if want := "/bin/sh\n"; output.String() != want {
		t.Errorf("%q, want %q", output.String(), want)
	}
}
