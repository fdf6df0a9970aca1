package jobs

import (
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
)

// probeTimeout is how long a command waits for one of several clusters to accept its connection.
const probeTimeout = time.Second

// Probe returns an error that names the cluster if it accepts no connection within a second, or
// if its process does not complete the TLS handshake: the kernel accepts connections for a
// process that hangs. A cluster behind a proxy is not tried. p has the variables that choose the
// cluster.
func Probe(ctx context.Context, p *stdio.Process, name string) error {
	cfg, err := kube.Find(p, "")
	if err != nil {
		return err
	}
	u, err := url.Parse(cfg.Server)
	if err != nil || cfg.Proxy != "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if cfg.Socket != "" && connects(ctx, &net.Dialer{}, "unix", cfg.Socket) == nil {
		return nil
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), u.Scheme)
	}
	var d dialer = &net.Dialer{}
	if u.Scheme == "https" {
		// The certificate is verified with the first request; nothing is sent here.
		d = &tls.Dialer{Config: &tls.Config{ServerName: cfg.ServerName, InsecureSkipVerify: true}} //nolint:gosec // see above
	}
	if err := connects(ctx, d, "tcp", address); err != nil {
		return slurmerr.Newf(slurmerr.Refused, "cluster %s does not answer: %v", printable.Escape(name), err)
	}
	return nil
}

type dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// connects returns an error if no connection is possible.
func connects(ctx context.Context, d dialer, network, address string) error {
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	_ = conn.Close()
	return nil
}

// PresentCluster returns the name of the cluster that is used without -M.
func PresentCluster(ctx context.Context, p *stdio.Process) (string, error) {
	if err := Probe(ctx, p, "in use"); err != nil {
		return "", err
	}
	c, err := Connect(p)
	if err != nil {
		return "", err
	}
	return c.Cluster(ctx, nil)
}

// ClusterNames returns the name of the present cluster, and those of all others that have a
// kubeconfig or a context.
func ClusterNames(ctx context.Context, p *stdio.Process) []string {
	all := Members(ctx, p)
	if all[0].Err != nil {
		return kube.Clusters(p)
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names
}
