// Package launch runs the tasks of a step: those of the agent's own node as child
// processes, and those of other nodes by forwarding the launch to their agents,
// as a tree. The tasks' output and exit statuses go up the tree to the
// coordinator; input and signals come down.
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

// ReceiveArg as the agent's first argument makes it a task of sbcast. The second
// argument is a step.FileSpec.
const ReceiveArg = "receive-file"

// Fanout is the maximum number of agents to which one agent forwards a launch.
const Fanout = 16

// Sink receives the frames that go up. Send may block, and must not retain the
// frame after it returns. It is safe for concurrent use.
type Sink interface {
	Send(*step.Frame) error
}

// Node describes the agent's own node. Its fields are read-only.
type Node struct {
	Index int32  // in the job
	Name  string // short node name
	User  string
	Spawn *spawn.Spawner
	// Helper is the agent's own program, which sets limits (spawn.Exec).
	Helper string
	// Dial connects to the agent of another node of the job.
	Dial func(ctx context.Context, node int32) (*step.Conn, error)
	// Keep returns a connection for reuse by a later step.
	Keep func(node int32, conn *step.Conn)
	// Env returns a task's environment: that of srun, overridden by what Berth
	// sets.
	Env func(l *step.Launch, n *step.NodeTasks, local int) []string

	// OOMKills returns the number of OOM kills in the pod so far; nil: unknown.
	OOMKills func() int64

	// GPULoad returns the load of the job's GPUs on the node; nil: unknown.
	GPULoad func() []step.GPU

	// TaskProlog and TaskEpilog are the site's programs before and after every task; empty:
	// none.
	TaskProlog, TaskEpilog string

	// JobName, ArrayJobID and ArrayTask are the job's, for names of files.
	// ArrayJobID is 0 if the job is not a task of an array.
	JobName    string
	ArrayJobID int64
	ArrayTask  int32

	// CPUs is the agent's own CPU mask; nil: unknown, and tasks are not bound.
	CPUs *unix.CPUSet
	// Topology returns the node's topology. GPUs are the indexes of the job's
	// GPUs on this node; nil: none, or unknown.
	Topology func() *bind.Topology
	GPUs     []int
	// NearGPUs returns for each of the GPUs with these indexes the CPUs near it; nil for a GPU,
	// or no function: they are unknown.
	NearGPUs func(ids []int) [][]int

	// PMIx is the path of the PMIx server program, which may be missing. TempDir
	// is a directory that only the user can enter.
	PMIx, TempDir string

	pmix      sync.Mutex // held by CheckPMIx
	pmixWorks bool
}

// jobID returns the job's id in the tasks' environment, on which all parts of a
// step over several components agree.
func jobID(l *step.Launch) int64 {
	if l.Step.JobID != 0 {
		return l.Step.JobID
	}
	return l.JobID
}

// patterns returns the values of the %-patterns in names of a task's files.
func (n *Node) patterns(l *step.Launch, t *step.NodeTasks, local int) env.PatternValues {
	return env.PatternValues{
		JobID: l.JobID, ArrayJobID: n.ArrayJobID, ArrayTask: n.ArrayTask, Step: l.Step.ID, Task: int32(t.Tasks[local]),
		NodeIndex: t.Step, Node: n.Name, User: n.User, JobName: n.JobName,
	}
}
