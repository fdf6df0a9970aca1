// Package parts has the peers of the local cluster's control plane: Berth's scheduler
// and process nodes.
package parts

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/certfile"
	"github.com/berth-hpc/berth/internal/localcluster"
	"github.com/berth-hpc/berth/internal/localcluster/controlplane"
	"github.com/berth-hpc/berth/internal/processnode"
	"github.com/berth-hpc/berth/internal/processnode/podnet"
	"github.com/berth-hpc/berth/internal/sched/app"
	"github.com/berth-hpc/berth/internal/sched/usersync"
	"github.com/berth-hpc/berth/internal/wire"
)

// stopGrace is the time between SIGTERM and SIGKILL for jobs when the cluster stops.
const stopGrace = 2 * time.Second

// All returns the real peers. The program must be one from which processnode's
// containers can be started (any that links this package).
func All() localcluster.Parts {
	processnode.MaybeShim()
	return localcluster.Parts{Network: network, Scheduler: scheduler, Nodes: nodes, Check: check, Sweep: sweep}
}

func sweep(key, dir string) error { return processnode.Sweep(dir, key) }

// check returns what pods on this machine will lack; an error if none can run at all.
func check() ([]string, error) {
	lacks, ok := processnode.Capabilities()
	if !ok {
		return nil, errors.New(strings.Join(lacks, " "))
	}
	return lacks, nil
}

func network(key string, isolated bool) (localcluster.Network, error) {
	return podnet.Open(podnet.Config{Key: key, Root: processnode.IsRoot(), Isolated: isolated})
}

func scheduler(ctx context.Context, c localcluster.SchedulerConfig, ready func()) error {
	cfg := app.Config{
		Kube: c.Kube, Listener: c.Listener,
		PublicURL: c.PublicURL, PodURL: c.PodURL, KubeURL: c.KubeURL,
		TLS:      app.TLSFiles{CA: c.CAFile, Certificate: c.CertFile, Key: c.KeyFile},
		Register: true, Admit: func(a app.Admit) { c.Admit(controlplane.Admit(a)) }, OnlyAPIServer: true,
		DefaultProfile: true, Identity: "local",
		RebootProgram: c.Reboot,
		Ready:         ready, Log: c.Log, Accounting: app.Accounting{Storage: c.Accounting, Archive: c.Archive},
		Tracing: app.Tracing{Endpoint: c.TraceEndpoint, Sample: 1},
	}
	if c.Directory != "" {
		var err error
		if cfg.Directory, err = usersync.ReadConfig(c.Directory); err != nil {
			return fmt.Errorf("--directory: %w", err)
		}
		cfg.Namespaces = true
	}
	return app.Run(ctx, cfg)
}

func nodes(ctx context.Context, c localcluster.NodesConfig, ready func()) error {
	serving, err := certfile.Open(c.CertFile, c.KeyFile)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.CA)
	net, ok := c.Network.(*podnet.Network)
	if !ok {
		return errors.New("the pods' network is another one")
	}
	// Process nodes use protobuf and connect to this machine only.
	kube := rest.CopyConfig(c.Kube)
	kube.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return err
	}
	cfg := processnode.Config{
		Client: client, Dir: c.Dir, CloudDir: c.CloudDir, RebootDir: c.RebootDir, Network: net,
		APIHost: c.APIHost, APIPort: c.APIPort,
		Listen: "127.0.0.1:0", ServingCert: serving.Server, ClientCA: pool,
		StopGrace: stopGrace, Ready: ready,
		Log: func(format string, args ...any) { c.Log.Info(fmt.Sprintf(format, args...)) },
	}
	hostname, err := os.Hostname()
	if err != nil {
		return err
	}
	for _, n := range c.Nodes {
		cfg.Nodes = append(cfg.Nodes, node(n, hostname))
	}
	return processnode.Run(ctx, cfg)
}

// node returns the configuration of a process node.
func node(n localcluster.Node, hostname string) processnode.NodeConfig {
	c := processnode.NodeConfig{
		Name: n.Object(), Cloud: n.Cloud, CPUs: n.CPUs, Memory: n.Memory << 20, Disk: n.Disk << 20,
		Extended: map[string]int64{},
		Labels:   map[string]string{"kubernetes.io/hostname": hostname},
		Annotations: map[string]string{
			wire.AnnotationSockets: strconv.Itoa(n.Sockets),
			wire.AnnotationCores:   strconv.Itoa(n.Cores),
			wire.AnnotationThreads: strconv.Itoa(n.Threads),
		},
	}
	if n.Name != c.Name {
		c.Annotations[wire.AnnotationNodeName] = n.Name
	}
	if n.Weight > 1 {
		c.Annotations[wire.AnnotationWeight] = strconv.Itoa(n.Weight)
	}
	if n.State != "" {
		c.Annotations[wire.AnnotationState] = n.State
		c.Annotations[wire.AnnotationReason] = n.Reason
	}
	for _, f := range n.Features {
		c.Labels[wire.LabelFeature+f] = "true"
	}
	if len(n.Features) > 1 {
		c.Annotations[wire.AnnotationFeatures] = strings.Join(n.Features, ",")
	}
	for _, g := range n.GRES {
		name := wire.ResourceGRES + g.Name
		if g.Type != "" {
			name += "-" + g.Type
		}
		c.Extended[name] += g.Count
	}
	return c
}
