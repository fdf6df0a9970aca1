// Package nodeinfo reads Slurm's properties of a node from its Kubernetes object: its
// short name, whether jobs may start there and why not, its features, weight,
// sockets, cores and threads. It is pure.
package nodeinfo

import (
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// States in which no job may start on a node.
const (
	Down    = "DOWN"
	Drain   = "DRAIN"
	Unknown = "UNKNOWN" // the kubelet has stopped reporting
)

// Unavailable returns why no job may start on the node: Down, Drain or Unknown;
// "" if jobs may start there.
func Unavailable(n *corev1.Node) string {
	switch strings.ToLower(n.Annotations[wire.AnnotationState]) {
	case "down":
		return Down
	case "drain":
		return Drain
	}
	switch ready(n) {
	case corev1.ConditionUnknown:
		return Unknown
	case corev1.ConditionFalse:
		return Down
	}
	if n.Spec.Unschedulable || n.DeletionTimestamp != nil {
		return Drain
	}
	return ""
}

// ready returns the status of the node's Ready condition. It is Unknown for a
// node that has never reported.
func ready(n *corev1.Node) corev1.ConditionStatus {
	if c := readiness(n); c != nil {
		return c.Status
	}
	return corev1.ConditionUnknown
}

// Reason returns why an operator made the node unavailable, who did and when.
// The annotation has the form "text [user@2026-01-02T03:04:05]".
func Reason(n *corev1.Node) (text, user string, at int64) {
	text = n.Annotations[wire.AnnotationReason]
	if text == "" && Unavailable(n) == Unknown {
		return "Not responding", "", 0
	}
	open := strings.LastIndexByte(text, '[')
	if open < 0 || !strings.HasSuffix(text, "]") {
		return text, "", 0
	}
	who, when, ok := strings.Cut(text[open+1:len(text)-1], "@")
	t, err := time.Parse("2006-01-02T15:04:05", when)
	if !ok || err != nil {
		return text, "", 0
	}
	return strings.TrimSpace(text[:open]), who, t.Unix()
}

// Managed reports whether the node belongs to the planner's pool.
func Managed(n *corev1.Node) bool { return n.Labels[wire.LabelManaged] != "false" }

// Weight returns the node's weight. Among the nodes that fit a job, those with
// the least weight are chosen first (slurm.conf(5), Weight).
func Weight(n *corev1.Node) int { return annotatedInt(n, wire.AnnotationWeight, 1) }

// Sockets returns the number of sockets.
func Sockets(n *corev1.Node) int { return annotatedInt(n, wire.AnnotationSockets, 1) }

// CoresPerSocket returns the annotated number of cores of each socket, or unset.
func CoresPerSocket(n *corev1.Node, unset int) int {
	return annotatedInt(n, wire.AnnotationCores, unset)
}

// ThreadsPerCore returns the number of threads of each core: that of the
// annotation, else what Node Feature Discovery has labelled.
func ThreadsPerCore(n *corev1.Node) int {
	labelled := 1
	if n.Labels[nfdThreads] == yes {
		labelled = 2
	}
	return annotatedInt(n, wire.AnnotationThreads, labelled)
}

// TmpDisk returns the local disk in MiB that the node has for all of its pods;
// 0 if the node does not report it.
func TmpDisk(n *corev1.Node) int64 { return n.Status.Allocatable.StorageEphemeral().Value() >> 20 }

// Load returns the load of the node's CPUs in hundredths and its free memory in MiB, from
// its annotations; 0: unknown, because kubelets do not report it.
func Load(n *corev1.Node) (load int32, freeMem int64) {
	if f, err := strconv.ParseFloat(n.Annotations[wire.AnnotationLoad], 64); err == nil && f >= 0 && f < 1e6 {
		load = int32(max(1, math.Round(f*100)))
	}
	return load, int64(annotatedInt(n, wire.AnnotationFreeMemory, 0))
}

// annotatedInt returns a positive number from the node's annotations, or unset.
func annotatedInt(n *corev1.Node, key string, unset int) int {
	if i, err := strconv.Atoi(n.Annotations[key]); err == nil && i > 0 {
		return i
	}
	return unset
}

// Labels of Node Feature Discovery.
const (
	nfdThreads = "feature.node.kubernetes.io/cpu-hardware_multithreading"
	nfdNUMA    = "feature.node.kubernetes.io/memory-numa"
	yes        = "true"
)

// AssumedHardware returns a text that says which part of the node's hardware is
// assumed, because a kubelet reports the number of CPUs but not their sockets,
// cores and threads; "" if everything is known.
func AssumedHardware(n *corev1.Node) string {
	var assumed []string
	if n.Annotations[wire.AnnotationSockets] == "" {
		assumed = append(assumed, "sockets")
	}
	if n.Annotations[wire.AnnotationThreads] == "" && n.Labels[nfdThreads] == "" {
		assumed = append(assumed, "threads")
	}
	if len(assumed) == 0 {
		return ""
	}
	text := strings.Join(assumed, " and ") + " assumed"
	if n.Labels[nfdNUMA] == yes && assumed[0] == "sockets" {
		text += ", though the node has several NUMA nodes"
	}
	annotations := []string{wire.AnnotationSockets, wire.AnnotationCores, wire.AnnotationThreads}
	return text + " (annotations " + strings.Join(annotations, ", ") + ")"
}
