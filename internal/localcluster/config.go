package localcluster

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/localcluster/controlplane"
	"github.com/berth-hpc/berth/internal/localcluster/pki"
)

// Config says what cluster to run.
type Config struct {
	// StateDir is the state folder, an absolute path.
	StateDir string
	// BinDir is the folder of agent, berth and the Slurm-named commands; it
	// is mounted into pods at the same path.
	BinDir string
	// APIPort is the API server's port on 127.0.0.1; 0: the one used last
	// time, or a free one.
	APIPort int

	// Login runs a login node on LoginPort of 127.0.0.1; 0: the port used last
	// time, or a free one.
	Login     bool
	LoginPort int

	// Accounting is the database of accounting, as store.Open takes it; "": a
	// file in the state folder.
	Accounting string

	// Nodes of the cluster; Partitions and Cluster, if set, replace what
	// the cluster has. Without partitions one named "main" is made when
	// there is none.
	Nodes      []Node
	Partitions []v1alpha1.Partition
	Cluster    *v1alpha1.ClusterSpec

	// Admin runs the cluster: administrator, and a user like others. Users
	// are users of the machine who get their own kubeconfig.
	Admin Account
	Users []Account

	Parts Parts
	// Plain leaves out Berth and JobSet: a Kubernetes as others have it, with
	// the scheduler and the controllers of its own. There are no Nodes then.
	Plain bool

	// Progress takes one line a step, for people. Log takes what the parts
	// of Berth log.
	Progress func(string)
	// Stopping is called when the cluster begins to end, for whatever reason.
	Stopping func()
	Log      *slog.Logger
	Now      func() time.Time
}

// Node is a process node.
type Node struct {
	Name     string
	CPUs     int64
	Memory   int64 // MiB
	Sockets  int
	Cores    int // per socket
	Threads  int // per core
	Features []string
	GRES     []GRES
	// State and Reason of a node that starts drained or down, "" otherwise.
	State, Reason string
	Weight        int // lighter nodes are taken first; 0: 1
}

// Object is the name of the node's object; Kubernetes takes lower-case letters,
// digits, hyphens and dots.
func (n Node) Object() string {
	name := invalidInNode.ReplaceAllString(strings.ToLower(n.Name), "-")
	return strings.Trim(name, "-.")
}

var invalidInNode = regexp.MustCompile(`[^a-z0-9.-]+`)

// GRES is a countable resource of a node.
type GRES struct {
	Name, Type string
	Count      int64
}

// Account is a user of the machine.
type Account struct {
	Name     string
	UID, GID int64
	Groups   []v1alpha1.Group
	Home     string
	Shell    string
}

// Parts are the peers that the local cluster runs beside the control plane.
type Parts struct {
	// Network makes the pods' network; the key names the cluster on this
	// machine.
	Network func(key string) (Network, error)
	// Scheduler runs until ctx ends and calls ready once. nil: somebody else
	// runs it, with the files that Run writes (see Files).
	Scheduler func(ctx context.Context, c SchedulerConfig, ready func()) error
	// Nodes runs the process nodes until ctx ends and calls ready once. nil:
	// no nodes.
	Nodes func(ctx context.Context, c NodesConfig, ready func()) error
	// Check says what this machine does not let process nodes do, in words;
	// an error says that they cannot run at all. nil: nothing is missing.
	Check func() (missing []string, err error)
	// Sweep removes what Network and Nodes of a killed run left; key and dir
	// are what they were given. nil: nothing is ever left.
	Sweep func(key, dir string) error
}

// Network is where pods live.
type Network interface {
	// Gateway is this machine's address as pods see it: the bridge's, or
	// 127.0.0.1.
	Gateway() netip.Addr
	// Relay makes target reachable for pods and returns what they dial.
	Relay(port uint16, target string) (string, error)
	Close() error
}

// SchedulerConfig is what the scheduler is told.
type SchedulerConfig struct {
	Kube     *rest.Config // as system:berth-scheduler
	Listener net.Listener // of the API role
	// PublicURL, PodURL and KubeURL: the API role as the API server and as
	// pods reach it, and the API server as pods reach it.
	PublicURL, PodURL, KubeURL string
	CA                         []byte
	Serving                    pki.Pair
	Log                        *slog.Logger
	// Admit is told who decides about BatchJobs, in place of webhooks.
	Admit      func(controlplane.Admit)
	Accounting string // database of accounting
	Archive    string // folder of what is taken out of it
}

// NodesConfig is what the process nodes are told.
type NodesConfig struct {
	Kube    *rest.Config // administrator
	Nodes   []Node
	Dir     string
	Network Network
	APIHost string
	APIPort int
	Serving pki.Pair
	CA      []byte
	Log     *slog.Logger
}
