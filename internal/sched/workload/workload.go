// Package workload queues pods that no command submitted: Pods, and those of Jobs,
// JobSets, LeaderWorkerSets and Deployments, with or without a PodGroup, that name
// Berth's scheduler in a namespace that may do so. Each group of them becomes a BatchJob
// that the planner plans with all others. Package plugin binds the pods to the planned
// nodes, and the keeper ends the job with its pods.
package workload

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/internal/wire"
)

// Controller keeps the queue in step with the pods. Safe for concurrent use.
type Controller struct {
	cluster *control.Cluster
	dir     *directory.Directory
	now     func() time.Time
	log     *slog.Logger
	queue   workqueue.TypedRateLimitingInterface[string]

	// Recorded reports whether accounting has a job; nil: there is no accounting, and
	// pods that have ended are ignored.
	Recorded func(ctx context.Context, jobID int64) (bool, error)

	gather time.Duration // see gatherPods

	mu     sync.Mutex
	owners map[string]owner // annotations of controllers, recently read
}

// New returns a Controller. Call it before the stores of c are fed.
func New(c *control.Cluster, now func() time.Time, log *slog.Logger) *Controller {
	w := &Controller{
		cluster: c, dir: directory.New(c, nil), now: now, log: log, owners: map[string]owner{}, gather: gatherPods,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, 10*time.Second)),
	}
	c.Pods.Subscribe(w.podChanged)
	c.PodGroups.Subscribe(func(old, now *podgroup.PodGroup) {
		if now == nil {
			now = old
		}
		if _, ours := now.Labels[wire.LabelJobID]; !ours {
			w.queue.Add(control.GroupOfPodGroup(now.Namespace, now.Name))
		}
	})
	c.Jobs.Subscribe(w.jobChanged)
	c.Settings.Subscribe(func(_, _ *v1alpha1.Cluster) { w.queueAll() })
	return w
}

// podChanged queues the group of a pod.
func (w *Controller) podChanged(old, now *corev1.Pod) {
	p := now
	if p == nil {
		p = old
	}
	switch g := control.GroupOf(p); {
	case g == "":
	case strings.HasPrefix(g, "pod "):
		if now != nil && now.Spec.NodeName == "" { // else there is nothing to do
			w.queue.Add(g)
		}
	default:
		w.queue.AddAfter(g, w.gather)
	}
}

// gatherPods is how long changes of a group's pods are collected before the group
// is reconciled: they are created and bound one after the other.
const gatherPods = 3 * time.Millisecond

// jobChanged queues a group whose job changed its state: further pods may be queued
// once the gang is placed.
func (w *Controller) jobChanged(old, now *v1alpha1.BatchJob) {
	if now == nil || now.Spec.Workload == nil || now.Spec.Workload.Group == "" {
		return
	}
	if old == nil || old.Status.State != now.Status.State {
		w.queue.Add(now.Spec.Workload.Group)
	}
}

// queueAll queues every pod, after a change of what is allowed.
func (w *Controller) queueAll() {
	for _, p := range w.cluster.Pods.List() {
		w.podChanged(nil, p)
	}
}

// Run reconciles groups, as many at a time as there are workers, until ctx ends.
func (w *Controller) Run(ctx context.Context, workers int) {
	w.queueBound()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				key, stop := w.queue.Get()
				if stop {
					return
				}
				if err := w.reconcile(ctx, key); err != nil && ctx.Err() == nil {
					w.log.Warn("pods are retried", "group", key, "error", err)
					w.queue.AddRateLimited(key)
				} else {
					w.queue.Forget(key)
				}
				w.queue.Done(key)
			}
		})
	}
	<-ctx.Done()
	w.queue.ShutDown()
	wg.Wait()
}

// Allowed reports whether pods of the namespace may be queued, and if not, why.
func (w *Controller) Allowed(namespace string) (why string, ok bool) {
	if u := w.dir.Owner(namespace); u != nil {
		return fmt.Sprintf("pods in the namespace of the user %s are created only by Berth; submit a job", u.Name), false
	}
	if !slices.Contains(w.cluster.Parameters().WorkloadNamespaces, namespace) {
		return fmt.Sprintf("the namespace %s is not among the workloadNamespaces of the Cluster %s", namespace,
			v1alpha1.ClusterName), false
	}
	return "", true
}

// live reports whether the pod needs a node or has one.
func live(p *corev1.Pod) bool { return !snapshot.IsTerminated(p) && p.DeletionTimestamp == nil }

// reconcile queues one group's pods, or brings its pending job up to date.
func (w *Controller) reconcile(ctx context.Context, key string) error {
	pods := w.cluster.WorkloadPods(key)
	if strings.HasPrefix(key, "pod ") && len(pods) == 1 && pods[0].Spec.NodeName != "" {
		return w.restore(ctx, key, pods[0])
	}
	pods = slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !live(p) })
	unbound := slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" })
	if !unbound {
		return nil
	}
	if why, ok := w.Allowed(pods[0].Namespace); !ok {
		return w.recordEvent(ctx, pods[0], why)
	}
	g, why, err := w.group(ctx, key, pods)
	if err != nil || g == nil {
		if why != "" {
			err = w.recordEvent(ctx, pods[0], why)
		}
		return err
	}
	waiting, placed, returning := w.jobs(g)
	switch {
	case returning: // the job's change of state queues the group again
		return nil
	case placed:
		return w.submitFurther(ctx, g)
	}
	gang := g.gang(func(p *corev1.Pod) bool {
		b, _, known := w.cluster.WorkloadOf(p.UID)
		return p.Spec.NodeName == "" && (!known || b == waiting)
	})
	switch {
	case gang == nil:
		return nil
	case waiting != nil:
		return w.update(ctx, g, gang, waiting)
	}
	return w.submit(ctx, g, gang)
}

