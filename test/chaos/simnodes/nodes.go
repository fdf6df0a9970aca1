// Package simnodes adds nodes to a cluster that exist only in the API server, as those of KWOK
// do. Their pods have no processes: the package reports them like a kubelet, speaks to the
// scheduler like their agents, and writes the lines of the jobs' scripts itself.
package simnodes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

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

// prefix and a number are the name of a node.
const prefix = "k"

// leaseEvery is how often the lease by which a node is alive is renewed.
const leaseEvery = 10 * time.Second

// Names returns the names of n nodes.
func Names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%03d", prefix, i+1)
	}
	return out
}

// Options of Start.
type Options struct {
	Kubeconfig string // of the administrator
	Nodes      int
	CPUs       int64  // of each node
	Output     string // directory of the jobs' lines
	Dir        string // directory of the tokens; it must exist
}

// fleet is what the nodes share.
type fleet struct {
	Options
	client kubernetes.Interface

	mu   sync.Mutex
	pods map[types.UID]*pod
	wg   sync.WaitGroup
}

// Start makes the nodes, and runs them until ctx ends. wait returns when everything has ended
// then.
func Start(ctx context.Context, o Options) (wait func(), err error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.QPS, cfg.ContentType = -1, "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	f := &fleet{Options: o, client: client, pods: map[types.UID]*pod{}}
	for i, name := range Names(o.Nodes) {
		if err := errors.Join(f.renew(ctx, name), f.register(ctx, name)); err != nil {
			return nil, err
		}
		f.wg.Go(func() { f.keepAlive(ctx, name, time.Duration(i)*leaseEvery/time.Duration(o.Nodes)) })
	}
	watches := informers.NewSharedInformerFactory(client, 0)
	inf := watches.Core().V1().Pods().Informer()
	if _, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.changed(ctx, o) },
		UpdateFunc: func(_, o any) { f.changed(ctx, o) },
		DeleteFunc: f.deleted,
	}); err != nil {
		return nil, err
	}
	watches.Start(ctx.Done())
	return f.wg.Wait, nil
}

// register makes the Node object.
func (f *fleet) register(ctx context.Context, name string) error {
	have := corev1.ResourceList{"cpu": *resource.NewQuantity(f.CPUs, resource.DecimalSI),
		"memory": resource.MustParse("4000Mi"), "pods": resource.MustParse("110")}
	now := metav1.Now()
	_, err := f.client.CoreV1().Nodes().Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Capacity: have, Allocatable: have, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Simulated", LastHeartbeatTime: now,
				LastTransitionTime: now}}}}, metav1.CreateOptions{})
	return err
}

// keepAlive renews the lease of a node. The node controller marks a node as lost while the API
// server was away; it is ready again then.
func (f *fleet) keepAlive(ctx context.Context, name string, first time.Duration) {
	pause(ctx, first)
	for ; ctx.Err() == nil; pause(ctx, leaseEvery) {
		_ = f.renew(ctx, name) // the next time
		n, err := f.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{ResourceVersion: "0"})
		if err != nil {
			continue
		}
		for i := range n.Status.Conditions {
			if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				c.Status, c.LastHeartbeatTime, c.LastTransitionTime = corev1.ConditionTrue, metav1.Now(), metav1.Now()
				_, _ = f.client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{})
			}
		}
	}
}

// renew writes the lease by which the node is alive.
func (f *fleet) renew(ctx context.Context, name string) error {
	leases := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := time.Now().UTC().Format(metav1.RFC3339Micro)
	_, err := leases.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, now),
		metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = leases.Create(ctx, newLease(name), metav1.CreateOptions{})
	return err
}

// changed starts the agent of a pod that was bound to a node of the fleet, and ends that of one
// that is deleted.
func (f *fleet) changed(ctx context.Context, o any) {
	p, ok := o.(*corev1.Pod)
	if !ok || !strings.HasPrefix(p.Spec.NodeName, prefix) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.pods[p.UID]
	if known == nil && p.Status.Phase == corev1.PodPending {
		known = newPod(ctx, f, p)
		f.pods[p.UID] = known
		f.wg.Go(known.run)
	}
	if known != nil && p.DeletionTimestamp != nil {
		known.stop()
	}
}

// deleted ends the agent of a pod that was deleted by force.
func (f *fleet) deleted(o any) {
	if d, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = d.Obj
	}
	p, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.pods[p.UID]; known != nil {
		known.stop()
		delete(f.pods, p.UID)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
