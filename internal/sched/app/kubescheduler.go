package app

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/berth-hpc/berth/internal/sched/plugin"
	"github.com/berth-hpc/berth/internal/wire"
)

// notNominated disables a feature of kube-scheduler: it writes into each pod that waits
// in Permit where it will be bound, which is one more write for every pod of a gang. It
// is meant for cluster autoscalers; the allocation of the job has the same information.
var notNominated = map[string]bool{string(features.NominatedNodeNameForExpectation): false}

// bindings is how many writes of kube-scheduler are in flight at a time. Gangs are
// released at once and would otherwise open a connection for each of their pods. Other
// requests of this process, especially watches, use the rest of the connection's 100
// streams.
const bindings = 48

// startKubeScheduler runs kube-scheduler with Berth's plugin until ctx ends. It returns
// when the caches are filled; scheduling continues in the background.
func startKubeScheduler(
	ctx context.Context, kube *rest.Config, placements plugin.Placements, wake *plugin.Waker, defaultProfile bool,
) error {
	cfg, err := schedulerConfiguration(defaultProfile)
	if err != nil {
		return err
	}
	if err := feature.DefaultMutableFeatureGate.SetFromMap(notNominated); err != nil {
		return fmt.Errorf("kube-scheduler's features: %w", err)
	}
	kube = rest.CopyConfig(kube)
	kube.QPS, kube.Burst = -1, 0
	limitWrites(kube, bindings)
	kube.ContentType = "application/vnd.kubernetes.protobuf"
	kube.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(kube)
	if err != nil {
		return fmt.Errorf("client for kube-scheduler: %w", err)
	}
	broadcaster := events.NewEventBroadcasterAdapterWithContext(ctx, client)
	late := events.NewBroadcaster(newLateSink(&events.EventSinkImpl{Interface: client.EventsV1()}))
	recorders := profile.RecorderFactory(func(name string) events.EventRecorderLogger {
		if name == wire.SchedulerName {
			return late.NewRecorder(scheme.Scheme, name)
		}
		return broadcaster.NewRecorder(name)
	})
	informers := scheduler.NewInformerFactory(client, 0)
	s, err := scheduler.New(ctx, client, informers, dynamicinformer.DynamicSharedInformerFactory(nil), recorders,
		scheduler.WithComponentConfigVersion(cfg.APIVersion),
		scheduler.WithKubeConfig(kube),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithParallelism(cfg.Parallelism),
		scheduler.WithPodInitialBackoffSeconds(cfg.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(cfg.PodMaxBackoffSeconds),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{plugin.Name: plugin.New(placements, wake)}),
	)
	if err != nil {
		return fmt.Errorf("kube-scheduler: %w", err)
	}
	broadcaster.StartRecordingToSink(ctx.Done())
	if err := late.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("kube-scheduler's events: %w", err)
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		return fmt.Errorf("kube-scheduler's caches: %w", err)
	}
	go func() {
		s.Run(ctx)
		broadcaster.Shutdown()
		late.Shutdown()
	}()
	return nil
}

// schedulerConfiguration returns Kubernetes' default configuration with a profile of
// Berth: Berth's plugin beside the default ones, and no preemption, which would evict
// pods on a planned node without the planner.
func schedulerConfiguration(defaultProfile bool) (*config.KubeSchedulerConfiguration, error) {
	cfg, err := latest.Default()
	if err != nil {
		return nil, fmt.Errorf("kube-scheduler's defaults: %w", err)
	}
	standard := cfg.Profiles[0]
	ours := *standard.DeepCopy()
	ours.SchedulerName = wire.SchedulerName
	ours.Plugins.MultiPoint.Enabled = slices.DeleteFunc(ours.Plugins.MultiPoint.Enabled,
		func(p config.Plugin) bool { return p.Name == names.DefaultPreemption })
	ours.Plugins.MultiPoint.Enabled = append(ours.Plugins.MultiPoint.Enabled, config.Plugin{Name: plugin.Name})
	ours.Plugins.Bind.Enabled = []config.Plugin{{Name: plugin.Name}} // has priority over the default one
	cfg.Profiles = []config.KubeSchedulerProfile{ours}
	if defaultProfile {
		standard.SchedulerName = corev1.DefaultSchedulerName
		cfg.Profiles = append(cfg.Profiles, standard)
	}
	// A planned node is free, or will be in a moment: try again soon.
	cfg.PodInitialBackoffSeconds, cfg.PodMaxBackoffSeconds = 1, 2
	return cfg, nil
}
