package step

import (
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
)

// Kinds of connections.
const (
	KindClient = "client"
	KindLaunch = "launch"
)

// Open is the first message on a connection.
type Open struct {
	Kind string `json:"kind"`
}

// Request asks the coordinator for a step.
type Request struct {
	JobID int64 `json:"jobID"`
	// Name of the job's kind; Named: the step was given it (-J), else it is
	// called as its program.
	Name  string `json:"name,omitempty"`
	Named bool   `json:"named,omitempty"`

	Shape Shape `json:"shape"`

	Hidden    bool   `json:"hidden,omitempty"`    // no step that anybody sees or that has a number
	Exact     bool   `json:"exact,omitempty"`     // take the CPUs asked for, not the whole nodes
	Overlap   bool   `json:"overlap,omitempty"`   // share CPUs with other steps
	Immediate *int32 `json:"immediate,omitempty"` // seconds to wait for CPUs; nil: for ever
	TimeLimit int32  `json:"timeLimit,omitempty"` // minutes; 0: the job's
	// Signal is sent SignalBefore seconds ahead of TimeLimit; 0: none.
	Signal       int32 `json:"signal,omitempty"`
	SignalBefore int32 `json:"signalBefore,omitempty"`

	// KillOnBadExit ends the step when a task fails. Wait, in seconds, ends
	// it that long after its first task's end; 0: never.
	KillOnBadExit bool  `json:"killOnBadExit,omitempty"`
	Wait          int32 `json:"wait,omitempty"`

	Command Command `json:"command"`

	// For the tasks' environment, as given.
	GPUsPerTask string `json:"gpusPerTask,omitempty"`
	CPUBind     string `json:"cpuBind,omitempty"`
}

// Command is what every task of a step runs, and with which files.
type Command struct {
	Args []string `json:"args"`
	Env  []string `json:"env"` // NAME=value
	Dir  string   `json:"dir"`
	// Umask is the bits to clear; negative: the agent's.
	Umask int32 `json:"umask"`
	// Rlimits: name without RLIMIT_ -> soft limit. RlimitsAsked: --propagate
	// names them; else the cluster may say that some are not taken over.
	Rlimits      map[string]uint64 `json:"rlimits,omitempty"`
	RlimitsAsked bool              `json:"rlimitsAsked,omitempty"`

	// Stdin is where tasks read from: StdinNone, StdinAll (each gets a copy)
	// or a task's number. Input, Output and Error are patterns of files that
	// the agents open; empty: the stream is srun's.
	Stdin  string `json:"stdin"`
	Input  string `json:"input,omitempty"`
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
	Append bool   `json:"append,omitempty"`
	// Raw sends output as it comes, not line by line.
	Raw bool `json:"raw,omitempty"`
	// Receive has every task make a file of its input (sbcast), in place of
	// running Args.
	Receive *Receive `json:"receive,omitempty"`
	// Programs, of --multi-prog, in place of Args[0], which names their file.
	Programs []Program `json:"programs,omitempty"`
	// Program is the pattern of a path (as Output) of what is executed in place
	// of Args[0]; empty: Args[0] is.
	Program string `json:"program,omitempty"`
	// TaskProlog and TaskEpilog are programs that the agents run before and
	// after each task; empty: none.
	TaskProlog string `json:"taskProlog,omitempty"`
	TaskEpilog string `json:"taskEpilog,omitempty"`

	// MPI is the kind of help that the tasks get to find each other: MPIPMI2,
	// MPIPMIx; empty: none.
	MPI string `json:"mpi,omitempty"`
	// Terminal gives task 0 a terminal of that size (--pty); the other tasks
	// read and write /dev/null.
	Terminal *WindowSize `json:"terminal,omitempty"`
	// Bind pins tasks to CPUs where the node has those given to the job.
	Bind bool `json:"bind,omitempty"`
	// CPUBind says how, with Bind, and whether to say so.
	CPUBind Bind `json:"cpuBind,omitzero"`
	// GPUBind is --gpu-bind as given.
	GPUBind string `json:"gpuBind,omitempty"`
}

// WindowSize is the size of a terminal, in characters.
type WindowSize struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// Receive describes a file that comes as the input of a task.
type Receive struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Sum      string `json:"sum"` // SHA-256, hexadecimal
	Mode     uint32 `json:"mode"`
	Modified int64  `json:"modified,omitempty"` // Unix nanoseconds; 0: now
	Force    bool   `json:"force,omitempty"`    // replace a file of that name
	// Compressed: the input is the file as zstd's frames (RFC 8878). Size and
	// Sum are the file's.
	Compressed bool `json:"compressed,omitempty"`
	// Pattern: %s (the step) and %N (the node) in Path stand for what they do
	// in names of output files.
	Pattern bool `json:"pattern,omitempty"`
}

