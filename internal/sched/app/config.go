// Package app is Berth's scheduler process: under one leader election it runs
// the planner loop, starter and keeper, kube-scheduler with Berth's plugin, and
// the API role (admission, queue API, the agents' server).
package app

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/queue"
	"github.com/berth-hpc/berth/internal/sched/namespaces"
)

// Config says how to run. Only Kube is required.
type Config struct {
	// Kube is the connection to the API server, as system:berth-scheduler.
	Kube *rest.Config

	// Listener takes the API role's connections (webhooks, queue API, agents;
	// all of them TLS). nil: listen on Address; "" is ":6820".
	Listener net.Listener
	Address  string
	// PublicURL (https://host:port) is where the API server reaches the API
	// role; PodURL where agents reach it; KubeURL where pods reach the API
	// server. Empty: the Listener's address; PublicURL; Kube's host.
	PublicURL string
	PodURL    string
	KubeURL   string

	// TLS is the API role's certificate. Zero: one is made, under an authority
	// kept in the Secret berth-system/berth-api-tls.
	TLS TLSFiles

	// Register writes the webhook configurations and the APIService that
	// point to PublicURL, at every start of leading.
	Register bool

	// Admit, if set, is told who decides about BatchJobs while this process
	// leads, and nil afterwards; no webhooks are then registered for them.
	Admit func(Admit)

	// OnlyAPIServer turns away webhook calls that do not show the front
	// proxy's certificate. The API server shows it when its
	// WebhookAdmissionConfiguration names a kubeconfig with that certificate;
	// without, whoever reaches the API role can draw job ids.
	OnlyAPIServer bool

	// DefaultProfile also schedules pods that ask for "default-scheduler".
	DefaultProfile bool

	// NoScheduler and NoAPI leave out one of the two roles. Without the API role
	// the leader still answers admission, agents and processes of the API role,
	// but is not the queue API's address.
	NoScheduler, NoAPI bool
	// JobSet adds a third: JobSet's controllers and webhooks, for a cluster
	// without them. Their webhooks are served on JobSetAddress; "" is ":6822".
	JobSet        bool
	JobSetAddress string

	// HealthAddress is where /livez, /readyz and /metrics are served, without
	// TLS; "": nowhere.
	HealthAddress string

	// Pod is the name of the pod this process runs in, "": it runs in none.
	// While it leads, that pod alone carries wire.LabelLeader, by which the
	// Service of the API role selects it.
	Pod string

	// Objects is a folder of YAML files with objects of group berth.hpc, which
	// a leader applies when it starts, each when its file has changed since it
	// was applied last. "": none.
	Objects string

	// AgentImage is where partitions that do not say otherwise have the agent
	// from; "": such partitions cannot run jobs.
	AgentImage string

	// Namespaces makes each User's namespace, ServiceAccount and bindings;
	// NamespaceLabels are put on the namespaces it makes.
	Namespaces      bool
	NamespaceLabels map[string]string

	// Egress limits where pods in users' namespaces may connect to. Nil: no
	// limit. It needs Namespaces.
	Egress *namespaces.Egress

	// LeaderURL is where a process of the API role alone finds the leader. "":
	// where the webhook configurations point to.
	LeaderURL string

	// Identity names this process in the lease. A process that starts with
	// the identity that holds the lease takes it over at once. "": host name,
	// process id and a random part.
	Identity string
	Election Election

	// Accounting is where the records of jobs go.
	Accounting Accounting

	// StartTimeout is how long a placed job may take until every agent has
	// reported. 0: 60 s, and 10 minutes while images are being pulled.
	StartTimeout time.Duration

	// self is the identity that the API server knows this process by.
	self string

	// Ready, if set, is called once, when this process leads and every part
	// of it serves.
	Ready func()
	// Log; nil: slog.Default.
	Log *slog.Logger
}

// Admit decides about BatchJobs: see queue.Server.
type Admit = queue.Admit

// Accounting says where records go. The zero value: nowhere.
type Accounting struct {
	// Storage is the path of a SQLite file, or a postgres:// URL.
	Storage string
	// Retention is how many days records are kept, 0: for ever; Archive the
	// folder they go to then, "": they are deleted.
	Retention int
	Archive   string
}

// TLSFiles are PEM blocks, not paths.
type TLSFiles struct {
	CA, Certificate, Key []byte
}

// Election holds the durations of the leader election. Zero: 10 s, 7 s, 1 s,
// which lets a new process lead within 12 s after the old one was killed; 60 s,
// 45 s, 2 s for a process with an Identity of its own choice.
type Election struct {
	Lease, Renew, Retry time.Duration
}

// defaultPort is where slurmrestd listens on a Slurm system, which a Berth host
// is not.
const defaultPort = 6820

// jobSetPort is where JobSet's webhooks are served; 6821 is for health.
const jobSetPort = 6822

func (c Config) withDefaults() (Config, error) {
	if c.Kube == nil {
		return c, errors.New("no connection to the API server is configured")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.JobSetAddress == "" {
		c.JobSetAddress = ":" + strconv.Itoa(jobSetPort)
	}
	if c.Address == "" {
		c.Address = ":" + strconv.Itoa(defaultPort)
	}
	switch {
	case c.Election != Election{}:
	case c.Identity != "":
		// Its successor need not wait, so a busy machine gets all the time it needs.
		c.Election = Election{Lease: 60 * time.Second, Renew: 45 * time.Second, Retry: 2 * time.Second}
	default:
		c.Election = Election{Lease: 10 * time.Second, Renew: 7 * time.Second, Retry: time.Second}
	}
	if c.KubeURL == "" {
		c.KubeURL = c.Kube.Host
	}
	if c.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return c, err
		}
		c.Identity = host + "-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	}
	return c, nil
}
