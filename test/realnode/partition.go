package realnode

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// usePartition makes the local cluster's partition one for real nodes: jobs
// run in SystemImage, the agent comes from AgentImage, and homes are shared.
func (s *Site) usePartition(ctx context.Context, name string) error {
	directory := corev1.HostPathDirectory
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "job", Image: SystemImage,
			VolumeMounts: []corev1.VolumeMount{{Name: "home", MountPath: "/home"}},
		}},
		Volumes: []corev1.Volume{{Name: "home", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/home", Type: &directory},
		}}},
	}}
	patch, err := json.Marshal(object{"spec": object{
		"sharedPaths": []string{"/home"},
		"agent":       object{"hostPath": nil, "image": AgentImage},
		"template":    template,
	}})
	if err != nil {
		return err
	}
	return s.Client.CoreV1().RESTClient().Patch(types.MergePatchType).
		AbsPath("/apis", v1alpha1.GroupVersion.String(), "partitions", name).Body(patch).Do(ctx).Error()
}
