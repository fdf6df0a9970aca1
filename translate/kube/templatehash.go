package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/internal/wire"
)

// addTemplateHash adds an annotation with the hash of the pod template of a job on one
// node, without the job's id. Pods with the same hash can be reused.
func addTemplateHash(pod *corev1.PodTemplateSpec) error {
	bare := pod.DeepCopy()
	for _, l := range []string{wire.LabelJobID, wire.LabelAttempt, podgroup.PodGroupLabel} {
		delete(bare.Labels, l)
	}
	for i := range bare.Spec.Containers {
		c := &bare.Spec.Containers[i]
		c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool {
			return v.Name == wire.EnvJobID || v.Name == wire.EnvAttempt
		})
	}
	text, err := json.Marshal(bare)
	if err != nil {
		return fmt.Errorf("cannot encode the pod template: %w", err)
	}
	sum := sha256.Sum256(text)
	pod.Annotations[wire.AnnotationPodTemplateHash] = hex.EncodeToString(sum[:8])
	return nil
}
