// Package registration creates the Node objects of process nodes, and renews their leases
// and statuses.
package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/berth-hpc/berth/internal/wire"
)

const (
	leaseSeconds   = 40
	leaseRenewal   = 10 * time.Second
	statusInterval = 5 * time.Minute
	defaultPods    = 110
)

// LabelOwner is the label of Nodes with the id of the state directory of their process
// nodes (Registrar.Owner), by which Nodes that are no longer needed are found.
const LabelOwner = "berth.hpc/process-node"

// Node is the configuration of one process node.
type Node struct {
	Name string
	// Cloud: the node runs only while something has started it.
	Cloud bool
	// CPUs and Memory (bytes) are both capacity and allocatable. Several nodes may
	// offer the same CPUs.
	CPUs   int64
	Memory int64
	// Disk is the local disk in bytes; 0: unknown, so that every pod has enough.
	Disk int64
	// Pods is the maximum number of pods at a time; 0: 110.
	Pods int64
	// Extended are extended resources by name, such as gres.berth.hpc/gpu.
	Extended map[string]int64
	// Labels and Annotations are set on the Node; other existing ones are kept.
	Labels      map[string]string
	Annotations map[string]string
	// BootID differs after each start of the node.
	BootID string
}

// Registrar registers nodes. All fields are needed.
type Registrar struct {
	Client kubernetes.Interface
	// Owner identifies the process nodes that belong together.
	Owner string
	// HostIP and Port are the address of the kubelet API.
	HostIP string
	Port   int32
	Log    func(format string, args ...any)
}

// Capacity returns the node's resources.
func (n *Node) Capacity() corev1.ResourceList {
	pods := n.Pods
	if pods == 0 {
		pods = defaultPods
	}
	list := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(n.CPUs, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(n.Memory, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(pods, resource.DecimalSI),
	}
	if n.Disk > 0 {
		list[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(n.Disk, resource.BinarySI)
	}
	for name, count := range n.Extended {
		list[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	return list
}

// object returns the desired Node.
func (n *Node) object(owner, hostIP string, port int32) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: runtime.GOARCH,
	}
	maps.Copy(labels, n.Labels)
	labels[LabelOwner] = owner
	notes := machineLoad()
	maps.Copy(notes, n.Annotations)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: notes}}
	node.Status = corev1.NodeStatus{
		Capacity:    n.Capacity(),
		Allocatable: n.Capacity(),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: hostIP},
			{Type: corev1.NodeHostName, Address: n.Name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
		Conditions:      nodeConditions(metav1.Now()),
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem: "linux", Architecture: runtime.GOARCH, KernelVersion: kernelVersion(),
			BootID:  n.BootID,
			OSImage: "process node", KubeletVersion: "v1.36.3", ContainerRuntimeVersion: "berth://1",
		},
	}
	return node
}

// kernelVersion returns the release and the version of the machine's kernel, as uname(1)
// prints them.
func kernelVersion() string {
	release, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	version, _ := os.ReadFile("/proc/sys/kernel/version")
	return strings.TrimSpace(strings.TrimSpace(string(release)) + " " + strings.TrimSpace(string(version)))
}

// machineLoad returns the annotations with the load and the free memory of the machine,
// which all process nodes share.
func machineLoad() map[string]string {
	notes := map[string]string{}
	if data, err := os.ReadFile("/proc/loadavg"); err == nil {
		notes[wire.AnnotationLoad], _, _ = strings.Cut(string(data), " ")
	}
	data, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(data)) {
		rest, found := strings.CutPrefix(line, "MemFree:")
		kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
		if found && err == nil {
			notes[wire.AnnotationFreeMemory] = strconv.FormatInt(kib>>10, 10)
		}
	}
	return notes
}

func nodeConditions(now metav1.Time) []corev1.NodeCondition {
	ok := func(t corev1.NodeConditionType, s corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: t, Status: s, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now,
		}
	}
	return []corev1.NodeCondition{
		ok(corev1.NodeMemoryPressure, corev1.ConditionFalse, "ProcessNode", "not monitored"),
		ok(corev1.NodeDiskPressure, corev1.ConditionFalse, "ProcessNode", "not monitored"),
		ok(corev1.NodePIDPressure, corev1.ConditionFalse, "ProcessNode", "not monitored"),
		ok(corev1.NodeReady, corev1.ConditionTrue, "ProcessNodeReady", "the process node is running"),
	}
}

