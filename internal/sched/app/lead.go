package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/sched/keeper"
	"github.com/berth-hpc/berth/internal/sched/mail"
	"github.com/berth-hpc/berth/internal/sched/planner"
	"github.com/berth-hpc/berth/internal/sched/starter"
)

// keeperWorkers is how many jobs are acted on at the same time; the work is
// waiting for the API server.
const keeperWorkers = 16

// lead runs every part until ctx ends or one of them fails.
func lead(ctx context.Context, cfg Config) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cluster, err := control.New(cfg.Kube)
	if err != nil {
		return err
	}
	endpoint, err := openEndpoint(ctx, &cfg, cluster)
	if err != nil {
		return err
	}
	defer endpoint.Close()

	start := starter.New(cluster, objects(cfg, endpoint, cluster), time.Now)
	pool := agentapi.NewPool(time.Now)
	start.Pool = pool
	plan := planner.New(cluster, start, time.Now, cfg.Log)
	keep := keeper.New(keeper.Config{Cluster: cluster, Starter: start, StartTimeout: cfg.StartTimeout, Now: time.Now, Log: cfg.Log})
	keep.Pool = pool
	keep.Verdict = func(id int64) string { p, _ := plan.Planned(id); return p.Reason }
	plan.Hopeless = keep.Look
	rec := newRecorder(cfg, cluster, keep)
	keep.Stored = rec.Stored
	plan.Usage = usageOf(rec)
	api, err := newAPI(cfg, endpoint, cluster, plan, keep, rec, pool)
	if err != nil {
		return err
	}
	keep.Commander = api
	cluster.NextID = api.queue.NextID

	post := mail.New(func() *v1alpha1.MailSettings { return cluster.Parameters().Mail }, cluster.Jobs.List, time.Now, cfg.Log)
	cluster.Jobs.Subscribe(post.Changed)
	if err := fill(ctx, cfg, cluster); err != nil {
		return err
	}
	failed := make(chan error, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		if err := api.serve(ctx, endpoint); err != nil && ctx.Err() == nil {
			failed <- fmt.Errorf("API role: %w", err)
		}
	})
	if err := api.lead(ctx); err != nil {
		return err
	}
	if cfg.Register {
		if err := register(ctx, cluster.Client, &cfg, endpoint.ca); err != nil {
			return err
		}
	}
	wg.Go(func() { rec.Run(ctx) })
	wg.Go(func() { plan.Run(ctx) })
	wg.Go(func() { keep.Run(ctx, keeperWorkers) })
	wg.Go(func() { post.Run(ctx) })
	cfg.Log.Info("leading", "identity", cfg.Identity, "url", cfg.PublicURL, "after", time.Since(began).Round(time.Millisecond))
	if cfg.Ready != nil {
		cfg.Ready()
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// fill starts the watches and kube-scheduler, which outlive it, and returns when
// they have seen the cluster.
func fill(ctx context.Context, cfg Config, cluster *control.Cluster) error {
	var all errgroup.Group
	all.Go(func() error { return cluster.Start(ctx) })
	all.Go(func() error {
		return startKubeScheduler(ctx, cfg.Kube, starter.Placements{Cluster: cluster}, cfg.DefaultProfile)
	})
	return all.Wait()
}
