package kube_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/kube"
)

// TestTemplateHash checks that the hash is equal for jobs whose pods are equal, and
// different for others.
func TestTemplateHash(t *testing.T) {
	hashOf := func(change func(*kube.Input)) string {
		t.Helper()
		in := base()
		in.Partition.Spec.Agent = v1alpha1.AgentSource{Image: "berth/agent:1"}
		in.Partition.Spec.Template = runtime.RawExtension{
			Raw: []byte(`{"spec":{"containers":[{"name":"job","image":"site/a:1"}]}}`),
		}
		in.Partition.Spec.AllowImages = []string{"*"}
		in.Job.Status.Allocation = nodes(node("n1", 2, 512))
		change(&in)
		_, set, err := kube.Objects(in)
		if err != nil {
			t.Fatal(err)
		}
		return set.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations[wire.AnnotationPodTemplateHash]
	}
	want := hashOf(func(*kube.Input) {})
	if want == "" {
		t.Fatal("no hash")
	}
	for name, change := range map[string]func(*kube.Input){
		"number":  func(in *kube.Input) { in.Job.Spec.JobID = 77 },
		"attempt": func(in *kube.Input) { in.Job.Status.Attempt = 5 },
		"script":  func(in *kube.Input) { in.Job.Spec.Script = []byte("x") },
		"name":    func(in *kube.Input) { in.Job.Spec.Job.Name, in.Job.Name = "x", "y" },
		"time":    func(in *kube.Input) { in.Job.Status.TimeLimit = 9 },
	} {
		if got := hashOf(change); got != want {
			t.Errorf("%s changes the hash", name)
		}
	}
	for name, change := range map[string]func(*kube.Input){
		"cpus":   func(in *kube.Input) { in.Job.Status.Allocation.Nodes[0].CPUs = 3 },
		"memory": func(in *kube.Input) { in.Job.Status.Allocation.Nodes[0].Memory = 3 },
		"gpus": func(in *kube.Input) {
			in.Job.Status.Allocation = nodes(node("n1", 2, 512, v1alpha1.GRESAllocation{Name: "gpu", Count: 1}))
		},
		"uid":    func(in *kube.Input) { in.User.Spec.UID = 7 },
		"groups": func(in *kube.Input) { in.User.Spec.Groups = nil },
		"shell":  func(in *kube.Input) { in.User.Spec.Shell = "/bin/zsh" },
		"group":  func(in *kube.Input) { in.Job.Spec.Job.Batch.Group = &job.Group{Name: "x", GID: 9} },
		"template": func(in *kube.Input) {
			in.Partition.Spec.Template.Raw = []byte(`{"spec":{"containers":[{"name":"job","image":"site/a:2"}]}}`)
		},
		"agent":   func(in *kube.Input) { in.Partition.Spec.Agent.Image = "berth/agent:2" },
		"image":   func(in *kube.Input) { in.Job.Spec.Job.Batch.Container = map[string]string{"image": "b"} },
		"the API": func(in *kube.Input) { in.API = "https://elsewhere" },
		"KillWait": func(in *kube.Input) {
			n := int32(5)
			in.Cluster = &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{KillWait: &n}}
		},
	} {
		if got := hashOf(change); got == want {
			t.Errorf("%s does not change the hash", name)
		}
	}
	several := func(in *kube.Input) { in.Job.Status.Allocation = nodes(node("n1", 2, 512), node("n2", 2, 512)) }
	if got := hashOf(several); got != "" {
		t.Error("a job on several nodes has a hash")
	}
}
