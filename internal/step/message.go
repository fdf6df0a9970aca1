package step

import (
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
)

// Kinds of connections.
const (
	KindClient = "client"
	KindLaunch = "launch"
	// KindLasting is a client that comes again when its connection breaks.
	KindLasting = "lasting"
	// KindStop and KindContinue are the batch host's agent's, which has every
	// process on the node stopped or continued. The answer is the end of the
	// connection.
	KindStop     = "stop"
	KindContinue = "continue"
)

// Open is the first message on a connection.
type Open struct {
	Kind string `json:"kind"`
	// Token, of KindLasting, is that of the stream that goes on; empty: a new
	// one. Has is how many bytes of it have come so far.
	Token string `json:"token,omitempty"`
	Has   uint64 `json:"has,omitempty"`
	// Client is what the API role calls who opens a new stream (wire.AttachClient);
	// empty: nothing.
	Client string `json:"client,omitempty"`
}

// Lasting is the answer to an Open of KindLasting; package resume is spoken
// from then on.
type Lasting struct {
	Token string `json:"token,omitempty"`
	Has   uint64 `json:"has,omitempty"`
	Grace int32  `json:"grace,omitempty"` // seconds that the client may stay away
	// SrunProlog and SrunEpilog are the site's, as in wire.Site.
	SrunProlog string `json:"srunProlog,omitempty"`
	SrunEpilog string `json:"srunEpilog,omitempty"`
}

// Request asks the coordinator for a step.
type Request struct {
	JobID int64 `json:"jobID"`
	// Name of the job's kind; Named: the step was given it (-J), else it is
	// called as its program.
	Name  string `json:"name,omitempty"`
	Named bool   `json:"named,omitempty"`

	Shape Shape `json:"shape"`

	// SrunHost and SrunPID say where srun runs, for those who look at the step.
	SrunHost string `json:"srunHost,omitempty"`
	SrunPID  int64  `json:"srunPID,omitempty"`

	// Part: the step is one of several, in the components of a heterogeneous
	// job, that are to be as one. It starts when a Join says what they are.
	Part bool `json:"part,omitempty"`

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
	PreserveEnv bool   `json:"preserveEnv,omitempty"`
	// NoKill: the step goes on without a node that is lost.
	NoKill bool `json:"noKill,omitempty"`

	// OOMKillStep is --oom-kill-step; nil: as the job says.
	OOMKillStep *bool `json:"oomKillStep,omitempty"`

	// Container is what the step asks of its container, as job.Batch.Container
	// has it: steps run in those of their job.
	Container map[string]string `json:"container,omitempty"`

	// Ports is how many ports the step wants to itself, on all of its nodes the
	// same; 0: one more than it has tasks on any node; nil: none.
	Ports *int32 `json:"ports,omitempty"`
}

// Join describes the whole to one of its parts: where the part's tasks and
// nodes begin, and all nodes, with the tasks' numbers in the whole.
type Join struct {
	StepID    int32          `json:"stepID"` // wanted; a part where it is taken keeps its own
	FirstTask uint32         `json:"firstTask"`
	FirstNode int32          `json:"firstNode"`
	Nodes     []env.StepNode `json:"nodes"`
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
	// Label puts the task's number ahead of the lines in those files; where srun
	// has the stream it does that itself.
	Label bool `json:"label,omitempty"`
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
	// Libraries: beside Program is a folder with its shared objects, called as
	// Program with LibrariesSuffix.
	Libraries bool `json:"libraries,omitempty"`
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
	// CPUBind and MemBind say which CPUs tasks run on and where their memory
	// comes from, and whether to say so.
	CPUBind Bind    `json:"cpuBind,omitzero"`
	MemBind MemBind `json:"memBind,omitzero"`
	// GPUBind is --gpu-bind as given.
	GPUBind string `json:"gpuBind,omitempty"`
	// WaitForChildren: a task lasts as long as any process that it has started.
	WaitForChildren bool `json:"waitForChildren,omitempty"`
	// OOMKillStep ends all tasks when the kernel kills a process for memory. The
	// coordinator sets it, by Request.OOMKillStep.
	OOMKillStep bool `json:"oomKillStep,omitempty"`
}

// LibrariesSuffix ends the name of the folder of a program's shared objects.
const LibrariesSuffix = "_libs"

// WindowSize is the size of a terminal, in characters.
type WindowSize struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// Receive describes a file that comes as the input of a task.
type Receive struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Sum      string `json:"sum"` // NewSum's, hexadecimal
	Mode     uint32 `json:"mode"`
	Modified int64  `json:"modified,omitempty"` // Unix nanoseconds; 0: now
	Force    bool   `json:"force,omitempty"`    // replace a file of that name
	// Compressed: the input is the file as zstd's frames (RFC 8878). Size and
	// Sum are the file's.
	Compressed bool `json:"compressed,omitempty"`
	// Parents: folders of Path that are not there are made.
	Parents bool `json:"parents,omitempty"`
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
	// GPUs are the numbers of those that the step has there; nil: all of the
	// job's.
	GPUs []int `json:"gpus,omitempty"`
	// NoGPUs: it has none.
	NoGPUs bool `json:"noGPUs,omitempty"`
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

// AtOnce as Signal.KillWait: SIGKILL and nothing before. A client asks for that
// with Terminate and SIGKILL.
const AtOnce = -1

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
	// GPUs: what the GPUs do is wanted as well, which takes longer.
	GPUs bool `json:"gpus,omitempty"`
}

// GPU is what a GPU does now. A negative number is not known.
type GPU struct {
	Node   string `json:"node"`
	Index  int32  `json:"index"` // on its node
	UUID   string `json:"uuid,omitempty"`
	Name   string `json:"name,omitempty"`
	Busy   int32  `json:"busy"`   // percent of the time
	Memory int64  `json:"memory"` // bytes in use
	Total  int64  `json:"total"`  // bytes
}

// Tail asks for a file that the batch script writes to, and for what is added
// to it until the job is over.
type Tail struct {
	Errors bool `json:"errors,omitempty"` // standard error
	// Most is how many bytes before the end of the file are wanted; 0: all.
	Most int64 `json:"most,omitempty"`
}

// Tailed says what follows: the file from a place on. It comes again when the
// file was cut.
type Tailed struct {
	Path string `json:"path"`
	From int64  `json:"from"` // bytes
}

// Sampled is what a task has used so far, and its processes.
type Sampled struct {
	Task uint32  `json:"task"`
	Used Used    `json:"used"`
	PIDs []int32 `json:"pids,omitempty"`
	// GPUs of the task's node, with the first of its tasks.
	GPUs []GPU `json:"gpus,omitempty"`
}

// Usage is what a step uses. PIDs are its processes on each of its nodes.
type Usage struct {
	Record wire.StepRecord `json:"record"`
	PIDs   [][]int32       `json:"pids"`
	GPUs   []GPU           `json:"gpus,omitempty"`
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
