package kube_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/kube"
)

// TestReview checks invariants of the objects of every golden case.
func TestReview(t *testing.T) {
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			in := base()
			change(&in)
			group, set, err := kube.Objects(in)
			if err != nil {
				t.Fatal(err)
			}
			if int(group.Spec.MinMember) != len(in.Job.Status.Allocation.Nodes) {
				t.Errorf("minMember %d of %d nodes", group.Spec.MinMember, len(in.Job.Status.Allocation.Nodes))
			}
			checkOwnership(t, in, set)
			checkPolicies(t, set)
			completions := int32(0)
			for i := range set.Spec.ReplicatedJobs {
				r := &set.Spec.ReplicatedJobs[i]
				completions += *r.Template.Spec.Completions
				checkIndexedJob(t, i, &r.Template.Spec, in.Job.Spec.Job.Batch.NoKill)
				reviewPod(t, in, &r.Template.Spec.Template)
			}
			if int(completions) != len(in.Job.Status.Allocation.Nodes) {
				t.Errorf("%d pods for %d nodes", completions, len(in.Job.Status.Allocation.Nodes))
			}
		})
	}
}

// checkOwnership checks that the objects are deleted with the job, and their labels.
func checkOwnership(t *testing.T, in kube.Input, set *jobset.JobSet) {
	if len(set.OwnerReferences) != 1 || set.OwnerReferences[0].UID == "" || !*set.OwnerReferences[0].Controller {
		t.Errorf("owned by %+v", set.OwnerReferences)
	}
	want := in.Job.Name
	if o := in.Job.Spec.Origin; o != nil {
		want = o.Name
	}
	if set.OwnerReferences[0].Name != want {
		t.Errorf("owned by %s, not %s", set.OwnerReferences[0].Name, want)
	}
	if errs := validation.IsDNS1123Label(set.Name + "-n0-0-00000"); errs != nil {
		t.Errorf("names of pods: %v", errs)
	}
	for k, v := range set.Labels {
		if errs := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)...); errs != nil {
			t.Errorf("label %s=%s: %v", k, v, errs)
		}
	}
}

// checkPolicies checks that the job ends with its batch host, and that nothing is
// retried, as the queue requeues jobs.
func checkPolicies(t *testing.T, set *jobset.JobSet) {
	s := set.Spec
	targets := s.SuccessPolicy.TargetReplicatedJobs
	if s.SuccessPolicy.Operator != jobset.OperatorAll || len(targets) != 1 || targets[0] != s.ReplicatedJobs[0].Name {
		t.Errorf("success policy %+v", s.SuccessPolicy)
	}
	if s.FailurePolicy == nil || s.FailurePolicy.MaxRestarts != 0 || *s.Network.EnableDNSHostnames {
		t.Errorf("%+v %+v", s.FailurePolicy, s.Network)
	}
}

// checkIndexedJob checks that nothing is retried and that a failed pod ends the job,
// except with --no-kill, which ignores failures of pods other than the batch host.
func checkIndexedJob(t *testing.T, i int, s *batchv1.JobSpec, noKill bool) {
	if *s.CompletionMode != batchv1.IndexedCompletion || *s.Completions != *s.Parallelism ||
		*s.PodReplacementPolicy != batchv1.Failed {
		t.Errorf("job %d: %+v", i, s)
	}
	one := s.BackoffLimit != nil && *s.BackoffLimit == 0 && s.BackoffLimitPerIndex == nil
	alone := s.BackoffLimit == nil && *s.BackoffLimitPerIndex == 0
	ignored := s.PodFailurePolicy != nil && len(s.PodFailurePolicy.Rules) == 2
	if noKill && i == 0 && !alone || noKill && i > 0 && !ignored || !noKill && (!one || ignored) {
		t.Errorf(
			"job %d: back-off limits %v %v, failures %+v",
			i,
			s.BackoffLimit,
			s.BackoffLimitPerIndex,
			s.PodFailurePolicy,
		)
	}
	if first := s.SuccessPolicy != nil; first != (i == 0) {
		t.Errorf("job %d has a success policy: %v", i, first)
	}
}

