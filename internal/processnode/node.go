package processnode

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// labelOwner is the label of Nodes with the id of the state directory of their process
// nodes (see owner), by which Nodes that are no longer needed are found.
const labelOwner = "berth.hpc/process-node"

func (n *NodeConfig) capacity() corev1.ResourceList {
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
func (n *NodeConfig) object(owner, hostIP string, port int32) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   n.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: runtime.GOARCH,
	}
	maps.Copy(labels, n.Labels)
	labels[labelOwner] = owner
	notes := machineLoad()
	maps.Copy(notes, n.Annotations)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels, Annotations: notes}}
	node.Status = corev1.NodeStatus{
		Capacity:    n.capacity(),
		Allocatable: n.capacity(),
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: hostIP},
			{Type: corev1.NodeHostName, Address: n.Name},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
		Conditions:      nodeConditions(metav1.Now()),
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem: "linux", Architecture: runtime.GOARCH, KernelVersion: kernelVersion(),
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

// register creates the Node or updates an existing one, whose other labels and annotations
// and spec.unschedulable are kept.
func (m *manager) register(ctx context.Context, n *NodeConfig) (*corev1.Node, error) {
	want := n.object(m.owner, m.hostIP, m.port)
	nodes := m.cfg.Client.CoreV1().Nodes()
	node, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = m.relabel(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("register node %s: %w", n.Name, err)
	}
	if err := m.postNode(ctx, n, node); err != nil {
		return nil, fmt.Errorf("status of node %s: %w", n.Name, err)
	}
	if err := m.untaint(ctx, node); err != nil {
		return nil, fmt.Errorf("taints of node %s: %w", n.Name, err)
	}
	return node, nil
}

// relabel updates the labels and annotations of an existing Node. It removes the labels of
// features that the node no longer has, and keeps those of other owners.
func (m *manager) relabel(ctx context.Context, want *corev1.Node) (*corev1.Node, error) {
	nodes := m.cfg.Client.CoreV1().Nodes()
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

// removeOldNodes removes Nodes of a previous Run that this one does not have.
func (m *manager) removeOldNodes(ctx context.Context) error {
	nodes := m.cfg.Client.CoreV1().Nodes()
	list, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: labelOwner + "=" + m.owner})
	if err != nil {
		return err
	}
	for i := range list.Items {
		name := list.Items[i].Name
		if _, wanted := m.nodes[name]; wanted {
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
func (m *manager) untaint(ctx context.Context, node *corev1.Node) error {
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
	_, err = m.cfg.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, data, metav1.PatchOptions{})
	return err
}

// postNode writes the node's status. Conditions keep the time of their last transition.
func (m *manager) postNode(ctx context.Context, n *NodeConfig, have *corev1.Node) error {
	status := n.object(m.owner, m.hostIP, m.port).Status
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
	_, err = m.cfg.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, data,
		metav1.PatchOptions{}, "status")
	return err
}

// heartbeat renews the node's lease, and its status every statusInterval, until ctx ends.
func (m *manager) heartbeat(ctx context.Context, n *NodeConfig, node *corev1.Node) {
	own := func(l *coordination.Lease) error {
		l.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}
		l.Spec.HolderIdentity = ptr.To(node.Name)
		return nil
	}
	c := lease.NewController(clock.RealClock{}, m.cfg.Client, n.Name, leaseSeconds, nil, leaseRenewal, n.Name,
		corev1.NamespaceNodeLease, own)
	m.wait.Go(func() { c.Run(ctx) })
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		have, err := m.cfg.Client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			have, err = m.register(ctx, n)
		}
		if err == nil {
			err = m.postNode(ctx, n, have)
		}
		if err != nil && ctx.Err() == nil {
			m.log("node %s: %v", n.Name, err)
		}
	}
}
