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

	"github.com/berth-hpc/berth/internal/sched/flags"
	"github.com/berth-hpc/berth/internal/sched/namespaces"
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
	var said flags.Flags
	f := said.Set()
	f.SetOutput(out)
	if err := f.Parse(args); err != nil {
		return Config{}, err
	}
	c := Config{
		Address: said.Address, PublicURL: said.PublicURL, LeaderURL: said.LeaderURL, PodURL: said.PodURL,
		KubeURL:  said.KubeURL,
		Register: said.Register, OnlyAPIServer: said.OnlyAPIServer, DefaultProfile: said.DefaultProfile,
		Identity:     said.Identity,
		StartTimeout: said.StartTimeout, HealthAddress: said.HealthAddress, JobSetAddress: said.JobSetAddress,
		Pod:     said.Pod,
		Objects: said.Objects, AgentImage: said.AgentImage, Namespaces: said.Namespaces,
	}
	c.Election.Lease = said.Lease
	c.Accounting.Storage, c.Accounting.Retention, c.Accounting.Archive = said.Storage, said.Retention, said.Archive
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if c.Election.Lease > 0 {
		c.Election.Renew, c.Election.Retry = c.Election.Lease*7/10, c.Election.Lease/10
	}
	if err := c.setRoles(said.Role); err != nil {
		return c, err
	}
	if said.Labels != "" {
		var err error
		if c.NamespaceLabels, err = apilabels.ConvertSelectorToLabelsMap(said.Labels); err != nil {
			return c, fmt.Errorf("--user-namespace-labels: %w", err)
		}
	}
	if said.Egress != "" {
		var err error
		if c.Egress, err = namespaces.ReadEgress(said.Egress); err != nil {
			return c, fmt.Errorf("--egress-policy: %w", err)
		}
	}
	if err := c.TLS.read(said.Certificate, said.Key, said.CA); err != nil {
		return c, err
	}
	c.Log = logTo(out, said.Verbose)
	kube, err := clientcmd.BuildConfigFromFlags("", said.Kubeconfig)
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
