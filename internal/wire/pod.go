package wire

// Variables of a pod's container, which the starter or pod admission sets and the agent
// reads.
const (
	EnvJobID      = "BERTH_JOB_ID"
	EnvAttempt    = "BERTH_ATTEMPT"
	EnvNodeOffset = "BERTH_NODE_OFFSET"    // plus EnvPodIndex: the node's index
	EnvNodes      = "BERTH_NODES"          // replaces it, in the form of AnnotationNodes
	EnvPodIndex   = "JOB_COMPLETION_INDEX" // set by the Job controller
	EnvNodeName   = "BERTH_NODE_NAME"      // short name of the planned node, by pod admission
	EnvPodIP      = "BERTH_POD_IP"         // status.podIP by the downward API
	EnvAPI        = "BERTH_API"            // https://host:port of the API role, comma-separated
	EnvAPICA      = "BERTH_API_CA"         // PEM, base64
	EnvSrunProlog = "BERTH_SRUN_PROLOG"    // path of the site's SrunProlog
	EnvSrunEpilog = "BERTH_SRUN_EPILOG"
	EnvBinDir     = "BERTH_BIN" // directory of agent, berth and the links with Slurm's names

	// EnvStepSocket is the path of the Unix socket at which the agent of the node
	// listens; srun inside a job connects to it.
	EnvStepSocket = "BERTH_STEP_SOCKET"

	// EnvCPUBind with the value "none" means that the CPU numbers of the allocation are
	// not the kernel's (process nodes), so that the agent binds no tasks.
	EnvCPUBind = "BERTH_CPU_BIND"
)

// AgentPrepare as the agent's first argument prepares a pod:
//
//	agent prepare -hosts=FILE [-names=DIR -user=NAME:UID:GID:HOME:SHELL [-group=NAME:GID]... [-image-names=FILE]]
//		[-bin=DIR] [-- DIR...]
//
// copies /etc/hosts to FILE and the agent's own directory to DIR, writes the image's
// passwd(5) and group(5) with the user and the groups to DIR, and without them as an
// accounts.Files to FILE, and fails with a line for each DIR after -- that the process cannot
// see.
const AgentPrepare = "prepare"

// Names of the files that -names writes.
const (
	PasswdName = "passwd"
	GroupName  = "group"
)

// Paths inside a pod.
const (
	// TokenPath is the token of the pod's ServiceAccount, with which the agent
	// authenticates to the API role and the commands to the API server.
	TokenPath = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	// TerminationLog is the file to which the agent writes its last Report as JSON, in
	// case the API role cannot be reached.
	TerminationLog = "/dev/termination-log"
	// PMIxServer is the program beside the agent that serves PMIx. It is missing if
	// Berth was built without OpenPMIx.
	PMIxServer = "pmix-server"

	// DefaultBinDir is where the agent's directory is mounted, unless the Partition
	// names another path.
	DefaultBinDir = "/berth/bin"

	// RunDir is a directory of the pod, on kubelets, from which programs can be
	// executed: an image may have no directory that the user may write to.
	RunDir = "/berth/run"
	// MountsFile is the file in RunDir with the identities of the job's own mounts.
	// AgentPrepare writes it, and the agent compares it with the mounts.
	MountsFile = "mounts"
)
