package launch

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/pmi"
	"github.com/berth-hpc/berth/internal/step"
)

// fence combines the parts of a tree that have reached a PMI fence: the local
// tasks and every child.
type fence struct {
	tree *Tree
	root bool

	mu      sync.Mutex
	parts   int // that participate
	arrived int
	put     map[string]string
	waits   bool
}

// arrive records that a part has reached the fence. The last part sends the fence
// up, or ends it at the root.
func (x *fence) arrive(part *step.Fence) {
	x.mu.Lock()
	x.arrived++
	maps.Copy(x.put, part.Put)
	x.waits = x.waits || part.Waits
	if x.arrived < x.parts || x.root && !x.waits {
		x.mu.Unlock()
		return
	}
	all := &step.Fence{Put: x.put, Waits: x.waits}
	x.arrived, x.put, x.waits = 0, map[string]string{}, false
	x.mu.Unlock()
	if !x.root {
		if f, err := step.JSON(step.FrameFence, all); err == nil {
			x.tree.up.Send(f) //nolint:errcheck // the client may be gone
		}
		return
	}
	if f, err := step.JSON(step.FrameRelease, all); err == nil {
		x.tree.release(f, all)
	}
}

// release ends a fence for the tasks of the subtree.
func (t *Tree) release(f *step.Frame, all *step.Fence) {
	for _, k := range t.children {
		k.send(f)
	}
	if t.local != nil && t.local.pmi != nil {
		t.local.pmi.Release(all.Put)
	}
}

// newMPIServer creates the PMI or PMIx server of the local tasks, if the step has
// one.
func (t *tasks) newMPIServer(x *fence) {
	switch t.launch.Command.MPI {
	case step.MPIPMI2:
	case step.MPIPMIx:
		t.pmix = newPMIx()
		return
	default:
		return
	}
	var size uint32
	for _, n := range t.launch.Step.Nodes {
		size += uint32(len(n.Tasks))
	}
	nodeOf := make([]int32, size)
	for i, n := range t.launch.Step.Nodes {
		for _, task := range n.Tasks {
			if task >= 0 && uint32(task) < size {
				nodeOf[task] = int32(i)
			}
		}
	}
	t.pmi = pmi.New(pmi.Config{
		Name: fmt.Sprintf("%d.%d", jobID(t.launch), t.launch.Step.ID),
		Size: size, Tasks: t.part.Tasks, TaskNode: nodeOf,
		Fence: func(put map[string]string, waits bool) { x.arrive(&step.Fence{Put: put, Waits: waits}) },
		Abort: func(rank uint32, text string) { t.abort("pmi2", rank, text) },
	})
}

// abort aborts the step because a task requested it through PMI or PMIx.
func (t *tasks) abort(plugin string, rank uint32, text string) {
	line := fmt.Sprintf("slurmstepd: error: mpi/%s: task %d aborts the step: %s\n", plugin, rank, text)
	t.up.Send(&step.Frame{ //nolint:errcheck // the client may be gone
		Type: step.FrameAbort, Task: rank, Data: bytes.ToValidUTF8([]byte(line), nil),
	})
}

// connectPMI adds the task's end of its PMI connection to its files.
func (t *tasks) connectPMI(k *task, files []*os.File) ([]*os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return files, fmt.Errorf("slurmstepd: error: mpi/pmi2: %w", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "pmi")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		unix.Close(pair[1])
		return files, fmt.Errorf("slurmstepd: error: mpi/pmi2: %w", err)
	}
	go t.pmi.Serve(k.id, conn)
	return append(files, os.NewFile(uintptr(pair[1]), "pmi")), nil
}

// pmiEnv returns the variables that describe the PMI connection: the descriptor
// after the standard streams.
func (t *tasks) pmiEnv(k *task) []string {
	return []string{
		"PMI_FD=3", "PMI_RANK=" + strconv.Itoa(int(k.id)), "PMI_SIZE=" + strconv.Itoa(int(t.pmi.Size)),
		"PMI_JOBID=" + t.pmi.Name,
	}
}