// Register creates the Node or updates an existing one, whose other labels and annotations
// and spec.unschedulable are kept.
func (r *Registrar) Register(ctx context.Context, n *Node) (*corev1.Node, error) {
	want := n.object(r.Owner, r.HostIP, r.Port)
	nodes := r.Client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = r.relabel(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("register node %s: %w", n.Name, err)
	}
	if err := r.postStatus(ctx, n, node); err != nil {
		return nil, fmt.Errorf("status of node %s: %w", n.Name, err)
	}
	if err := r.untaint(ctx, node); err != nil {
		return nil, fmt.Errorf("taints of node %s: %w", n.Name, err)
	}
	return node, nil
}

// relabel updates the labels and annotations of an existing Node. It removes the labels of
// features that the node no longer has, and keeps those of other owners.
func (r *Registrar) relabel(ctx context.Context, want *corev1.Node) (*corev1.Node, error) {
	nodes := r.Client.CoreV1().Nodes()
	have, err := nodes.Get(ctx, want.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	labels := map[string]any{}
	for k := range have.Labels {
		if strings.HasPrefix(k, wire.LabelFeature) {
			labels[k] = nil
		}
	}
	for k, v := range want.Labels {
		labels[k] = v
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels,
		"annotations": want.Annotations}})
	if err != nil {
		return nil, err
	}
	return nodes.Patch(ctx, want.Name, types.MergePatchType, data, metav1.PatchOptions{})
}

// RemoveOthers removes the Nodes of the owner that are not among those to keep.
func (r *Registrar) RemoveOthers(ctx context.Context, keep map[string]*Node) error {
	nodes := r.Client.CoreV1().Nodes()
	list, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: LabelOwner + "=" + r.Owner})
	if err != nil {
		return err
	}
	for i := range list.Items {
		name := list.Items[i].Name
		if _, wanted := keep[name]; wanted {
			continue
		}
		if err := nodes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove node %s: %w", name, err)
		}
	}
	return nil
}

// untaint removes the not-ready taint, with which admission creates nodes, and the
// unreachable taint, which the node-lifecycle controller has added while the cluster was
// down. The node is ready without waiting for that controller.
func (r *Registrar) untaint(ctx context.Context, node *corev1.Node) error {
	keep := []corev1.Taint{}
	for _, t := range node.Spec.Taints {
		if t.Key != corev1.TaintNodeNotReady && t.Key != corev1.TaintNodeUnreachable {
			keep = append(keep, t)
		}
	}
	if len(keep) == len(node.Spec.Taints) {
		return nil
	}
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": keep}})
	if err != nil {
		return err
	}
	_, err = r.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, data, metav1.PatchOptions{})
	return err
}

// postStatus writes the node's status. Conditions keep the time of their last transition.
func (r *Registrar) postStatus(ctx context.Context, n *Node, have *corev1.Node) error {
	status := n.object(r.Owner, r.HostIP, r.Port).Status
	for i := range status.Conditions {
		c := &status.Conditions[i]
		for _, old := range have.Status.Conditions {
			if old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
	}
	// A patch, not an update, so that annotations and conditions of other owners are kept.
	var patch map[string]map[string]any
	notes := map[string]any{"annotations": machineLoad()}
	data, err := json.Marshal(map[string]any{"status": status, "metadata": notes})
	if err == nil {
		err = json.Unmarshal(data, &patch)
	}
	if err != nil {
		return err
	}
	// Remove resources that the node no longer has.
	for _, list := range []string{"capacity", "allocatable"} {
		quantities, _ := patch["status"][list].(map[string]any)
		for name := range have.Status.Capacity {
			if _, ok := quantities[string(name)]; !ok {
				quantities[string(name)] = nil
			}
		}
	}
	if data, err = json.Marshal(patch); err != nil {
		return err
	}
	_, err = r.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, data,
		metav1.PatchOptions{}, "status")
	return err
}

// Heartbeat renews the node's lease, and its status every statusInterval, until ctx ends.
func (r *Registrar) Heartbeat(ctx context.Context, n *Node, node *corev1.Node) {
	own := func(l *coordination.Lease) error {
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
		l.Spec.HolderIdentity = ptr.To(node.Name)
		return nil
	}
	c := lease.NewController(clock.RealClock{}, r.Client, n.Name, leaseSeconds, nil, leaseRenewal, n.Name,
		corev1.NamespaceNodeLease, own)
	var renewal sync.WaitGroup
	renewal.Go(func() { c.Run(ctx) })
	defer renewal.Wait()
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		have, err := r.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			have, err = r.Register(ctx, n)
		}
		if err == nil {
			err = r.postStatus(ctx, n, have)
		}
		if err != nil && ctx.Err() == nil {
			r.Log("node %s: %v", n.Name, err)
		}
	}
}
