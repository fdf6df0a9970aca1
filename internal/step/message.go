package step

import (
	"github.com/berth-hpc/berth/internal/step/affinity"
	"github.com/berth-hpc/berth/internal/step/multiprog"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/env"
)

// Kinds of connections.
const (
	KindClient = "client"
	KindLaunch = "launch"
	// KindResumable is a client that reconnects when its connection breaks.
	KindResumable = "lasting"
	// The agent of the batch host sends KindStop or KindContinue to another agent, to
	// stop or continue every process on that node. That agent closes the connection
	// when it has done so.
	KindStop     = "stop"
	KindContinue = "continue"
)

// Open is the first message on a connection.
type Open struct {
	Kind string `json:"kind"`
	// Token identifies the stream that a KindResumable connection resumes; empty
	// opens a new one. Received is how many bytes of it have arrived so far.
	Token    string `json:"token,omitempty"`
	Received uint64 `json:"has,omitempty"`
	// Client is the name by which the API role knows the client of a new stream
	// (wire.AttachClient); empty if it has none.
	Client string `json:"client,omitempty"`
}

// Resumable is the response to an Open of KindResumable. The protocol of package resume
// follows.
type Resumable struct {
	Token    string `json:"token,omitempty"`
	Received uint64 `json:"has,omitempty"`
	Grace    int32  `json:"grace,omitempty"` // seconds in which the client must reconnect
	// SrunProlog and SrunEpilog are the site's, as in wire.Site.
	SrunProlog string `json:"srunProlog,omitempty"`
	SrunEpilog string `json:"srunEpilog,omitempty"`
}

// Request asks the coordinator for a step.
type Request struct {
	JobID int64 `json:"jobID"`
	// Name is the name of the step if Named (srun -J), and otherwise that of the
	// job; an unnamed step is called like its program.
	Name  string `json:"name,omitempty"`
	Named bool   `json:"named,omitempty"`

	Shape Shape `json:"shape"`

	// SrunHost and SrunPID identify the srun process in listings of steps.
	SrunHost string `json:"srunHost,omitempty"`
	SrunPID  int64  `json:"srunPID,omitempty"`

	// Part marks one of several steps, in the components of a heterogeneous job,
	// that run as one. The step starts when a Join describes the whole.
	Part bool `json:"part,omitempty"`

	Hidden    bool   `json:"hidden,omitempty"`    // not listed, and without a step number
	Exact     bool   `json:"exact,omitempty"`     // use only the requested CPUs, not whole nodes
	Overlap   bool   `json:"overlap,omitempty"`   // share CPUs with other steps
	Immediate *int32 `json:"immediate,omitempty"` // seconds to wait for CPUs; nil: no limit
	TimeLimit int32  `json:"timeLimit,omitempty"` // minutes; 0: the job's
	// Signal is sent SignalBefore seconds ahead of TimeLimit; 0: none.
	Signal       int32 `json:"signal,omitempty"`
	SignalBefore int32 `json:"signalBefore,omitempty"`

	// KillOnBadExit ends the step when a task fails. Wait ends it this number of
	// seconds after its first task has ended; 0: never.
	KillOnBadExit bool  `json:"killOnBadExit,omitempty"`
	Wait          int32 `json:"wait,omitempty"`

	Command Command `json:"command"`

	// GPUsPerTask and CPUBind are the options as given, for the environment of
	// the tasks.
	GPUsPerTask string `json:"gpusPerTask,omitempty"`
	CPUBind     string `json:"cpuBind,omitempty"`
	// TasksPerGPU is --ntasks-per-gpu; 0: not given.
	TasksPerGPU int32 `json:"tasksPerGPU,omitempty"`
	PreserveEnv bool  `json:"preserveEnv,omitempty"` // srun --preserve-env
	// NoKill lets the step continue without nodes that are lost.
	NoKill bool `json:"noKill,omitempty"`

	// OOMKillStep is --oom-kill-step; nil: as the job says.
	OOMKillStep *bool `json:"oomKillStep,omitempty"`

	// Container is what the step requests of its container, in the form of
	// job.Batch.Container. Steps run in the containers of their job.
	Container map[string]string `json:"container,omitempty"`

	// Ports is the number of ports that the step reserves, the same ports on all
	// of its nodes. 0: one more than its largest number of tasks on a node; nil:
	// none.
	Ports *int32 `json:"ports,omitempty"`
}

