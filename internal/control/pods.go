package control

import (
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// PodIndex returns the index of the pod among all pods of its job: the offset of its
// replicated job plus its completion index, or the entry with that index in its list of
// nodes.
func PodIndex(pod *corev1.Pod) (int, error) {
	offset, err := number(pod.Annotations, wire.AnnotationNodeOffset)
	if err != nil {
		return 0, err
	}
	completion, err := number(pod.Annotations, batchv1.JobCompletionIndexAnnotation)
	if err != nil {
		return 0, err
	}
	if list, ok := pod.Annotations[wire.AnnotationNodes]; ok {
		n, ok := wire.NodeAt(list, completion)
		if !ok {
			return 0, fmt.Errorf("annotation %s: no node at %d", wire.AnnotationNodes, completion)
		}
		return n, nil
	}
	return offset + completion, nil
}

// number returns a count from an annotation; 0 if it is missing.
func number(from map[string]string, key string) (int, error) {
	text, ok := from[key]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %w", key, err)
	}
	return int(n), nil
}
