// Package shim turns a fresh process into a container's process. The node
// starts its own binary again with the word Arg, in new namespaces; this
// package takes over in init, before the rest of the binary is initialised
// (it imports little, so Go runs its init early), reads a Spec, builds the
// container's root, drops privileges and executes the container's command.
// Nothing of the shim remains in a running container.
package shim

// Arg is the first argument of a process that is to become a container.
const Arg = "processnode-shim"

// File descriptors of a shim.
const (
	FDSpec   = 3 // a Spec as JSON until end of file
	FDStatus = 4 // the shim's word to its parent: Ready, then an error's text or nothing
	FDNet    = 5 // network namespace to enter, where Spec.EnterNet
	FDExe    = 6 // the node's binary, for a shim that joins a container
)

// Ready is the byte that a shim writes when it runs and waits for its Spec.
// Going is the byte that a shim with Spec.Joined writes when all that is left
// to do is to execute the command. (Other shims let the parent see the end of
// file that execve brings; of a joined one, the nsenter command holds the
// descriptor too.)
const (
	Ready = 'r'
	Going = 0
)

// Spec says what a shim becomes.
type Spec struct {
	// Root is an empty directory to mount the container's root on; empty: the
	// process stays in the root that it has (it joined a container).
	Root string
	// Proc: the process has a pid namespace of its own and wants its /proc.
	Proc     bool
	Hostname string // empty: unchanged
	EnterNet bool
	Joined   bool // the process was brought into a running container
	// Shm is the directory shown as /dev/shm; empty: the machine's.
	Shm          string
	Mounts       []Mount // in any order
	ReadOnlyRoot bool

	Argv []string
	Env  []string
	Dir  string // working directory; empty: /

	// SetIDs: use the identity below (as root); else keep the present one.
	SetIDs bool
	UID    uint32
	GID    uint32
	Groups []uint32
	// Bounding is the set of capabilities to keep as a bit mask; nil: all.
	Bounding    *uint64
	NoNewPrivs  bool
	OOMScoreAdj *int
	// DieWithParent: SIGKILL when the node's process ends.
	DieWithParent bool
}

// Mount shows Source (a path of the machine) at Target of the container.
type Mount struct {
	Source   string
	Target   string
	ReadOnly bool
	// Own: Source belongs to the pod alone, so that mount points may be made
	// in it.
	Own bool
}