// Join describes a step that runs in several components of a heterogeneous job to one of
// its parts: the numbers of the part's first task and first node, and all nodes of the
// step with the numbers of their tasks.
type Join struct {
	StepID    int32          `json:"stepID"` // preferred; a part keeps its own where this one is in use
	FirstTask uint32         `json:"firstTask"`
	FirstNode int32          `json:"firstNode"`
	Nodes     []env.StepNode `json:"nodes"`
}

// Command is what every task of a step runs, and with which files.
type Command struct {
	Args []string `json:"args"`
	Env  []string `json:"env"` // NAME=value
	Dir  string   `json:"dir"`
	// Umask is the file mode creation mask; negative: the agent's.
	Umask int32 `json:"umask"`
	// Rlimits maps a limit's name, without RLIMIT_, to the soft limit.
	// RlimitsAsked means that --propagate was given. Without it, the cluster's
	// configuration may exclude limits.
	Rlimits      map[string]uint64 `json:"rlimits,omitempty"`
	RlimitsAsked bool              `json:"rlimitsAsked,omitempty"`

	// Stdin is where tasks read from: StdinNone, StdinAll (each gets a copy)
	// or a task's number. Input, Output and Error are patterns of files that
	// the agents open; if empty, the stream is connected to srun.
	Stdin  string `json:"stdin"`
	Input  string `json:"input,omitempty"`
	Output string `json:"output,omitempty"`
	Error  string `json:"error,omitempty"`
	Append bool   `json:"append,omitempty"`
	// Label prefixes the lines in those files with the task's number. srun
	// labels the streams that are connected to it.
	Label bool `json:"label,omitempty"`
	// Raw sends output as it is written, not line by line.
	Raw bool `json:"raw,omitempty"`
	// Receive makes every task write its input to a file (sbcast), in place of
	// running Args.
	Receive *FileSpec `json:"receive,omitempty"`
	// Programs replaces Args[0], which names their file (--multi-prog).
	Programs []multiprog.Program `json:"programs,omitempty"`
	// Program is the pattern of the path of the program to execute in place of
	// Args[0]; empty: Args[0] itself.
	Program string `json:"program,omitempty"`
	// Libraries means that the program's shared objects are in a directory named
	// like Program with LibrariesSuffix.
	Libraries bool `json:"libraries,omitempty"`
	// TaskProlog and TaskEpilog are programs that the agents run before and
	// after each task; empty: none.
	TaskProlog string `json:"taskProlog,omitempty"`
	TaskEpilog string `json:"taskEpilog,omitempty"`

	// MPI is the interface by which the tasks find each other: MPIPMI2 or
	// MPIPMIx; empty: none.
	MPI string `json:"mpi,omitempty"`
	// Terminal gives task 0 a terminal of this size (--pty); the other tasks
	// read and write /dev/null.
	Terminal *WindowSize `json:"terminal,omitempty"`
	// CPUBind and MemBind describe the binding of tasks to CPUs and memory.
	CPUBind affinity.CPUBind `json:"cpuBind,omitzero"`
	MemBind affinity.MemBind `json:"memBind,omitzero"`
	// GPUBind is --gpu-bind as given.
	GPUBind string `json:"gpuBind,omitempty"`
	// WaitForChildren makes a task last until all processes that it started have
	// ended.
	WaitForChildren bool `json:"waitForChildren,omitempty"`
	// OOMKillStep ends all tasks when the kernel kills a process for memory. The
	// coordinator sets it, from Request.OOMKillStep.
	OOMKillStep bool `json:"oomKillStep,omitempty"`
}

