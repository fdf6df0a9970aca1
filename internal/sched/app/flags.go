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

	"github.com/berth-hpc/berth/internal/certfile"
	"github.com/berth-hpc/berth/internal/sched/flags"
	"github.com/berth-hpc/berth/internal/sched/namespaces"
	"github.com/berth-hpc/berth/internal/sched/usersync"
)

// Main is cmd/scheduler: it runs the process with the flags of the command line.
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

// ParseFlags parses the command line of cmd/scheduler (without the program's name) and
// reads the files that it names. Usage and logs go to out. The error is flag.ErrHelp if
// help was requested.
func ParseFlags(args []string, out io.Writer) (Config, error) {
	var values flags.Flags
	f := values.Set()
	f.SetOutput(out)
	if err := f.Parse(args); err != nil {
		return Config{}, err
	}
	c := Config{
		Address: values.Address, PublicURL: values.PublicURL, LeaderURL: values.LeaderURL, PodURL: values.PodURL,
		KubeURL:  values.KubeURL,
		Register: values.Register, OnlyAPIServer: values.OnlyAPIServer, DefaultProfile: values.DefaultProfile,
		Identity:     values.Identity,
		StartTimeout: values.StartTimeout, HealthAddress: values.HealthAddress, JobSetAddress: values.JobSetAddress,
		Pod: values.Pod, RebootProgram: values.Reboot,
		Objects: values.Objects, AgentImage: values.AgentImage, Namespaces: values.Namespaces,
	}
	c.Tracing = Tracing{Endpoint: values.TraceEndpoint, Sample: values.TraceSample}
	if c.Tracing.Sample < 0 || c.Tracing.Sample > 1 || c.Tracing.Sample != c.Tracing.Sample {
		return c, errors.New("--trace-sample: a number from 0 to 1")
	}
	c.Election.Lease = values.Lease
	c.Accounting.Storage, c.Accounting.Retention, c.Accounting.Archive = values.Storage, values.Retention,
		values.Archive
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if c.Election.Lease > 0 {
		c.Election.Renew, c.Election.Retry = c.Election.Lease*7/10, min(c.Election.Lease/10, renewal)
	}
	if err := c.setRoles(values.Role); err != nil {
		return c, err
	}
	c.UserNamespaces.ProtectJobs = values.ProtectJobs
	if values.Labels != "" {
		var err error
		if c.UserNamespaces.Labels, err = apilabels.ConvertSelectorToLabelsMap(values.Labels); err != nil {
			return c, fmt.Errorf("--user-namespace-labels: %w", err)
		}
	}
	if values.Egress != "" {
		var err error
		if c.UserNamespaces.Egress, err = namespaces.ReadEgress(values.Egress); err != nil {
			return c, fmt.Errorf("--egress-policy: %w", err)
		}
	}
	if values.Directory != "" {
		var err error
		if c.Directory, err = usersync.ReadConfig(values.Directory); err != nil {
			return c, fmt.Errorf("--directory: %w", err)
		}
	}
	c.TLS = TLSFiles{CA: values.CA, Certificate: values.Certificate, Key: values.Key}
	if err := c.TLS.check(); err != nil {
		return c, err
	}
	c.Log = logTo(out, values.Verbose)
	kube, err := clientcmd.BuildConfigFromFlags("", values.Kubeconfig)
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

// check returns an error if some of the files are named and others are not, or one cannot be
// used.
func (t *TLSFiles) check() error {
	if *t == (TLSFiles{}) {
		return nil
	}
	if t.Certificate == "" || t.Key == "" || t.CA == "" {
		return errors.New("set certificate, key and CA together, or none of them")
	}
	if _, err := os.Stat(t.CA); err != nil {
		return err
	}
	_, err := certfile.Open(t.Certificate, t.Key)
	return err
}

// logTo returns a log that writes to out, and sends the log of the libraries there.
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
