package app

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/bulkcancel"
	"github.com/berth-hpc/berth/internal/sched/devices"
	"github.com/berth-hpc/berth/internal/sched/gres"
	"github.com/berth-hpc/berth/internal/sched/jobevents"
	"github.com/berth-hpc/berth/internal/sched/keeper"
	"github.com/berth-hpc/berth/internal/sched/mail"
	"github.com/berth-hpc/berth/internal/sched/namespaces"
	"github.com/berth-hpc/berth/internal/sched/nodehealth"
	"github.com/berth-hpc/berth/internal/sched/planner"
	"github.com/berth-hpc/berth/internal/sched/plugin"
	"github.com/berth-hpc/berth/internal/sched/power"
	"github.com/berth-hpc/berth/internal/sched/reboot"
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/internal/sched/usersync"
	"github.com/berth-hpc/berth/internal/sched/workload"
	"github.com/berth-hpc/berth/internal/wire"
)

// keeperWorkers is how many jobs the keeper handles at the same time; it mostly waits
// for the API server.
const keeperWorkers = 16

// workloadWorkers is how many groups of pods of workloads are handled at the same time.
const workloadWorkers = 16

// lead runs all parts until ctx ends or one of them fails.
func lead(ctx context.Context, cfg Config, h *health) error {
	began := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cluster, err := control.New(cfg.Kube)
	if err != nil {
		return err
	}
	cluster.RebootProgram = cfg.RebootProgram
	seen, err := newObserver(&cfg, cluster)
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
	keep := keeper.New(keeper.Config{Cluster: cluster, Starter: start, StartTimeout: cfg.StartTimeout, Now: time.Now,
		Log: cfg.Log})
	keep.Pool = pool
	keep.PlanReason = func(id int64) string { p, _ := plan.Planned(id); return p.Reason }
	keep.Nodes = plan.NodesView
	plan.NeverRunnable, keep.Refused, keep.Unprepared = keep.Enqueue, plan.Refused, plan.DevicesFailed
	nodes := power.New(cluster, nil, time.Now, cfg.Log)
	reboots := reboot.New(cluster, time.Now, cfg.Log)
	nodes.Leads, reboots.Leads = cfg.leads, cfg.leads
	plan.UpdatePower = updateNodes(nodes, reboots)
	unhealthy := nodehealth.New(cluster, time.Now, cfg.Log)
	inventory := devices.New(cluster, cfg.Log)
	many := bulkcancel.New(cluster, time.Now, cfg.Log)
	plan.Placed = seen.tracer.Placed
	rec := newRecorder(cfg, cluster, func(id int64) {
		seen.tracer.Stored(id)
		keep.Enqueue(id)
	})
	keep.Stored = rec.Stored
	plan.Usage = usageOf(rec)
	api, err := newAPI(cfg, endpoint, cluster, plan, keep, rec, pool, many, seen)
	if err != nil {
		return err
	}
	keep.Commander = api
	cluster.NextID = api.queue.NextID

	pods := workload.New(cluster, time.Now, cfg.Log)
	if cfg.Accounting.Storage != "" {
		pods.Recorded = rec.HasJob
	}
	wake := &plugin.Waker{}
	cluster.Jobs.Subscribe(func(old, now *v1alpha1.BatchJob) { wakePlaced(cluster, wake, old, now) })
	cluster.NodePools.Subscribe(func(_, _ *v1alpha1.NodePool) { wakeConfiguring(cluster, wake) })
	post := mail.New(func() *v1alpha1.MailSettings { return cluster.Parameters().Mail }, cluster.Jobs.List,
		family(cluster), time.Now, cfg.Log)
	cluster.Jobs.Subscribe(post.Changed)
	told, err := jobevents.New(ctx, cfg.Kube, cluster.Client.Scheme(),
		func() string { return cluster.Parameters().JobEvents })
	if err != nil {
		return err
	}
	cluster.Jobs.Subscribe(told.Changed)
	cluster.NodePools.Subscribe(told.PoolChanged)
	cluster.Nodes.Subscribe(told.DevicesChanged(func(n *corev1.Node) string {
		spec := cluster.Parameters()
		return gres.Of(&spec).Trouble(n)
	}))
	cluster.Jobs.Subscribe(seen.changed)
	var namespaceController *namespaces.Controller
	if cfg.Namespaces {
		namespaceController = namespaces.New(cluster, cfg.UserNamespaces, cfg.Log)
	}
	var users *usersync.Controller
	if cfg.Directory != nil {
		if users, err = usersync.New(cluster, cfg.Directory, time.Now, cfg.Log); err != nil {
			return err
		}
		api.queue.API().Contact = users.Contact
	}
	if err := applyObjects(ctx, cfg, cluster.Client); err != nil {
		return err
	}
	if err := many.Load(ctx); err != nil {
		return err
	}
	if err := startCaches(ctx, cfg, cluster, wake); err != nil {
		return err
	}
	inventory.Count()
	failed := make(chan error, 3)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { inventory.Run(ctx) })
	wg.Go(func() {
		if err := api.serve(ctx, endpoint); err != nil && ctx.Err() == nil {
			failed <- fmt.Errorf("API role: %w", err)
		}
	})
	if err := api.lead(ctx); err != nil {
		return err
	}
	if cfg.Admit != nil {
		cfg.Admit(api.queue.Admit)
		defer cfg.Admit(nil)
	}
	if cfg.Register {
		if err := register(ctx, cluster.Client, &cfg,
			target{cfg.PublicURL, endpoint.ca, endpoint.secret, cfg.self}); err != nil {
			return err
		}
	}
	if cfg.JobSet {
		run, err := startJobSet(ctx, cfg, cluster.Client, endpoint)
		if err != nil {
			return err
		}
		wg.Go(func() {
			if err := run(); err != nil && ctx.Err() == nil {
				failed <- err
			}
		})
	}
	if err := labelLeader(ctx, cfg.Pod, cluster.Client); err != nil {
		return err
	}
	if err := publishAddress(ctx, &cfg, cluster.Client, endpoint.Addr()); err != nil {
		cfg.Log.Warn("a standby will wait for the end of the lease if this process dies", "error", err)
	}
	wg.Go(func() {
		if err := endpoint.watchCertificate(ctx, cfg.Log); err != nil {
			failed <- err
		}
	})
	if namespaceController != nil {
		wg.Go(func() { namespaceController.Run(ctx) })
	}
	if users != nil {
		wg.Go(func() { users.Run(ctx) })
	}
	wg.Go(func() { seen.tracer.Run(ctx) })
	wg.Go(func() { rec.Run(ctx) })
	wg.Go(func() { plan.Run(ctx) })
	wg.Go(func() { nodes.Run(ctx) })
	wg.Go(func() { reboots.Run(ctx) })
	wg.Go(func() { unhealthy.Run(ctx) })
	wg.Go(func() { keep.Run(ctx, keeperWorkers) })
	wg.Go(func() { pods.Run(ctx, workloadWorkers) })
	wg.Go(func() { post.Run(ctx) })
	wg.Go(func() { many.Run(ctx) })
	cfg.Log.Info("leading", "identity", cfg.Identity, "url", cfg.PublicURL, "after",
		time.Since(began).Round(time.Millisecond))
	if cfg.Ready != nil {
		cfg.Ready()
	}
	h.lead(newCollector(cluster, plan, rec, api.queue.API(), users, seen))
	defer h.lead(nil)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// updateNodes returns what the planner calls after it has placed jobs: the decisions about nodes
