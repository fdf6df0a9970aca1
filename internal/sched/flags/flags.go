// Package flags defines the command line of the scheduler's process. It is separate from
// what evaluates the flags, so that the manual page is generated without linking a
// scheduler.
package flags

import (
	"flag"
	"time"
)

// Flags are the values of the command line. Empty and zero values stand for the defaults
// that the usage of each flag names.
type Flags struct {
	Kubeconfig, Role                 string
	Address, PublicURL, LeaderURL    string
	PodURL, KubeURL                  string
	Certificate, Key, CA             string // files
	Register, OnlyAPIServer          bool
	DefaultProfile                   bool
	Identity                         string
	Lease, StartTimeout              time.Duration
	Storage, Archive                 string
	Retention                        int // days
	HealthAddress, JobSetAddress     string
	Pod, Objects, AgentImage, Labels string
	Egress, Directory, Reboot        string // files
	Namespaces, ProtectJobs, Verbose bool
	TraceEndpoint                    string
	TraceSample                      float64
}

// Set returns a flag set that sets f. It returns errors and does not print them.
func (f *Flags) Set() *flag.FlagSet {
	s := flag.NewFlagSet("scheduler", flag.ContinueOnError)
	s.StringVar(&f.Kubeconfig, "kubeconfig", "", "`file` with the connection to the API server; empty: that of the pod")
	s.StringVar(&f.Role, "role", "scheduler,api",
		"`roles` to play: scheduler (the leader), api (answers the queue API), or both; api alone takes no lease and may run several times; jobset beside scheduler runs JobSet's controllers, for a cluster without")
	s.StringVar(&f.Address, "bind-address", "", "`host:port` where the API role listens (default :6820)")
	s.StringVar(&f.PublicURL, "public-url", "", "`URL` of the API role for the API server (default: the bind address)")
	s.StringVar(&f.LeaderURL, "leader-url", "",
		"with --role=api: `URL` of the leader (default: that of the webhook configurations)")
	s.StringVar(&f.PodURL, "pod-url", "", "`URL` of the API role for agents (default: the public URL)")
	s.StringVar(&f.KubeURL, "kube-url", "", "`URL` of the API server for pods (default: the kubeconfig's)")
	s.StringVar(&f.Certificate, "tls-cert-file", "",
		"`file` with the certificate of the API role (default: one is created)")
	s.StringVar(&f.Key, "tls-key-file", "", "`file` with its key")
	s.StringVar(&f.CA, "tls-ca-file", "", "`file` with the authority that signed it")
	s.BoolVar(&f.Register, "register", true, "write the webhook configurations and the APIService")
	s.BoolVar(&f.OnlyAPIServer, "webhook-front-proxy", false,
		"accept webhook calls only with the front proxy's certificate (see WebhookAdmissionConfiguration)")
	s.BoolVar(&f.DefaultProfile, "default-profile", false, "also schedule pods of the default scheduler")
	s.StringVar(&f.Identity, "identity", "", "`name` in the lease (default: a new one)")
	s.DurationVar(&f.Lease, "lease-duration", 0,
		"how long the lease is valid without renewal, a `duration` (default 10s)")
	s.StringVar(&f.Storage, "accounting-storage", "",
		"`database` of accounting: path of a SQLite file or postgres:// URL (default: none)")
	s.IntVar(&f.Retention, "accounting-retention", 0, "`days` that accounting records are kept; 0: for ever")
	s.StringVar(&f.Archive, "accounting-archive", "",
		"`directory` where older records are archived; empty: they are deleted")
	s.DurationVar(&f.StartTimeout, "start-timeout", 0,
		"how long a placed job may take to start, a `duration` (default 60s)")
	s.StringVar(&f.HealthAddress, "health-address", "",
		"`host:port` of /livez, /readyz and /metrics, without TLS (default: nowhere)")
	s.StringVar(&f.JobSetAddress, "jobset-webhook-address", "",
		"`host:port` where JobSet's webhooks are served (default :6822)")
	s.StringVar(&f.Pod, "pod", "", "`name` of the pod this process runs in, which gets a label while it leads")
	s.StringVar(&f.Objects, "objects", "", "`directory` of YAML files with Berth's objects, applied when they change")
	s.StringVar(&f.AgentImage, "agent-image", "", "`image` of the agent for partitions that do not name one")
	s.BoolVar(&f.Namespaces, "user-namespaces", false, "create the namespace, ServiceAccount and bindings of each User")
	s.StringVar(&f.Labels, "user-namespace-labels", "", "`labels` of those namespaces: key=value,...")
	s.StringVar(&f.Egress, "egress-policy", "",
		"`file` with the destinations that pods of users may connect to; empty: no limit")
	s.BoolVar(&f.ProtectJobs, "protect-jobs", false,
		"refuse evictions of jobs' pods, so that kubectl drain waits for jobs; needs --user-namespaces")
	s.StringVar(&f.Directory, "directory", "",
		"`file` that names sources of users, such as LDAP, with which Users are kept in step (default: none)")
	s.StringVar(&f.Reboot, "reboot-program", "",
		"`program` that scontrol reboot runs unless the Cluster names one (default: none)")
	s.StringVar(&f.TraceEndpoint, "trace-endpoint", "",
		"`URL` of an OpenTelemetry collector (OTLP over HTTP) that gets the traces of jobs, such as http://collector:4318 (default: none)")
	s.Float64Var(&f.TraceSample, "trace-sample", 1,
		"`share` of jobs that are traced, from 0 to 1, unless they are submitted with TRACEPARENT")
	s.BoolVar(&f.Verbose, "verbose", false, "log every decision")
	return s
}