// LibrariesSuffix is appended to a program's name to form that of the directory
// with its shared objects.
const LibrariesSuffix = "_libs"

// WindowSize is the size of a terminal, in characters.
type WindowSize struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// FileSpec describes a file whose contents are the input of a task.
type FileSpec struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	Checksum string `json:"sum"` // bcast.NewChecksum's, hexadecimal
	Mode     uint32 `json:"mode"`
	Modified int64  `json:"modified,omitempty"` // Unix nanoseconds; 0: now
	Force    bool   `json:"force,omitempty"`    // replace an existing file
	// Compressed means that the input is zstd frames (RFC 8878). Size and
	// Checksum are those of the uncompressed file.
	Compressed bool `json:"compressed,omitempty"`
	// Parents creates missing directories of Path.
	Parents bool `json:"parents,omitempty"`
	// Pattern replaces %s (the step) and %N (the node) in Path, as in names of
	// output files.
	Pattern bool `json:"pattern,omitempty"`
	// Source lets nodes of the client's machine read the file themselves; nil: all nodes read
	// their input.
	Source *Source `json:"source,omitempty"`
	// Token is different for each transfer. Nodes of one machine that replace (Force) the same
	// file recognize each other by it. Empty: each of them writes the file.
	Token string `json:"token,omitempty"`
}

// Source identifies the file that a client sends. It is not the file's path on other machines.
type Source struct {
	Path   string `json:"path"`
	Kernel string `json:"kernel"` // the boot id of the client's kernel
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
}

// Values of Command.Stdin.
const (
	StdinNone = "none"
	StdinAll  = "all"
)

// DevNull as Command.Output or Error discards the stream.
const DevNull = "/dev/null"

// Launch asks an agent to run tasks on its own node, and to forward the launch
// to the other nodes of its subtree.
type Launch struct {
	JobID int64 `json:"jobID"`
	// Step is the whole step, for the tasks' environment.
	Step env.StepShape `json:"step"`
	// Nodes is the subtree; the first is the receiver's own.
	Nodes   []NodeTasks `json:"nodes"`
	Command Command     `json:"command"`
}

// NodeTasks is the part of a step that runs on one node.
type NodeTasks struct {
	Node  int32    `json:"node"`  // index in the job
	Step  int32    `json:"step"`  // SLURM_NODEID: index in the step
	Tasks []uint32 `json:"tasks"` // global numbers, ascending
	// CPUs is the number of the step's CPUs there. CPUIDs lists them; empty:
	// unknown.
	CPUs   int32  `json:"cpus"`
	CPUIDs string `json:"cpuIDs,omitempty"`
	// PerTask is the number of CPUs of one task.
	PerTask int32 `json:"perTask"`
	// GPUs are the indexes of the GPUs that the step has there; nil: all of the
	// job's.
	GPUs []int `json:"gpus,omitempty"`
	// NoGPUs means that the step has none.
	NoGPUs bool `json:"noGPUs,omitempty"`
}

// Signal is sent to the tasks of a step. With Terminate the tasks get SIGCONT
// and SIGTERM and, KillWait seconds later, SIGKILL.
type Signal struct {
	Signal    int32 `json:"signal,omitempty"`
	Terminate bool  `json:"terminate,omitempty"`
	KillWait  int32 `json:"killWait,omitempty"`
}

// KillNow as Signal.KillWait sends SIGKILL and nothing before it. A client
// requests that with Terminate and SIGKILL.
const KillNow = -1

// Attach requests the output of a running step (sattach).
type Attach struct {
	StepID int32 `json:"stepID"`
	// LayoutOnly requests only the Created message.
	LayoutOnly bool `json:"layoutOnly,omitempty"`
}

// Query asks what steps use (sstat). An empty list of Steps means all running
// steps, and the batch script (wire.StepBatch).
type Query struct {
	Steps []int32 `json:"steps,omitempty"`
	// GPUs requests the load of the GPUs as well, which takes longer.
	GPUs bool `json:"gpus,omitempty"`
}

