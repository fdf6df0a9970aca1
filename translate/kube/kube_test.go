package kube_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/translate/accounts"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/kube"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func base() kube.Input {
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{
		Name: "j-0123456789abcdefghij", Namespace: "user-alice", UID: "11111111-2222-3333-4444-555555555555",
	}}
	b.Spec.JobID, b.Spec.User = 42, "alice"
	b.Status.Attempt = 1
	p := &v1alpha1.Partition{ObjectMeta: metav1.ObjectMeta{Name: "main"}}
	p.Spec.Agent.HostPath = "/opt/berth/bin"
	return kube.Input{
		Job: b, Partition: p, API: "https://10.0.0.1:8443", APICA: []byte("pem"),
		User: &v1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}, Spec: v1alpha1.UserSpec{
			UID: 1000, GID: 100, Groups: []v1alpha1.Group{{Name: "users", GID: 100}, {Name: "lab", GID: 2000}}}},
	}
}

func nodes(list ...v1alpha1.NodeAllocation) *v1alpha1.Allocation {
	return &v1alpha1.Allocation{Nodes: list}
}

func node(name string, cpus int32, memory int64, gres ...v1alpha1.GRESAllocation) v1alpha1.NodeAllocation {
	return v1alpha1.NodeAllocation{Name: name, CPUs: cpus, Memory: memory, GRES: gres, Tasks: 1}
}

// cases are kinds of jobs; their objects are in testdata/kube.
var cases = map[string]func(*kube.Input){
	"one-task": func(in *kube.Input) { in.Job.Status.Allocation = nodes(node("n1", 1, 100)) },
	"three-nodes": func(in *kube.Input) {
		in.Job.Status.Allocation = nodes(node("n1", 2, 512), node("n2", 2, 512), node("n3", 2, 512))
	},
	"unequal-nodes": func(in *kube.Input) {
		in.Job.Status.Attempt = 3
		in.Job.Status.Allocation = nodes(node("n1", 3, 300), node("n2", 1, 100), node("n3", 1, 100))
	},
	"no-kill": func(in *kube.Input) {
		in.Job.Spec.Job.Batch.NoKill = true
		in.Job.Status.Allocation = nodes(node("n1", 3, 300), node("n2", 1, 100), node("n3", 1, 100))
	},
	"gpus": func(in *kube.Input) {
		in.Job.Status.Allocation = nodes(
			node("n1", 4, 4096, v1alpha1.GRESAllocation{Name: "gpu", Type: "a100", Count: 2}),
		)
	},
	"no-memory": func(in *kube.Input) { in.Job.Status.Allocation = nodes(node("n1", 1, 0)) },
	"root-user": func(in *kube.Input) {
		in.User.Spec.UID, in.User.Spec.GID, in.User.Spec.Groups = 0, 0, nil
		in.Job.Status.Allocation = nodes(node("n1", 1, 100))
	},
	"template": func(in *kube.Input) {
		killWait := int32(5)
		in.Cluster = &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{KillWait: &killWait}}
		in.Partition.Spec.Agent = v1alpha1.AgentSource{Image: "berth/agent:1"}
		in.Partition.Spec.Template = runtime.RawExtension{Raw: []byte(`{"metadata":{"annotations":{"site":"x"}},"spec":{
			"nodeSelector":{"pool":"hpc"},"tolerations":[{"key":"hpc","operator":"Exists"}],
			"volumes":[{"name":"home","hostPath":{"path":"/home"}}],
			"containers":[{"name":"job","image":"site/mpi:1","command":["ignored"],"securityContext":{"runAsUser":0,"capabilities":{"add":["IPC_LOCK"]}},
			"volumeMounts":[{"name":"home","mountPath":"/home"}]}]}}`)}
		in.Job.Status.Allocation = nodes(node("n1", 1, 100))
	},
}

