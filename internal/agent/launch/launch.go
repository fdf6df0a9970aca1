// Package launch runs a step's tasks: those of the agent's own node as child
// processes, and those of other nodes by passing the launch on to their agents
// in a tree. What tasks write and how they end goes up to whoever asked; what
// is meant for tasks comes down the same way.
package launch

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/agent/bind"
	"github.com/berth-hpc/berth/internal/agent/spawn"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/env"
)

// ReceiveArg as the agent's first argument makes it a task of sbcast; the next
// is a step.FileSpec.
const ReceiveArg = "receive-file"

// Fanout is the most agents that one agent passes a launch to.
const Fanout = 16

// Sink takes the frames that go up. Send may block, and keeps nothing of the
// frame when it returns. It is safe for concurrent use.
type Sink interface {
	Send(*step.Frame) error
}

// Node is the agent's own node, as launches need to know it. Its fields are
// read-only.
type Node struct {
	Index int32  // in the job
	Name  string // short node name
	User  string
	Spawn *spawn.Spawner
	// Helper is the agent's own program, for limits (spawn.Exec).
	Helper string
	// Dial connects to the agent of another node of the job.
	Dial func(ctx context.Context, node int32) (*step.Conn, error)
	// Keep takes a connection back that has done its work.
	Keep func(node int32, conn *step.Conn)
	// Env makes a task's environment: srun's, and over it what Berth sets.
	Env func(l *step.Launch, n *step.NodeTasks, local int) []string

	// OOMKills is how many processes of the pod the kernel has killed for memory
	// so far; nil: nobody knows.
	OOMKills func() int64

	// Load tells what the job's GPUs on the node do; nil: nobody knows.
	Load func() []step.GPU

	// TaskProlog and TaskEpilog are the site's programs around every task;
	// empty: none.
	TaskProlog, TaskEpilog string

	// Of the job, for file names.
	JobName string

	// CPUs is the agent's own mask; nil: unknown, and tasks are not pinned.
	CPUs *unix.CPUSet
	// Topology is read when it is needed first. GPUs are the numbers of the
	// job's GPUs on this node; nil: none, or they are not known.
	Topology func() *bind.Topology
	GPUs     []int

	// PMIx is the program that speaks PMIx; it may not be there. TempDir is a
	// folder that only the user can enter.
	PMIx, TempDir string

	pmix     sync.Mutex // over CheckPMIx
	pmixGood bool
}

// jobID is the job as the step's tasks are told of it: all parts of a step over
// several components are to agree on it.
func jobID(l *step.Launch) int64 {
	if l.Step.JobID != 0 {
		return l.Step.JobID
	}
	return l.JobID
}

// names are what %-patterns of a task's files stand for.
func (n *Node) names(l *step.Launch, t *step.NodeTasks, local int) env.Place {
	return env.Place{
		JobID: l.JobID, Step: l.Step.ID, Task: int32(t.Tasks[local]),
		NodeIndex: t.Step, Node: n.Name, User: n.User, JobName: n.JobName,
	}
}
