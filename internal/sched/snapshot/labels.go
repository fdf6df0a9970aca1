package snapshot

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// Labels of Node Feature Discovery.
const (
	nfdThreads = "feature.node.kubernetes.io/cpu-hardware_multithreading"
	nfdNUMA    = "feature.node.kubernetes.io/memory-numa"
	yes        = "true"
)

// threadsOf is how many threads a core of the node has, as far as labels tell.
func threadsOf(labels map[string]string) int {
	if labels[nfdThreads] == yes {
		return 2
	}
	return 1
}

// unknown says what of the node's shape is assumed: a kubelet tells how many
// CPUs there are, and not how they are put together. "" where everything is
// known.
func unknown(n *corev1.Node) string {
	var what []string
	if n.Annotations[wire.AnnotationSockets] == "" {
		what = append(what, "sockets")
	}
	if n.Annotations[wire.AnnotationThreads] == "" && n.Labels[nfdThreads] == "" {
		what = append(what, "threads")
	}
	if len(what) == 0 {
		return ""
	}
	text := strings.Join(what, " and ") + " assumed"
	if n.Labels[nfdNUMA] == yes && what[0] == "sockets" {
		text += ", though the node has several NUMA nodes"
	}
	return text + " (annotations " + wire.AnnotationSockets + ", " + wire.AnnotationCores + ", " + wire.AnnotationThreads + ")"
}

// featureIn is the feature that the pattern (ClusterSpec.FeatureLabels) makes of
// a label; "": none.
func featureIn(pattern, label, value string) string {
	head, wild := strings.CutSuffix(pattern, "*")
	rest, ok := strings.CutPrefix(label, head)
	switch {
	case !ok || !wild && rest != "" || value == "false" || value == "":
		return ""
	case value != yes:
		return featureName(value)
	case rest != "":
		return featureName(rest)
	}
	return featureName(label[strings.LastIndexByte(label, '/')+1:])
}

// featureName makes a word that --constraint takes.
func featureName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '_'
	}, strings.ToLower(s))
}
