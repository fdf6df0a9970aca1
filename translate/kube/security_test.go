package kube_test

import (
	"fmt"
	"path"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	security "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/kube"
)

// TestRestrictedPodSecurity evaluates the pods with the code by which the API server
// enforces the Pod Security Standards.
func TestRestrictedPodSecurity(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	template := `{"spec":{"volumes":[{"name":"home","persistentVolumeClaim":{"claimName":"home"}}],
		"containers":[{"name":"job","image":"site/mpi:1","volumeMounts":[{"name":"home","mountPath":"/home"}]}]}}`
	for name, agent := range map[string]v1alpha1.AgentSource{
		"image volume":   {Image: "berth/agent:1"},
		"init container": {Image: "berth/agent:1", InitContainer: true},
	} {
		in := base()
		in.Job.Status.Allocation = nodes(node("n1", 1, 100), node("n2", 2, 100))
		in.Partition.Spec.Agent = agent
		in.Partition.Spec.Template = runtime.RawExtension{Raw: []byte(template)}
		_, set, err := kube.Objects(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range set.Spec.ReplicatedJobs {
			pod := r.Template.Spec.Template
			level := security.LevelVersion{Level: security.LevelRestricted, Version: security.LatestVersion()}
			for _, result := range evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					t.Errorf("%s, %s: %s: %s", name, r.Name, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
		}
	}
}

func TestImageVolumes(t *testing.T) {
	for _, c := range []struct {
		kubelet, runtime string
		want             bool
	}{
		{"v1.36.3", "containerd://2.4.2", true},
		{"v1.35.0-gke.1", "containerd://2.1.0", true},
		{"v1.36.3", "containerd://1.7.27", false},
		{"v1.34.2", "containerd://2.1.4", false},
		{"v1.36.0", "cri-o://1.36.0", true},
		{"v1.36.0", "docker://28.0.1", false},
		{"", "", false},
	} {
		info := &corev1.NodeSystemInfo{KubeletVersion: c.kubelet, ContainerRuntimeVersion: c.runtime}
		if got := kube.ImageVolumes(info); got != c.want {
			t.Errorf("kubelet %q, %q: %v", c.kubelet, c.runtime, got)
		}
	}
}

// TestReadOnlyRoot checks that /tmp is writable, and that a mount of the partition there is
// kept.
func TestReadOnlyRoot(t *testing.T) {
	const volume = `,"volumeMounts":[{"name":"scratch","mountPath":"/tmp/"}]`
	for name, c := range map[string]struct {
		readOnly bool
		more     string
		want     string // volume at /tmp
	}{
		"writable root":            {false, "", ""},
		"read-only root":           {true, "", "berth-tmp"},
		"with a mount of the site": {true, volume, "scratch"},
	} {
		t.Run(name, func(t *testing.T) {
			template := fmt.Sprintf(
				`{"spec":{"volumes":[{"name":"scratch","emptyDir":{}}],"containers":[{"name":"job","image":"site/mpi:1",
				"securityContext":{"readOnlyRootFilesystem":%t}%s}]}}`,
				c.readOnly,
				c.more,
			)
			in := base()
			in.Job.Status.Allocation = nodes(node("n1", 1, 100))
			in.Partition.Spec.Template = runtime.RawExtension{Raw: []byte(template)}
			_, set, err := kube.Objects(in)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, m := range set.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].VolumeMounts {
				if path.Clean(m.MountPath) == "/tmp" {
					got += m.Name
				}
			}
			if got != c.want {
				t.Errorf("at /tmp is %q, want %q", got, c.want)
			}
		})
	}
}
