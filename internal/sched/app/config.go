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
	"github.com/berth-hpc/berth/internal/sched/usersync"
)

// Config is the configuration of Run. Only Kube is required.
type Config struct {
	// Kube is the connection to the API server, as system:berth-scheduler.
	Kube *rest.Config

	// Listener accepts the connections of the API role (webhooks, queue API, agents;
	// all of them TLS). nil: listen on Address; "" is ":6820".
	Listener net.Listener
	Address  string
	// PublicURL (https://host:port) is where the API server reaches the API
	// role; PodURL where agents reach it; KubeURL where pods reach the API
	// server. Empty: the Listener's address; PublicURL; Kube's host.
	PublicURL string
	PodURL    string
	KubeURL   string

	// TLS is the API role's certificate. The files may be replaced at any time. Zero: one is
	// created and signed by the CA in the Secret berth-system/berth-api-tls.
	TLS TLSFiles

	// Register writes the webhook configurations and the APIService with PublicURL
	// whenever this process becomes the leader.
	Register bool

	// Admit, if set, is called with the function that decides about BatchJobs when this
	// process starts to lead, and with nil when it stops. No webhooks are registered
	// for BatchJobs then.
	Admit func(Admit)

	// OnlyAPIServer refuses webhook calls without the front proxy's certificate. The
	// API server presents it if its WebhookAdmissionConfiguration names a kubeconfig
	// with that certificate. Without it, anybody who can connect to the API role can
	// draw job ids.
	OnlyAPIServer bool

	// DefaultProfile also schedules pods that name "default-scheduler".
	DefaultProfile bool

	// NoScheduler and NoAPI disable one of the two roles. Without the API role the
	// leader still answers admission, agents and processes with the API role, but is
	// not the address of the queue API.
	NoScheduler, NoAPI bool
	// JobSet adds a third role: JobSet's controllers and webhooks, for a cluster
	// without them. The webhooks are served on JobSetAddress; "" is ":6822".
	JobSet        bool
	JobSetAddress string

	// HealthAddress is where /livez, /readyz and /metrics are served, without
	// TLS; "": nowhere.
	HealthAddress string

	// Pod is the name of the pod that this process runs in, "": none. While it leads,
	// only that pod has wire.LabelLeader, by which the Service of the API role selects
	// it.
	Pod string

	// Objects is a directory of YAML files with objects of the group berth.hpc, which a
	// new leader applies: each if its file has changed since it was last applied. "":
	// none.
	Objects string

	// AgentImage is the image with the agent for partitions that do not name one; "":
	// such partitions cannot run jobs.
	AgentImage string

	// Namespaces enables the creation of each User's namespace, ServiceAccount and
	// bindings, with the settings UserNamespaces.
	Namespaces     bool
	UserNamespaces namespaces.Settings

	// Directory names the sources with which Users are kept in step; nil: none.
	Directory *usersync.Config

	// RebootProgram reboots nodes if the Cluster names no program for it; "": none does.
	RebootProgram string

	// LeaderURL is where a process with the API role alone connects to the leader. "":
	// the address in the webhook configurations.
	LeaderURL string

	// Identity is the name of this process in the lease. A process with the identity
	// that has the lease takes it over at once. "": host name, process id and a random
	// part.
	Identity string
	Election Election

	// Accounting is where job records are stored.
	Accounting Accounting

	// Tracing is where the spans of jobs are exported.
	Tracing Tracing

	// StartTimeout is how long a placed job may take until every agent has
	// reported. 0: 60 s, and 10 minutes while images are being pulled.
	StartTimeout time.Duration

	// self is the identity of this process in the API server.
	self string
	// leads reports whether this process certainly holds the lease.
	leads func() bool

	// Ready, if set, is called once, when this process leads and every part
	// of it serves.
	Ready func()
	// Log; nil: slog.Default.
	Log *slog.Logger
}

// Admit decides about BatchJobs: see queue.Server.
type Admit = queue.Admit

// Accounting is where records are stored. The zero value: nowhere.
type Accounting struct {
	// Storage is the path of a SQLite file, or a postgres:// URL.
	Storage string
	// Retention is how many days records are kept, 0: for ever. Archive is the directory
	// where older records are archived; "": they are deleted.
	Retention int
	Archive   string
}

// Tracing is how jobs are traced. The zero value: they are not.
type Tracing struct {
	// Endpoint is the URL of a collector's OTLP/HTTP receiver, "": none. Headers and the
	// collector's authority are in the variables that OpenTelemetry defines for exporters.
	Endpoint string
	// Sample is the share of jobs that are traced, from 0 to 1.
	Sample float64
}

// TLSFiles are the paths of PEM files.
type TLSFiles struct {
	CA, Certificate, Key string
}

// Election has the durations of the leader election. Zero: 10 s, 7 s, 500 ms, with which a
// standby leads about a second after the process of the leader has ended, and within 12 s
// after the leader's machine has failed; 60 s, 45 s, 2 s for a process with an Identity.
type Election struct {
	Lease, Renew, Retry time.Duration
}

// defaultPort is the port of slurmrestd on a Slurm system; a host of Berth has none.
const defaultPort = 6820

// jobSetPort is where JobSet's webhooks are served; 6821 is for health.
const jobSetPort = 6822

// renewal is the time between two renewals of the lease. A standby waits for one and a half
// of them before it replaces a leader whose process has ended, so this bounds the time
// without a leader; it costs two small writes a second.
const renewal = 500 * time.Millisecond

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
		// Its successor need not wait, so a busy machine may take longer.
		c.Election = Election{Lease: 60 * time.Second, Renew: 45 * time.Second, Retry: 2 * time.Second}
	default:
		c.Election = Election{Lease: 10 * time.Second, Renew: 7 * time.Second, Retry: renewal}
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