func init() {
	cases["init-container"] = func(in *kube.Input) {
		cases["template"](in)
		in.Partition.Spec.Agent.InitContainer = true
	}
	cases["agent-of-the-release"] = func(in *kube.Input) {
		cases["template"](in)
		in.Partition.Spec.Agent, in.Agent = v1alpha1.AgentSource{}, v1alpha1.AgentSource{Image: "berth/agent:release"}
	}
	cases["container"] = func(in *kube.Input) {
		cases["template"](in)
		in.Partition.Spec.AllowImages = []string{"nvcr.io/*"}
		in.Job.Spec.Job.Batch.Container = map[string]string{
			"image": "nvcr.io/nvidia/pytorch:24.01", "mounts": "/home/alice/data:/data:ro", "workdir": "/data",
		}
	}
	// What an init container would write is known.
	cases["no-init-container"] = func(in *kube.Input) {
		cases["template"](in)
		in.Job.Spec.Job.Batch.SubmitHost, in.Job.Spec.Job.Batch.SubmitAddress = "login1", "10.1.2.3"
		in.Accounts = func(image string) (accounts.Files, bool) {
			return accounts.Files{Passwd: "root:x:0:0::/root:/bin/sh\n", Group: "root:x:0:\n"}, image == "site/mpi:1"
		}
	}
	// A task is owned by its array.
	cases["array-task"] = func(in *kube.Input) {
		in.Job.Spec.JobID = 45
		in.Job.Spec.Origin = &v1alpha1.Origin{
			Name:  "j-abcdefghij0123456789",
			UID:   "99999999-2222-3333-4444-555555555555",
			JobID: 43,
		}
		in.Job.Spec.Task = &v1alpha1.ArrayTask{Index: 7, Count: 10, Max: 9, Step: 1}
		in.Job.Status.Allocation = nodes(node("n4", 2, 512))
	}
	cases["het-component"] = func(in *kube.Input) {
		in.Job.Spec.JobID = 44
		in.Job.Spec.Origin = &v1alpha1.Origin{
			Name:  "j-abcdefghij0123456789",
			UID:   "99999999-2222-3333-4444-555555555555",
			JobID: 43,
		}
		in.Job.Spec.Job.Het = &job.Het{Offset: 1, Size: 2}
		gpu := v1alpha1.GRESAllocation{Name: "gpu", Count: 1}
		in.Job.Status.Allocation = nodes(node("n1", 8, 4096, gpu), node("n2", 8, 4096, gpu))
	}
	// The allocation has whole nodes.
	cases["exclusive"] = func(in *kube.Input) {
		in.Job.Spec.Job.Placement.Exclusive = "node"
		in.Job.Status.Allocation = nodes(node("n1", 64, 257024), node("n2", 64, 257024))
	}
	// Four jobs may share the CPUs: each requests its part.
	cases["shared"] = func(in *kube.Input) {
		n := node("n1", 4, 1024)
		n.Sharers = 4
		in.Job.Spec.Job.Placement.OverSubscribe = true
		in.Job.Status.Allocation = nodes(n)
	}
	// Priority and licenses do not affect the pods.
	cases["priority-and-licenses"] = func(in *kube.Input) {
		in.Job.Spec.Job.Priority, in.Job.Spec.Job.Nice, in.Job.Spec.Job.QOS = new(int64(500)), 10, "high"
		in.Job.Spec.Job.Licenses = []job.License{{Name: "fluent", Count: 4}}
		in.Job.Spec.Job.Placement.Constraint = "[rack1|rack2]&skylake"
		in.Job.Status.Allocation = nodes(node("n1", 1, 100))
	}
	cases["group"] = func(in *kube.Input) {
		in.Job.Spec.Job.Batch.Group = &job.Group{Name: "lab", GID: 2000}
		in.Job.Status.Allocation = nodes(node("n1", 1, 100))
	}
	cases["volumes"] = func(in *kube.Input) {
		in.Partition.Spec.Agent = v1alpha1.AgentSource{Image: "berth/agent:1"}
		in.Partition.Spec.Template = runtime.RawExtension{Raw: []byte(`{"spec":{
			"volumes":[{"name":"home","persistentVolumeClaim":{"claimName":"home"}},{"name":"scratch","nfs":{"server":"nas","path":"/scratch"}},
			{"name":"shm","emptyDir":{"medium":"Memory","sizeLimit":"8Gi"}},{"name":"tools","image":{"reference":"site/tools:1"}}],
			"containers":[{"name":"job","image":"site/base:1","imagePullPolicy":"IfNotPresent","volumeMounts":[{"name":"home","mountPath":"/home"},
			{"name":"scratch","mountPath":"/scratch"},{"name":"shm","mountPath":"/dev/shm"},{"name":"tools","mountPath":"/opt/tools","readOnly":true}]}]}}`)}
		in.Job.Status.Allocation = nodes(node("n1", 2, 512), node("n2", 2, 512))
	}
}

func TestGolden(t *testing.T) {
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			in := base()
			change(&in)
			group, set, err := kube.Objects(in)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			for _, o := range []any{group, set} {
				data, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				got = append(append(got, data...), "---\n"...)
			}
			file := filepath.Join("..", "testdata", "kube", name+".yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("objects differ from %s (go test ./translate/kube -update rewrites it):\n%s", file, got)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*kube.Input){
		"no nodes":     func(*kube.Input) {},
		"no agent":     func(in *kube.Input) { cases["one-task"](in); in.Partition.Spec.Agent = v1alpha1.AgentSource{} },
		"bad template": func(in *kube.Input) { cases["one-task"](in); in.Partition.Spec.Template.Raw = []byte("{") },
		"no image": func(in *kube.Input) {
			cases["template"](in)
			in.Job.Spec.Job.Batch.Container = map[string]string{"image": "evil"}
		},
		"no user": func(in *kube.Input) { in.User = nil },
	} {
		in := base()
		change(&in)
		if _, _, err := kube.Objects(in); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestOptionsDoNotAffectSecurity checks that image and ids come from the partition and the
// user, whatever the job requests.
func TestOptionsDoNotAffectSecurity(t *testing.T) {
	in := base()
	cases["template"](&in)
	in.Job.Spec.Job.Options = map[string]string{"container": "evil", "uid": "0"}
	in.Job.Spec.Job.Batch.Container = nil
	_, set, err := kube.Objects(in)
	if err != nil {
		t.Fatal(err)
	}
	spec := set.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	c := spec.Containers[0]
	if *spec.SecurityContext.RunAsUser != 1000 || c.SecurityContext.RunAsUser != nil || c.Image != "site/mpi:1" ||
		c.Command[0] != "/berth/bin/agent" {
		t.Errorf("%+v %+v", spec.SecurityContext, c)
	}
}