// GPU is the present load of a GPU. A negative number is not known.
type GPU struct {
	Node   string `json:"node"`
	Index  int32  `json:"index"` // on its node
	UUID   string `json:"uuid,omitempty"`
	Name   string `json:"name,omitempty"`
	Busy   int32  `json:"busy"`   // percent of the time
	Memory int64  `json:"memory"` // bytes in use
	Total  int64  `json:"total"`  // bytes
}

// Tail requests an output file of the batch script, and what is appended to it until
// the job ends.
type Tail struct {
	Errors bool `json:"errors,omitempty"` // standard error
	// Most is the number of bytes before the end of the file to begin with; 0:
	// the whole file.
	Most int64 `json:"most,omitempty"`
}

// TailStart precedes the contents of the file from an offset on. It is sent
// again when the file was truncated.
type TailStart struct {
	Path string `json:"path"`
	From int64  `json:"from"` // bytes
}

// TaskSample is what a running task has used so far, and its processes.
type TaskSample struct {
	Task uint32    `json:"task"`
	Used TaskUsage `json:"used"`
	PIDs []int32   `json:"pids,omitempty"`
	// GPUs of the task's node, with the first of its tasks.
	GPUs []GPU `json:"gpus,omitempty"`
}

// Usage is what a step uses. PIDs are its processes on each of its nodes.
type Usage struct {
	Record wire.StepRecord `json:"record"`
	PIDs   [][]int32       `json:"pids"`
	GPUs   []GPU           `json:"gpus,omitempty"`
}

// Created describes a step to its client.
type Created struct {
	StepID   int32    `json:"stepID"`
	Nodes    []string `json:"nodes"`
	PerNode  []int32  `json:"perNode"`
	Tasks    uint32   `json:"tasks"`
	TaskNode []int32  `json:"taskNode"` // index in Nodes of each task's node
	KillWait int32    `json:"killWait"` // seconds
	// MaxInput is the number of bytes of input that a frame may have; 0: MaxData.
	MaxInput int32 `json:"maxInput,omitempty"`
}

// Started names tasks that run.
type Started struct {
	Node  int32    `json:"node"` // index in the step
	Tasks []uint32 `json:"tasks"`
}

// Exit reports how tasks ended; Status is that of wait(2).
type Exit struct {
	Tasks  []uint32  `json:"tasks"`
	Status uint32    `json:"status"`
	Used   TaskUsage `json:"used,omitzero"` // by each of the tasks
}

// TaskUsage is what a task has used: CPU time in microseconds, memory and disk
// traffic in bytes. VMSize is known only of running tasks.
type TaskUsage struct {
	User   int64 `json:"user,omitempty"`
	System int64 `json:"system,omitempty"`
	RSS    int64 `json:"rss,omitempty"` // the maximum
	VMSize int64 `json:"vmsize,omitempty"`
	Pages  int64 `json:"pages,omitempty"` // major faults
	Read   int64 `json:"read,omitempty"`
	Write  int64 `json:"write,omitempty"`
}

// NodeLost reports that a node of the step is no longer reachable.
type NodeLost struct {
	Node int32  `json:"node"` // index in the step
	Why  string `json:"why,omitempty"`
}

// Aborted reports that the step is being ended.
type Aborted struct {
	Seconds int32 `json:"seconds"` // how long that may take
	// Wait means that the reason is Request.Wait.
	Wait bool `json:"wait,omitempty"`
}

// ExitCode returns the exit code of srun for a wait status.
func ExitCode(status uint32) int {
	if sig := status & 0x7f; sig != 0 && sig != 0x7f {
		return 128 + int(sig)
	}
	return int(status>>8) & 0xff
}

// Fence is what tasks have put into the key-value space since the last fence.
type Fence struct {
	Put map[string]string `json:"put,omitempty"`
	// Waits means that a task of the subtree waits for the end of the fence. A fence
	// does not end before a task waits for it.
	Waits bool `json:"waits,omitempty"`
}
