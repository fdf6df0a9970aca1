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
)

// Config describes the cluster to run.
type Config struct {
	// StateDir is the state directory, an absolute path.
	StateDir string
	// BinDir is the directory with agent, berth and the Slurm-named commands; it is
	// mounted into pods at the same path.
	BinDir string
	// APIPort is the API server's port on 127.0.0.1; 0: the one of the last start, or a
	// free one.
	APIPort int

	// Login runs a login node on LoginPort of 127.0.0.1; 0: the port of the last start,
	// or a free one.
	Login     bool
	LoginPort int

	// Isolated limits the network of jobs to one another and the cluster: they do not reach
	// what this machine reaches. Only root can run a cluster whose jobs have a network of
	// their own.
	Isolated bool

	// Accounting is the database of accounting, as for store.Open; "": a file in the
	// state directory.
	Accounting string

	// Directory is the file with the sources of users for the scheduler; "": there are none.
	Directory string

	// AuthenticationConfig is a file with an AuthenticationConfiguration for the API server;
	// "": it accepts certificates and tokens of ServiceAccounts.
	AuthenticationConfig string

	// TraceEndpoint is the URL of the collector that gets the traces of jobs; "": none.
	TraceEndpoint string

	// EtcdServers are the URLs of an etcd that somebody else runs; empty: the process of the
	// cluster runs one.
	EtcdServers []string

	// CertificateLife is how long the cluster's certificates are valid, 0: 366 days. The
	// cluster renews them in time.
	CertificateLife time.Duration

	// Nodes of the cluster. Partitions and Cluster, if set, replace those of the
	// cluster. Without partitions one named "main" is created if there is none.
	Nodes      []Node
	Partitions []v1alpha1.Partition
	Cluster    *v1alpha1.ClusterSpec
	// NodePools have the nodes that run only while jobs need them. Their programs are replaced
	// by those of the local cluster, because the site's would start machines.
	NodePools []v1alpha1.NodePool

	// Admin is the user who runs the cluster: administrator, and a user like others.
	// Users are users of the machine who get their own kubeconfig.
	Admin Account
	Users []Account

	Parts Parts
	// Plain leaves out Berth and JobSet: a plain Kubernetes with its own scheduler and
	// controllers. There are no Nodes then.
	Plain bool

	// Progress is called with one line for each step, for users. Log is the log of
	// Berth's parts.
	Progress func(string)
	// Stopping is called when the cluster starts to stop, for whatever reason.
	Stopping func()
	Log      *slog.Logger
	Now      func() time.Time
}

// Node is a process node.
type Node struct {
	Name     string
	CPUs     int64
	Memory   int64 // MiB
	Disk     int64 // local disk in MiB; 0: unknown
	Sockets  int
	Cores    int // per socket
	Threads  int // per core
	Features []string
	GRES     []GRES
	// State and Reason of a node that starts drained or down, "" otherwise.
	State, Reason string
	// Cloud: the node runs only while a program of its pool has started it.
	Cloud  bool
	Weight int // lighter nodes are used first; 0: 1
}

// Object returns the name of the node's object; Kubernetes allows lower-case letters,
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
	// Network creates the pods' network; the key names the cluster on this machine.
	// In an isolated one pods reach one another and the gateway only.
	Network func(key string, isolated bool) (Network, error)
	// Scheduler runs until ctx ends and calls ready once. nil: the scheduler is another
	// process, with the files that Run writes (see Files).
	Scheduler func(ctx context.Context, c SchedulerConfig, ready func()) error
	// Nodes runs the process nodes until ctx ends and calls ready once. nil:
	// no nodes.
	Nodes func(ctx context.Context, c NodesConfig, ready func()) error
	// Check returns, in words, what this machine does not allow process nodes; an error
	// if they cannot run at all. nil: nothing is missing.
	Check func() (missing []string, err error)
	// Sweep removes what Network and Nodes of a killed run left; key and dir are those
	// of the run. nil: nothing is ever left.
	Sweep func(key, dir string) error
}

// Network is the network of the pods.
type Network interface {
	// Gateway is this machine's address for pods: the bridge's, or 127.0.0.1.
	Gateway() netip.Addr
	// Relay makes target reachable for pods and returns the address to dial.
	Relay(port uint16, target string) (string, error)
	// Egress returns why pods do not reach what this machine reaches; nil: they do, or
	// are not meant to.
	Egress() error
	Close() error
}

// SchedulerConfig is the configuration of the scheduler.
type SchedulerConfig struct {
	Kube     *rest.Config // as system:berth-scheduler
	Listener net.Listener // of the API role
	// PublicURL, PodURL and KubeURL are the API role for the API server and for pods,
	// and the API server for pods.
	PublicURL, PodURL, KubeURL string
	// CAFile, CertFile and KeyFile are the certificate of the API role.
	CAFile, CertFile, KeyFile string
	Log                       *slog.Logger
	// Admit is called with the function that decides about BatchJobs, in place of
	// webhooks.
	Admit      func(controlplane.Admit)
	Accounting string // database of accounting
	Archive    string // directory of archived records
	Directory  string // file with the sources of users
	Reboot     string // program that restarts nodes
	// TraceEndpoint is the collector of traces; "": none.
	TraceEndpoint string
}

// NodesConfig is the configuration of the process nodes.
type NodesConfig struct {
	Kube  *rest.Config // administrator
	Nodes []Node
	Dir   string
	// CloudDir is the directory in which a file with the name of a node makes that node run,
	// if Node.Cloud is set.
	CloudDir string
	// RebootDir is the directory in which a file with the name of a node makes that node restart.
	RebootDir string
	Network   Network
	APIHost   string
	APIPort   int
	// CertFile and KeyFile are the certificate of the kubelet API, CA the authority of its
	// clients.
	CertFile, KeyFile string
	CA                []byte
	Log               *slog.Logger
}