// that boot, are removed or reboot.
func updateNodes(
	nodes *power.Controller, reboots *reboot.Controller,
) func(context.Context, func() map[string]time.Time) time.Time {
	return func(ctx context.Context, planned func() map[string]time.Time) time.Time {
		due, again := reboots.Update(ctx), nodes.Update(ctx, planned)
		if due.IsZero() || !again.IsZero() && again.Before(due) {
			return again
		}
		return due
	}
}

// wakePlaced makes kube-scheduler try the pods of a workload that has just been placed.
func wakePlaced(c *control.Cluster, wake *plugin.Waker, old, now *v1alpha1.BatchJob) {
	placed := func(b *v1alpha1.BatchJob) bool {
		return b != nil && b.Spec.Workload != nil && b.Status.State == v1alpha1.StateConfiguring
	}
	if placed(now) && !placed(old) {
		wake.Wake(c.MemberPods(now))
	}
}

// wakeConfiguring makes kube-scheduler try the pods of the workloads that waited for nodes to
// boot: some may be there now.
func wakeConfiguring(c *control.Cluster, wake *plugin.Waker) {
	for _, b := range c.Jobs.List() {
		if b.Spec.Workload != nil && b.Status.State == v1alpha1.StateConfiguring {
			wake.Wake(c.MemberPods(b))
		}
	}
}

// startCaches starts the watches and kube-scheduler, which continue after it, and
// returns when they have seen the cluster. kube-scheduler then retries the pods that it
// refused before it knew the placements.
func startCaches(ctx context.Context, cfg Config, cluster *control.Cluster, wake *plugin.Waker) error {
	var all errgroup.Group
	all.Go(func() error { return cluster.Start(ctx) })
	all.Go(func() error {
		return startKubeScheduler(ctx, cfg.Kube, starter.Placements{Cluster: cluster}, wake, cfg.DefaultProfile)
	})
	err := all.Wait()
	wake.Wake(slices.DeleteFunc(cluster.Pods.List(), func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" || p.Spec.SchedulerName != wire.SchedulerName
	}))
	return err
}

// family returns a function that lists an array's own job and the tasks split off it.
func family(cluster *control.Cluster) func(id int64) []*v1alpha1.BatchJob {
	return func(id int64) []*v1alpha1.BatchJob {
		all := cluster.SplitOff(id)
		if own, ok := cluster.Job(id); ok {
			all = append(all, own)
		}
		return all
	}
}
