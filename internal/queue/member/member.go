// Package member determines which node of which job a pod is, from its labels and
// annotations, which only Berth and the Job controller write.
package member

import (
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// Place is one node of one attempt of a job. Index is the node's index among the
// job's nodes; 0 is the batch host.
type Place struct {
	JobID   int64
	Attempt int32
	Index   int
}

// Of returns the pod's place. The pod must be controlled by a Job of the attempt's
// JobSet.
func Of(pod *corev1.Pod) (Place, error) {
	id, errID := strconv.ParseInt(pod.Labels[wire.LabelJobID], 10, 64)
	attempt, errAttempt := strconv.ParseInt(pod.Labels[wire.LabelAttempt], 10, 32)
	if errID != nil || errAttempt != nil || id <= 0 || attempt <= 0 {
		return Place{}, fmt.Errorf("the labels %s and %s are not numbers", wire.LabelJobID, wire.LabelAttempt)
	}
	ref := metav1.GetControllerOf(pod)
	prefix := fmt.Sprintf("job-%d-%d-", id, attempt)
	if ref == nil || ref.Kind != "Job" || ref.APIVersion != batchv1.SchemeGroupVersion.String() ||
		!strings.HasPrefix(ref.Name, prefix) {
		return Place{}, fmt.Errorf("the pod is not controlled by a Job of attempt %d of job %d", attempt, id)
	}
	offset := 0
	if text, ok := pod.Annotations[wire.AnnotationNodeOffset]; ok {
		n, err := count(text)
		if err != nil {
			return Place{}, fmt.Errorf("annotation %s: %w", wire.AnnotationNodeOffset, err)
		}
		offset = n
	}
	n, err := count(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return Place{}, fmt.Errorf("annotation %s: %w", batchv1.JobCompletionIndexAnnotation, err)
	}
	index := offset + n
	if list, ok := pod.Annotations[wire.AnnotationNodes]; ok {
		if index, ok = wire.NodeAt(list, n); !ok {
			return Place{}, fmt.Errorf("annotation %s: no node at %d", wire.AnnotationNodes, n)
		}
	}
	return Place{JobID: id, Attempt: int32(attempt), Index: index}, nil
}

// count parses a number that is not negative.
func count(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf("%q is not a count", text)
	}
	return int(n), nil
}
