package app

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	apilabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/go-logr/logr"
)

// Main is cmd/scheduler: Run with what the command line says.
func Main(ctx context.Context, args []string, out io.Writer) error {
	cfg, err := ParseFlags(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	return Run(ctx, cfg)
}

// ParseFlags reads the command line of cmd/scheduler (without the program's
// name) and the files that it names. Usage and logs go to out. The error is
// flag.ErrHelp when help was asked for.
func ParseFlags(args []string, out io.Writer) (Config, error) {
	var c Config
	var kubeconfig, role, cert, key, ca, labels string
	var verbose bool
	f := flag.NewFlagSet("scheduler", flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&kubeconfig, "kubeconfig", "", "file with the connection to the API server; empty: that of the pod")
	f.StringVar(&role, "role", "scheduler,api", "roles to play: scheduler (the leader), api (answers the queue API), or both; api alone takes no lease and may run several times; jobset beside scheduler runs JobSet's controllers, for a cluster without")
	f.StringVar(&c.Address, "bind-address", "", "host:port where the API role listens (default :6820)")
	f.StringVar(&c.PublicURL, "public-url", "", "URL of the API role for the API server (default: the bind address)")
	f.StringVar(&c.LeaderURL, "leader-url", "", "with --role=api: URL of the leader (default: that of the webhook configurations)")
	f.StringVar(&c.PodURL, "pod-url", "", "URL of the API role for agents (default: the public URL)")
	f.StringVar(&c.KubeURL, "kube-url", "", "URL of the API server for pods (default: the kubeconfig's)")
	f.StringVar(&cert, "tls-cert-file", "", "certificate of the API role (default: one is made)")
	f.StringVar(&key, "tls-key-file", "", "its key")
	f.StringVar(&ca, "tls-ca-file", "", "authority that signed it")
	f.BoolVar(&c.Register, "register", true, "write the webhook configurations and the APIService")
	f.BoolVar(&c.OnlyAPIServer, "webhook-front-proxy", false, "take webhook calls only with the front proxy's certificate (see WebhookAdmissionConfiguration)")
	f.BoolVar(&c.DefaultProfile, "default-profile", false, "also schedule pods of the default scheduler")
	f.StringVar(&c.Identity, "identity", "", "name in the lease (default: a new one)")
	f.DurationVar(&c.Election.Lease, "lease-duration", 0, "how long the lease holds without renewal (default 10s)")
	f.StringVar(&c.Accounting.Storage, "accounting-storage", "", "database of accounting: path of a SQLite file or postgres:// URL (default: none)")
	f.IntVar(&c.Accounting.Retention, "accounting-retention", 0, "days that accounting records are kept; 0: for ever")
	f.StringVar(&c.Accounting.Archive, "accounting-archive", "", "folder that takes records older than that; empty: they are deleted")
	f.DurationVar(&c.StartTimeout, "start-timeout", 0, "how long a placed job may take to start (default 60s)")
	f.StringVar(&c.HealthAddress, "health-address", "", "host:port of /livez, /readyz and /metrics, without TLS (default: nowhere)")
	f.StringVar(&c.JobSetAddress, "jobset-webhook-address", "", "host:port where JobSet's webhooks are served (default :6822)")
	f.StringVar(&c.Pod, "pod", "", "name of the pod this process runs in, which gets a label while it leads")
	f.StringVar(&c.Objects, "objects", "", "folder of YAML files with Berth's objects, applied when they change")
	f.StringVar(&c.AgentImage, "agent-image", "", "image of the agent for partitions that do not name one")
	f.BoolVar(&c.Namespaces, "user-namespaces", false, "make the namespace, ServiceAccount and bindings of each User")
	f.StringVar(&labels, "user-namespace-labels", "", "labels of those namespaces: key=value,...")
	f.BoolVar(&verbose, "verbose", false, "log every decision")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if c.Election.Lease > 0 {
		c.Election.Renew, c.Election.Retry = c.Election.Lease*7/10, c.Election.Lease/10
	}
	if err := c.setRoles(role); err != nil {
		return c, err
	}
	if labels != "" {
		var err error
		if c.NamespaceLabels, err = apilabels.ConvertSelectorToLabelsMap(labels); err != nil {
			return c, fmt.Errorf("--user-namespace-labels: %w", err)
		}
	}
	if err := c.TLS.read(cert, key, ca); err != nil {
		return c, err
	}
	c.Log = logTo(out, verbose)
	kube, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return c, fmt.Errorf("connection to the API server: %w", err)
	}
	c.Kube = kube
	return c, nil
}

func (c *Config) setRoles(text string) error {
	c.NoScheduler, c.NoAPI = true, true
	for r := range strings.SplitSeq(text, ",") {
		switch r {
		case "scheduler":
			c.NoScheduler = false
		case "api":
			c.NoAPI = false
		case "jobset":
			c.JobSet = true
		default:
			return fmt.Errorf("unknown role %q: scheduler, api, jobset or several of them", r)
		}
	}
	return nil
}

// read takes three files, or none.
func (t *TLSFiles) read(cert, key, ca string) error {
	if cert == "" && key == "" && ca == "" {
		return nil
	}
	if cert == "" || key == "" || ca == "" {
		return errors.New("certificate, key and authority are given together or not at all")
	}
	for path, to := range map[string]*[]byte{cert: &t.Certificate, key: &t.Key, ca: &t.CA} {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		*to = b
	}
	return nil
}

// logTo sends our log and that of the libraries to out.
func logTo(out io.Writer, verbose bool) *slog.Logger {
	level := slog.LevelInfo
	if verbose {
		level = slog.LevelDebug
	}
	libraries := slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelInfo})
	klog.SetLogger(logr.FromSlogHandler(libraries))
	ctrl.SetLogger(logr.FromSlogHandler(libraries))
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}