// Values of Command.Stdin.
const (
	StdinNone = "none"
	StdinAll  = "all"
)

// DevNull as Command.Output or Error throws the stream away.
const DevNull = "/dev/null"

// Launch asks an agent to run tasks on its own node, and to pass on what
// concerns the others.
type Launch struct {
	JobID int64 `json:"jobID"`
	// Step is the whole step, as the tasks' environment tells it.
	Step env.StepShape `json:"step"`
	// Nodes is the subtree; the first is the receiver's own.
	Nodes   []NodeTasks `json:"nodes"`
	Command Command     `json:"command"`
}

// NodeTasks is one node's part of a step.
type NodeTasks struct {
	Node  int32    `json:"node"`  // index in the job
	Step  int32    `json:"step"`  // SLURM_NODEID: index in the step
	Tasks []uint32 `json:"tasks"` // global numbers, ascending
	// CPUs the step has there, and which where that is known.
	CPUs   int32  `json:"cpus"`
	CPUIDs string `json:"cpuIDs,omitempty"`
	// PerTask is CPUs of one task.
	PerTask int32 `json:"perTask"`
}

// Signal is sent to the tasks of a step. With Terminate the tasks get SIGCONT
// and SIGTERM and, KillWait seconds later, SIGKILL.
type Signal struct {
	Signal    int32 `json:"signal,omitempty"`
	Terminate bool  `json:"terminate,omitempty"`
	KillWait  int32 `json:"killWait,omitempty"`
	// Reason, of Terminate, as the notice says it: "", "DUE TO TIME LIMIT".
	Reason string `json:"reason,omitempty"`
}

// Attach asks to see a step that runs (sattach). Stdin: what comes is passed on
// to its tasks.
type Attach struct {
	StepID int32 `json:"stepID"`
	// LayoutOnly: nothing but Created is wanted.
	LayoutOnly bool `json:"layoutOnly,omitempty"`
}

// Query asks what steps use (sstat). Steps are their numbers; empty: all that
// run, the batch script (wire.StepBatch) among them.
type Query struct {
	Steps []int32 `json:"steps,omitempty"`
}

// Sampled is what a task has used so far, and its processes.
type Sampled struct {
	Task uint32  `json:"task"`
	Used Used    `json:"used"`
	PIDs []int32 `json:"pids,omitempty"`
}

// Usage is what a step uses. PIDs are its processes on each of its nodes.
type Usage struct {
	Record wire.StepRecord `json:"record"`
	PIDs   [][]int32       `json:"pids"`
}

// Created tells the client about its step.
type Created struct {
	StepID   int32    `json:"stepID"`
	Nodes    []string `json:"nodes"`
	PerNode  []int32  `json:"perNode"`
	Tasks    uint32   `json:"tasks"`
	TaskNode []int32  `json:"taskNode"` // step node of each task
	KillWait int32    `json:"killWait"` // seconds
}

// Started names tasks that run.
type Started struct {
	Node  int32    `json:"node"` // index in the step
	Tasks []uint32 `json:"tasks"`
}

// Exit says how tasks ended; Status is wait(2)'s.
type Exit struct {
	Tasks  []uint32 `json:"tasks"`
	Status uint32   `json:"status"`
	Used   Used     `json:"used,omitzero"` // by each of the tasks
}

// Used is what a task has used: CPU time in microseconds, memory and disk
// traffic in bytes. VMSize is known only of tasks that run.
type Used struct {
	User   int64 `json:"user,omitempty"`
	System int64 `json:"system,omitempty"`
	RSS    int64 `json:"rss,omitempty"` // the most
	VMSize int64 `json:"vmsize,omitempty"`
	Pages  int64 `json:"pages,omitempty"` // major faults
	Read   int64 `json:"read,omitempty"`
	Write  int64 `json:"write,omitempty"`
}

// NodeLost says that a node of the step does not answer any more.
type NodeLost struct {
	Node int32  `json:"node"` // index in the step
	Why  string `json:"why,omitempty"`
}

// Aborted says that the step is being ended, and how long that may take.
type Aborted struct {
	Seconds int32 `json:"seconds"`
	// Wait: the reason is Request.Wait.
	Wait bool `json:"wait,omitempty"`
}

// Code is the exit code that srun gives for a wait status.
func Code(status uint32) int {
	if sig := status & 0x7f; sig != 0 && sig != 0x7f {
		return 128 + int(sig)
	}
	return int(status>>8) & 0xff
}

// Fence is what tasks have put into the key-value space since the last fence.
type Fence struct {
	Put map[string]string `json:"put,omitempty"`
	// Waits: some task below waits; without any the fence does not end.
	Waits bool `json:"waits,omitempty"`
}
