// Package shim turns a new process into a container's process. The node starts its own
// binary again with the argument Arg, in new namespaces. The init function of this package,
// which runs before most of the binary is initialized because the package imports little,
// reads a Spec, builds the container's root, drops privileges and executes the container's
// command. Nothing of the shim remains in a running container.
package shim

// Arg is the first argument of a process that is to become a container.
const Arg = "processnode-shim"

// File descriptors of a shim.
const (
	FDSpec   = 3 // a Spec as JSON until end of file
	FDStatus = 4 // the shim's status for its parent: Ready, then the text of an error or nothing
	FDNet    = 5 // network namespace to enter, with Spec.EnterNet
	FDExe    = 6 // the node's binary, for a shim that joins a container
)

// Ready is the byte that a shim writes when it has started and waits for its Spec. Going is
// the byte that a shim with Spec.Joined writes immediately before it executes the command.
// (For other shims, execve closes the descriptor, so the parent reads the end of file. For
// a joined one, the nsenter command has the descriptor too.)
const (
	Ready = 'r'
	Going = 0
)

// Spec describes the process that a shim becomes.
type Spec struct {
	// Root is an empty directory at which the container's root is mounted; empty: the
	// process keeps its root, because it joined a container.
	Root string
	// Proc: the process has its own pid namespace, whose /proc is mounted.
	Proc     bool
	Hostname string // empty: unchanged
	EnterNet bool
	Joined   bool // the process joins a running container
	// Shm is the directory shown as /dev/shm; empty: the machine's.
	Shm          string
	Mounts       []Mount // in any order
	ReadOnlyRoot bool

	Argv []string
	Env  []string
	Dir  string // working directory; empty: /

	// SetIDs: change to the identity below (as root); otherwise the identity is kept.
	SetIDs bool
	UID    uint32
	GID    uint32
	Groups []uint32
	// Bounding is the set of capabilities to keep as a bit mask; nil: all.
	Bounding    *uint64
	NoNewPrivs  bool
	OOMScoreAdj *int
	// DieWithParent: the kernel sends SIGKILL when the node's process ends.
	DieWithParent bool
}

// Mount mounts Source, a path of the machine, at Target in the container.
type Mount struct {
	Source   string
	Target   string
	ReadOnly bool
	// Own: only the pod uses Source, so that mount points may be created in it.
	Own bool
}
