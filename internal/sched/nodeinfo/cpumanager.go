package nodeinfo

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// Policies of the topology manager with which a kubelet refuses pods.
const (
	Restricted     = "restricted"
	SingleNUMANode = "single-numa-node"
)

// TopologyManager is what the annotations of a node say about its kubelet's topology manager.
type TopologyManager struct {
	Policy string
	NUMA   []string // CPUs of each NUMA node that pods can have, as lists; nil: unknown
	CPUs   int      // of all NUMA nodes, together with those that the kubelet reserves
}

// RefusesPods reports whether the kubelet refuses pods whose CPUs it cannot align.
func (t TopologyManager) RefusesPods() bool {
	return t.Policy == Restricted || t.Policy == SingleNUMANode
}

// HasExclusiveCPUs reports whether the node's kubelet gives CPUs to pods that no other pod may
// use (cpuManagerPolicy static). known is false if no annotation says so.
func HasExclusiveCPUs(n *corev1.Node) (exclusive, known bool) {
	policy, _, _ := strings.Cut(n.Annotations[wire.AnnotationCPUManager], ",")
	return policy == "static", policy != ""
}

// TopologyManagerOf returns the topology manager of the node. Without a static CPU manager it
// aligns no CPUs, and so refuses no pod because of them.
func TopologyManagerOf(n *corev1.Node) TopologyManager {
	if exclusive, _ := HasExclusiveCPUs(n); !exclusive {
		return TopologyManager{}
	}
	t := TopologyManager{
		Policy: n.Annotations[wire.AnnotationTopologyManager], CPUs: int(n.Status.Capacity.Cpu().Value()),
	}
	for list := range strings.SplitSeq(n.Annotations[wire.AnnotationNUMACPUs], ";") {
		if list = strings.TrimSpace(list); list != "" {
			t.NUMA = append(t.NUMA, list)
		}
	}
	return t
}

// CoresOfJobs returns a text that says whether jobs on the node have cores that no other pod
// uses; "" if the node has no kubelet whose policy is known.
func CoresOfJobs(n *corev1.Node) string {
	exclusive, known := HasExclusiveCPUs(n)
	switch {
	case !known:
		return ""
	case exclusive:
		text := "exclusive cores (static CPU manager)"
		if policy := n.Annotations[wire.AnnotationTopologyManager]; policy != "" && policy != "none" {
			text += ", topology manager " + policy
		}
		return text
	}
	return "pinned cores (no CPU manager; other pods may use them)"
}
