package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// fleet is a set of nodes that exist only in the API server, like those of KWOK: they
// renew their leases, and report the pods that are bound to them as running.
type fleet struct {
	client *kubernetes.Clientset
	nodes  int
	play   chan *corev1.Pod

	mu          sync.Mutex
	bound       map[types.UID]bool
	first, last time.Time // when the first and the last binding were seen
}

const (
	fleetNamespace = "bench"
	fleetCPUs      = "4"
	fleetWorkers   = 8
	leaseEvery     = 20 * time.Second
)

func newFleet(kubeconfig string, nodes int) (*fleet, error) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cluster's client: %w", err)
	}
	c.QPS, c.ContentType = -1, "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("cluster's client: %w", err)
	}
	return &fleet{client: client, nodes: nodes, play: make(chan *corev1.Pod, 1<<16), bound: map[types.UID]bool{}}, nil
}

// start creates the nodes and the namespace, renews the leases of the nodes, and
// watches the pods until ctx ends.
func (f *fleet) start(ctx context.Context) error {
	names := make([]string, f.nodes)
	for i := range names {
		names[i] = fmt.Sprintf("fake-%04d", i)
	}
	if err := each(names, func(name string) error { return f.makeNode(ctx, name) }); err != nil {
		return err
	}
	go func() {
		for ctx.Err() == nil {
			_ = each(names, func(name string) error { return f.renew(ctx, name) })
			pause(ctx, leaseEvery)
		}
	}()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleetNamespace}}
	if _, err := f.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	for {
		_, err := f.client.CoreV1().ServiceAccounts(fleetNamespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("service account: %w", err)
		}
		pause(ctx, 50*time.Millisecond)
	}
	watches := informers.NewSharedInformerFactoryWithOptions(f.client, 0, informers.WithNamespace(fleetNamespace))
	_, err := watches.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: f.follow, UpdateFunc: func(_, now any) { f.follow(now) }})
	if err != nil {
		return fmt.Errorf("watch of the pods: %w", err)
	}
	watches.Start(ctx.Done())
	watches.WaitForCacheSync(ctx.Done())
	return nil
}

// playAll reports bound pods as running until ctx ends.
func (f *fleet) playAll(ctx context.Context) {
	for range fleetWorkers {
		go f.playPods(ctx)
	}
}

func (f *fleet) makeNode(ctx context.Context, name string) error {
	have := corev1.ResourceList{
		"cpu": resource.MustParse(fleetCPUs), "memory": resource.MustParse("16Gi"),
		"pods": resource.MustParse("110"),
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Capacity: have, Allocatable: have, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Fake", LastHeartbeatTime: metav1.Now(),
				LastTransitionTime: metav1.Now()}}}}
	if err := f.renew(ctx, name); err != nil {
		return err
	}
	if _, err := f.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	return nil
}

// renew writes the lease by which the node is alive.
func (f *fleet) renew(ctx context.Context, name string) error {
	now, seconds := metav1.NowMicro(), int32(40)
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}}
	leases := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	_, err := leases.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, l, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	return nil
}

// follow records which pods are bound.
func (f *fleet) follow(o any) {
	p, ok := o.(*corev1.Pod)
	if !ok || p.Spec.NodeName == "" {
		return
	}
	f.mu.Lock()
	known := f.bound[p.UID]
	if !known {
		f.bound[p.UID], f.last = true, time.Now()
		if len(f.bound) == 1 {
			f.first = f.last
		}
	}
	f.mu.Unlock()
	if !known && p.DeletionTimestamp == nil {
		f.play <- p
	}
}

// playPods reports pods as running.
func (f *fleet) playPods(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case p := <-f.play:
			p = p.DeepCopy()
			p.Status.Phase = corev1.PodRunning
			now := metav1.Now()
			p.Status.StartTime = &now
			p.Status.Conditions = append(p.Status.Conditions,
				corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: now})
			p.ResourceVersion = ""
			_, _ = f.client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}) // gone, or the end
		}
	}
}

// ready returns the number of nodes that are Ready.
func (f *fleet) ready(ctx context.Context) string {
	nodes, err := f.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return "nodes: " + err.Error()
	}
	n := 0
	for i := range nodes.Items {
		if slices.ContainsFunc(nodes.Items[i].Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}) {
			n++
		}
	}
	return fmt.Sprintf("%d of %d nodes are ready", n, f.nodes)
}

// count returns how many pods were seen bound since the last reset.
func (f *fleet) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.bound)
}

// span returns when the first and the last of them were seen bound.
func (f *fleet) span() (first, last time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.first, f.last
}

// clear deletes all pods.
func (f *fleet) clear(ctx context.Context) error {
	now := int64(0)
	pods := f.client.CoreV1().Pods(fleetNamespace)
	for {
		// On a busy machine the server gives up after a while.
		ended := pods.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now},
			metav1.ListOptions{Limit: 200})
		if ctx.Err() != nil {
			return fmt.Errorf("ending the pods: %w", ended)
		}
		list, err := pods.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return fmt.Errorf("pods: %w", err)
		}
		if len(list.Items) == 0 {
			break
		}
		pause(ctx, 50*time.Millisecond)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.bound)
	return nil
}

// each calls a function with every name, a few at a time.
func each(names []string, do func(name string) error) error {
	work := make(chan string, len(names))
	for _, n := range names {
		work <- n
	}
	close(work)
	var wg sync.WaitGroup
	errs := make([]error, fleetWorkers)
	for w := range fleetWorkers {
		wg.Go(func() {
			for n := range work {
				if err := do(n); err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