func reviewPod(t *testing.T, in kube.Input, pod *corev1.PodTemplateSpec) {
	s := &pod.Spec
	if s.RestartPolicy != corev1.RestartPolicyNever || s.SchedulerName != wire.SchedulerName ||
		s.HostNetwork || s.HostPID || s.HostIPC || *s.EnableServiceLinks {
		t.Errorf("pod %+v", s)
	}
	if s.NodeName != "" || s.Priority != nil || s.PriorityClassName != "" {
		t.Errorf("the pod chooses node or priority: %q %v %q", s.NodeName, s.Priority, s.PriorityClassName)
	}
	sc := s.SecurityContext
	if *sc.RunAsUser != in.User.Spec.UID || sc.SeccompProfile == nil || in.User.Spec.UID != 0 && !*sc.RunAsNonRoot {
		t.Errorf("security context %+v", sc)
	}
	for _, c := range append(s.InitContainers, s.Containers...) {
		reviewContainer(t, in, &c)
	}
}

func reviewContainer(t *testing.T, in kube.Input, c *corev1.Container) {
	sharers := in.Job.Status.Allocation.Nodes[0].Sharers
	if sharers <= 1 && !equality.Semantic.DeepEqual(c.Resources.Requests, c.Resources.Limits) {
		t.Errorf("%s: requests %v, limits %v", c.Name, c.Resources.Requests, c.Resources.Limits)
	}
	sc := c.SecurityContext
	if sc.Privileged != nil && *sc.Privileged || *sc.AllowPrivilegeEscalation || sc.RunAsUser != nil ||
		sc.Capabilities == nil {
		t.Errorf("%s: %+v", c.Name, sc)
	}
	if len(sc.Capabilities.Add) == 0 && (len(sc.Capabilities.Drop) != 1 || sc.Capabilities.Drop[0] != "ALL") {
		t.Errorf("%s: capabilities %+v", c.Name, sc.Capabilities)
	}
}

// everyNodeOnce checks that each node has exactly one pod, of its shape, by the annotations that
// map pods to nodes.
func everyNodeOnce(t *testing.T, set *jobset.JobSet, nodes []v1alpha1.NodeAllocation) {
	t.Helper()
	seen := make([]bool, len(nodes))
	for _, r := range set.Spec.ReplicatedJobs {
		template := r.Template.Spec.Template
		cpu := template.Spec.Containers[0].Resources.Requests.Cpu().Value()
		for i := range *r.Template.Spec.Completions {
			index, ok := wire.NodeAt(template.Annotations[wire.AnnotationNodes], int(i))
			if offset, err := strconv.Atoi(template.Annotations[wire.AnnotationNodeOffset]); err == nil && !ok {
				index, ok = offset+int(i), true
			}
			if !ok || index >= len(nodes) || seen[index] {
				t.Fatalf("pod %d of %s: node %d, %t", i, r.Name, index, ok)
			}
			seen[index] = true
			if int64(nodes[index].CPUs) != cpu {
				t.Fatalf("node %d has %d CPUs, its pod %d", index, nodes[index].CPUs, cpu)
			}
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		t.Errorf("node %d has no pod", i)
	}
}

// maxBytes is less than etcd's limit of 1.5 MiB for a request, because a stored object also has
// managedFields and a status.
const maxBytes = 1 << 20

// TestSizes checks that the JobSet of a job is smaller than the API server's limit: its size does
// not grow with the number of equal nodes, and the number of different shapes is limited.
func TestSizes(t *testing.T) {
	for name, tt := range map[string]struct {
		nodes  int
		shapes int
		fits   bool
	}{
		"10,000 equal nodes": {10000, 1, true}, "10,000 of two shapes in turn": {10000, 2, true},
		"1,000 of seven":        {1000, 7, true},
		"the maximum of shapes": {kube.MaxRuns, kube.MaxRuns, true},
		"one shape more":        {kube.MaxRuns + 1, kube.MaxRuns + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := base()
			cases["volumes"](&in)
			in.APICA = make([]byte, 2000) // as a certificate is
			list := make([]v1alpha1.NodeAllocation, tt.nodes)
			for i := range list {
				list[i] = node(fmt.Sprintf("node-%05d", i), int32(4+i%tt.shapes), 1024)
			}
			in.Job.Status.Allocation = nodes(list...)
			_, set, err := kube.Objects(in)
			if (err == nil) != tt.fits {
				t.Fatalf("%v, fits: %v", err, tt.fits)
			}
			if err != nil {
				return
			}
			data, err := json.Marshal(set)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d replicated jobs, %d bytes", len(set.Spec.ReplicatedJobs), len(data))
			if len(data) > maxBytes {
				t.Errorf("the JobSet has %d bytes", len(data))
			}
			if len(set.Spec.ReplicatedJobs) != tt.shapes {
				t.Errorf("%d replicated jobs for %d shapes", len(set.Spec.ReplicatedJobs), tt.shapes)
			}
			everyNodeOnce(t, set, list)
		})
	}
}