// jobs returns the group's job if that is pending, and whether a job of the group
// holds nodes or is returning to the queue.
func (w *Controller) jobs(g *Group) (waiting *v1alpha1.BatchJob, placed, returning bool) {
	list := w.cluster.WorkloadJobs(g.Key)
	if strings.HasPrefix(g.Key, "pod ") {
		if b, _, ok := w.cluster.WorkloadOf(g.Pods[0].UID); ok {
			list = []*v1alpha1.BatchJob{b}
		}
	}
	for _, b := range list {
		switch {
		case b.AwaitsStart():
			waiting = b
		case b.IsFinal():
		case b.Status.Final == v1alpha1.StatePending:
			returning = true
		case b.Spec.Workload.Group == g.Key:
			placed = true
		}
	}
	return waiting, placed && waiting == nil, returning && waiting == nil
}

// submitFurther queues the pods beyond the gang, each by itself.
func (w *Controller) submitFurther(ctx context.Context, g *Group) error {
	for _, p := range g.Pods {
		if p.Spec.NodeName != "" || w.cluster.HasWorkload(p.UID) {
			continue
		}
		one := *g
		one.Key, one.MinMember, one.Pods = "pod "+string(p.UID), 1, []*corev1.Pod{p}
		if err := w.submit(ctx, &one, one.Pods); err != nil {
			return err
		}
	}
	return nil
}

// submit creates the job of pods.
func (w *Controller) submit(ctx context.Context, g *Group, pods []*corev1.Pod) error {
	for _, p := range pods {
		if w.cluster.HasWorkload(p.UID) {
			return nil // its job has ended: the keeper deletes the pod
		}
	}
	s, ok, err := w.buildSpec(ctx, g, pods)
	if err != nil || !ok {
		return err
	}
	now := metav1.NewMicroTime(w.now())
	s.SubmitTime = &now
	if w.cluster.NextID != nil { // else admission draws it
		if s.JobID, err = w.cluster.NextID(ctx); err != nil {
			return err
		}
	}
	b := w.jobOf(s, pods)
	if s.JobID == 0 || control.GroupOf(pods[0]) != g.Key {
		b, err = w.queueJob(ctx, b)
	} else {
		w.cluster.Jobs.AssumeJob(b)
	}
	if err == nil {
		w.log.Info("pods queued", "job", b.Spec.JobID, "kind", s.Workload.Kind, "namespace", b.Namespace, "name",
			s.Workload.Name, "pods", len(pods))
	}
	return err
}

// jobOf returns the BatchJob that represents pods.
func (w *Controller) jobOf(s *v1alpha1.BatchJobSpec, pods []*corev1.Pod) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: pods[0].Namespace, Name: nameOf(s.Workload.Pods), Finalizers: []string{wire.Finalizer},
		Annotations: map[string]string{annotationRequest: digest(s)},
	}, Spec: *s}
	if s.JobID != 0 {
		b.Labels = map[string]string{wire.LabelUser: s.User, wire.LabelJobID: strconv.FormatInt(s.JobID, 10)}
	}
	return b
}

// queueJob creates the object of a job, unless it exists.
func (w *Controller) queueJob(ctx context.Context, b *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	key := client.ObjectKeyFromObject(b)
	if err := w.cluster.Client.Create(ctx, b); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("queueing %s %s/%s: %w", b.Spec.Workload.Kind, b.Namespace, b.Spec.Workload.Name,
				err)
		}
		b = &v1alpha1.BatchJob{}
		if err := w.cluster.Client.Get(ctx, key, b); err != nil {
			return nil, fmt.Errorf("reading BatchJob %s: %w", key, err)
		}
	}
	w.cluster.ApplyJob(b)
	return b, nil
}

// update applies changed members and annotations to the pending job.
func (w *Controller) update(ctx context.Context, g *Group, pods []*corev1.Pod, b *v1alpha1.BatchJob) error {
	s, ok, err := w.buildSpec(ctx, g, pods)
	if err != nil || !ok {
		return err
	}
	same := slices.Equal(s.Workload.Pods, b.Spec.Workload.Pods)
	mark := digest(s)
	if same && mark == b.Annotations[annotationRequest] {
		return nil
	}
	if b, err = w.cluster.EnsureCreated(ctx, b); err != nil {
		return err
	}
	n := b.DeepCopy()
	n.Spec.Workload = s.Workload
	if mark != b.Annotations[annotationRequest] {
		kept := b.Spec.Job // keep what operators changed in the queue
		n.Spec.Job, n.Spec.Partition = s.Job, s.Partition
		n.Spec.Job.Hold, n.Spec.Job.Priority, n.Spec.Job.Dependencies = kept.Hold, kept.Priority, kept.Dependencies
		n.Spec.Job.AdminComment, n.Spec.Job.Comment = kept.AdminComment, kept.Comment
		n.Annotations = map[string]string{annotationRequest: mark}
	}
	err = w.cluster.Client.Patch(ctx, n, client.MergeFromWithOptions(b, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("updating job %d: %w", b.Spec.JobID, err)
	}
	w.cluster.ApplyJob(n)
	return nil
}

// annotationRequest is the annotation of a job with a digest of what its pods requested
// when that was last applied.
const annotationRequest = "berth.hpc/asked"

func digest(s *v1alpha1.BatchJobSpec) string {
	text, err := json.Marshal(s.Job)
	if err != nil {
		return ""
	}
	h := sha256.Sum256(append(text, s.Partition...))
	return hex.EncodeToString(h[:12])
}
