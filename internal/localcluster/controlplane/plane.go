package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"

	"github.com/berth-hpc/berth/internal/certfile"
	"github.com/berth-hpc/berth/internal/jobsets"
)

// Plane is a running control plane.
type Plane struct {
	config Config
	rest   *rest.Config
	etcd   *etcd

	// servers run longer than controllers, so that those can finish their writes.
	servers     context.Context
	stopServers context.CancelFunc
	controllers context.Context
	stopControl context.CancelFunc

	conns   *connections // of the API server
	serving sync.WaitGroup
	looping sync.WaitGroup
	failed  chan error
}

// Start starts etcd and the API server and returns when the server serves requests. rc is
// an administrator's client configuration. The plane runs until Stop; ctx limits only the
// start.
func Start(ctx context.Context, c Config, rc *rest.Config, log *zap.Logger) (*Plane, error) {
	p := &Plane{config: c, rest: rc, failed: make(chan error, 4)}
	p.servers, p.stopServers = context.WithCancel(context.WithoutCancel(ctx))
	p.controllers, p.stopControl = context.WithCancel(p.servers)
	if err := p.start(ctx, log); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Plane) start(ctx context.Context, log *zap.Logger) error {
	c := p.config
	if err := c.writeAdmission(); err != nil {
		return err
	}
	servers := strings.Join(c.EtcdServers, ",")
	var err error
	if servers == "" {
		if p.etcd, err = startEtcd(ctx, c.Dir+"/etcd", log); err == nil {
			servers = p.etcd.url
		}
	} else {
		err = findEtcd(c.EtcdServers)
	}
	if err != nil {
		return err
	}
	p.conns = newConnections(c.API)
	c.API = p.conns
	handler, run, err := c.newAPIServer(p.servers, servers)
	if err != nil {
		return err
	}
	c.InProcess.Serve(p.servers, handler)
	p.run(&p.serving, func() error { return run(p.servers) })
	if err := p.waitServing(ctx); err != nil {
		return err
	}
	if c.Socket != nil {
		p.run(&p.serving, func() error { return serveSocket(p.servers, c.Socket, handler) })
	}
	return nil
}

// StartControllers starts the controllers of kube-controller-manager as soon
// as the API server is healthy.
func (p *Plane) StartControllers() {
	p.run(&p.looping, func() error {
		// Without this it waits ten seconds and exits, which is too short on a busy
		// machine.
		if err := p.waitFor(p.controllers, "/healthz", nil); err != nil {
			if p.controllers.Err() != nil {
				return nil //nolint:nilerr // stopped before it was healthy
			}
			return err
		}
		if p.config.Plain {
			p.run(&p.looping, func() error { return p.config.runScheduler(p.controllers) })
		}
		return p.config.runControllers(p.controllers)
	})
}

// StartJobSet starts JobSet's controllers and webhooks and returns when the
// webhooks are served. The JobSet CRD must be established.
func (p *Plane) StartJobSet(ctx context.Context) error {
	cert, err := certfile.Open(p.config.PKI.Path("webhook.crt"), p.config.PKI.Path("webhook.key"))
	if err != nil {
		return err
	}
	hooks := jobsets.NewHooks(p.config.Webhook, cert.Server)
	p.run(&p.looping, func() error { return jobsets.Run(p.controllers, p.config.JobSet, hooks) })
	select {
	case <-hooks.Started():
		return nil
	case err := <-p.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Failed returns the error of a component that ended by itself.
func (p *Plane) Failed() <-chan error { return p.failed }

// drainTimeout is how long requests may continue after the API server was stopped. Its own
// limit is a minute, which requests would use up that wait for a webhook or an aggregated
// API that no longer responds.
const drainTimeout = 3 * time.Second

// Stop stops the controllers, then the API server, then etcd, and waits for them.
func (p *Plane) Stop() {
	p.stopControl()
	p.looping.Wait()
	p.stopServers()
	if p.conns != nil {
		defer time.AfterFunc(drainTimeout, p.conns.cut).Stop()
	}
	p.serving.Wait()
	if p.etcd != nil {
		p.etcd.stop()
	}
}

func (p *Plane) run(wg *sync.WaitGroup, f func() error) {
	wg.Go(func() {
		if err := f(); err != nil {
			select {
			case p.failed <- err:
			default:
			}
		}
	})
}

// waitServing waits until the API server has created the first namespaces, which it does
// as soon as it serves requests.
func (p *Plane) waitServing(ctx context.Context) error {
	return p.waitFor(ctx, "/api/v1/namespaces/kube-system", p.failed)
}

// waitFor waits until the API server's response to a GET of the path is 200, or failed
// delivers an error.
func (p *Plane) waitFor(ctx context.Context, path string, failed <-chan error) error {
	client, err := rest.HTTPClientFor(p.rest)
	if err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := client.Get(p.config.URL + path)
		if err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case err := <-failed:
			return err
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the API server does not serve %s%s", p.config.URL, path), err, ctx.Err())
		}
	}
}
