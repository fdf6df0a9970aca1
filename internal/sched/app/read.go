package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"golang.org/x/sync/errgroup"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/acct/server"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/replica"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/sched/devices"
	"github.com/berth-hpc/berth/internal/sched/query"
	"github.com/berth-hpc/berth/translate/status"
)

// read runs the API role alone until ctx ends. It follows the cluster by itself, so
// that heavy queries do not slow down planning, and forwards requests that write to the
// leader. It needs no leader to start and to answer.
func read(ctx context.Context, cfg Config, h *health) error {
	began := time.Now()
	cluster, err := control.New(cfg.Kube)
	if err != nil {
		return err
	}
	endpoint, err := openEndpoint(ctx, &cfg, cluster)
	if err != nil {
		return err
	}
	defer endpoint.Close()
	leader := &replica.Leader{Cluster: cluster, Now: time.Now,
		Link: &replica.Link{Find: finder(cfg, cluster.Client, endpoint.ca), Certificate: endpoint.certificate.Client}}
	queries := query.New(cluster, time.Now)
	rec := newReader(cfg, cluster)
	q, err := queue.New(queue.Options{Cluster: cluster, Planner: leader, Pool: queries, Leader: leader,
		Trusted: []string{cfg.self}, Log: cfg.Log})
	if err != nil {
		return err
	}
	(&server.Server{Cluster: cluster, Recorder: rec, Now: time.Now, NoDatabase: cfg.Accounting.Storage == ""}).Register(
		q)
	inventory := devices.New(cluster, cfg.Log)
	if err := cluster.Start(ctx); err != nil {
		return err
	}
	inventory.Count()
	q.Read()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { rec.Run(ctx); return nil })
	all.Go(func() error { inventory.Run(ctx); return nil })
	all.Go(func() error { leader.Run(ctx); return nil })
	all.Go(func() error { return endpoint.watchCertificate(ctx, cfg.Log) })
	all.Go(func() error {
		if err := serve(ctx, endpoint, q); ctx.Err() == nil {
			return fmt.Errorf("API role: %w", err)
		}
		return nil
	})
	if cfg.Register {
		if err := register(ctx, cluster.Client, &cfg,
			target{cfg.PublicURL, endpoint.ca, endpoint.secret, cfg.self}); err != nil {
			return err
		}
	}
	h.answering.Store(true)
	cfg.Log.Info("answering", "url", cfg.PublicURL, "after", time.Since(began).Round(time.Millisecond))
	if cfg.Ready != nil {
		cfg.Ready()
	}
	return all.Wait()
}

// newReader returns a reader of the accounting database that the leader writes.
func newReader(cfg Config, c *control.Cluster) *acct.Recorder {
	dir := directory.New(c, nil)
	return acct.NewRecorder(acct.Config{
		Address: cfg.Accounting.Storage, ReadOnly: true, Cluster: c, Users: userResolver{dir}, Now: time.Now,
		Log:     cfg.Log,
		Row:     func(b *v1alpha1.BatchJob) status.Job { return table.RowOf(b, dir) },
		Billing: func(b *v1alpha1.BatchJob, p *v1alpha1.PastAttempt) int64 { return table.BillingOf(b, p, dir) },
	})
}

var errNoLeader = errors.New("no scheduler has led this cluster yet")

// finder returns a function that finds the leader: each leader registers itself for
// admission.
func finder(cfg Config, c client.Reader, ca []byte) func(context.Context) (replica.Address, error) {
	return func(ctx context.Context) (replica.Address, error) {
		if cfg.LeaderURL != "" {
			return replica.Address{URL: cfg.LeaderURL, CA: ca}, nil
		}
		m := &admission.MutatingWebhookConfiguration{}
		if err := c.Get(ctx, client.ObjectKey{Name: webhooksName}, m); err != nil {
			return replica.Address{}, err
		}
		for i := range m.Webhooks {
			w := &m.Webhooks[i].ClientConfig
			if base, ok := leaderURL(w); ok {
				return replica.Address{URL: base, CA: w.CABundle}, nil
			}
		}
		return replica.Address{}, errNoLeader
	}
}

// leaderURL returns the server of a webhook, without its path.
func leaderURL(w *admission.WebhookClientConfig) (string, bool) {
	switch {
	case w.URL != nil:
		return baseOf(*w.URL)
	case w.Service != nil:
		port := int32(443)
		if w.Service.Port != nil {
			port = *w.Service.Port
		}
		return fmt.Sprintf("https://%s.%s.svc:%d", w.Service.Name, w.Service.Namespace, port), true
	}
	return "", false
}
