package admission_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/admission"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

// running adds anna's job 101, which is allocated n1, n2 and n3.
func (h *harness) running(t *testing.T) *v1alpha1.BatchJob {
	b := h.submit(t, anna, submission(nil))
	b.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StateConfiguring, Attempt: 2, Allocation: &v1alpha1.Allocation{
		Nodes: []v1alpha1.NodeAllocation{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}},
	}}
	fake.Feed(h.Cluster, b)
	return b
}

// podOf returns a pod of job 101 as the Job controller creates it, that of the node n3.
func podOf(change func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "job-101-2-n1-0-1-",
		Namespace:    "user-anna",
		Labels:       map[string]string{"berth.hpc/job-id": "101", "berth.hpc/attempt": "2"},
		Annotations: map[string]string{
			"berth.hpc/node-offset":                    "1",
			"batch.kubernetes.io/job-completion-index": "1",
		},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "batch/v1", Kind: "Job", Name: "job-101-2-n1-0", UID: "j", Controller: &yes},
		},
	}}
	p.Spec.ServiceAccountName = v1alpha1.ServiceAccountName
	p.Spec.Containers = []corev1.Container{
		{Name: "other"}, {Name: "job", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func (h *harness) pod(t *testing.T, by authv1.UserInfo, p *corev1.Pod) (*corev1.Pod, *metav1.Status) {
	t.Helper()
	r := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		UserInfo:  by,
		Namespace: p.Namespace,
		Object:    raw(t, p),
	}
	a := h.post(t, "/mutate/pods", r)
	if !a.Allowed {
		return nil, a.Result
	}
	out, data := &corev1.Pod{}, r.Object.Raw
	if a.Patch != nil {
		data = apply(t, data, a.Patch)
	}
	if err := json.Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out, nil
}

var controller = who(jobController)

func TestPodGetsItsNodesName(t *testing.T) {
	h := newHarness(t)
	h.running(t)
	for name, env := range map[string][]corev1.EnvVar{
		"none": nil, "others": {{Name: "A", Value: "b"}}, "forged": {{Name: "BERTH_NODE_NAME", Value: "n9"}},
	} {
		p, refused := h.pod(t, controller, podOf(func(p *corev1.Pod) { p.Spec.Containers[1].Env = env }))
		if refused != nil {
			t.Fatal(refused.Message)
		}
		got := ""
		for _, e := range p.Spec.Containers[1].Env {
			if e.Name == "BERTH_NODE_NAME" {
				got += e.Value
			}
		}
		if got != "n3" || p.Spec.HostnameOverride == nil || *p.Spec.HostnameOverride != "n3" ||
			len(p.Spec.Containers[0].Env) > 0 {
			t.Errorf("%s: %q, %+v", name, got, p.Spec)
		}
	}
}

func TestForgedPods(t *testing.T) {
	h := newHarness(t)
	h.running(t)
	none := func(*corev1.Pod) {}
	for name, c := range map[string]struct {
		by     authv1.UserInfo
		change func(*corev1.Pod)
	}{
		"by a user":            {anna, none},
		"from within a job":    {inAJob, none},
		"by an operator":       {opal, none},
		"by an administrator":  {root, none},
		"by another account":   {who("system:serviceaccount:user-anna:job-controller"), none},
		"without label":        {anna, func(p *corev1.Pod) { p.Labels = nil }},
		"controller, no label": {controller, func(p *corev1.Pod) { p.Labels = nil }},
		"another namespace":    {controller, func(p *corev1.Pod) { p.Namespace = "user-ben" }},
		"no user's namespace":  {controller, func(p *corev1.Pod) { p.Namespace = "default" }},
		"no such job":          {controller, func(p *corev1.Pod) { p.Labels["berth.hpc/job-id"] = "999" }},
		"no number":            {controller, func(p *corev1.Pod) { p.Labels["berth.hpc/job-id"] = "x" }},
		"an old attempt": {controller, func(p *corev1.Pod) {
			p.Labels["berth.hpc/attempt"], p.OwnerReferences[0].Name = "1", "job-101-1-n1-0"
		}},
		"no owner":        {controller, func(p *corev1.Pod) { p.OwnerReferences = nil }},
		"another's owner": {controller, func(p *corev1.Pod) { p.OwnerReferences[0].Name = "job-10-2-n1-0" }},
		"no Job":          {controller, func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" }},
		"index too high": {controller,
			func(p *corev1.Pod) { p.Annotations["batch.kubernetes.io/job-completion-index"] = "2" }},
		"no index":        {controller, func(p *corev1.Pod) { p.Annotations = nil }},
		"negative offset": {controller, func(p *corev1.Pod) { p.Annotations["berth.hpc/node-offset"] = "-1" }},
		"another account's rights": {controller, func(p *corev1.Pod) {
			p.Spec.ServiceAccountName = "default"
		}},
	} {
		if _, refused := h.pod(t, c.by, podOf(c.change)); refused == nil {
			t.Errorf("%s: admitted", name)
		}
	}
}

func TestOtherPodsAreNotOurs(t *testing.T) {
	h := newHarness(t)
	plain := func(ns string) *corev1.Pod {
		return podOf(func(p *corev1.Pod) { p.Labels, p.Namespace = nil, ns })
	}
	if p, refused := h.pod(t, who("somebody"), plain("default")); refused != nil || p.Spec.HostnameOverride != nil {
		t.Errorf("%v", refused)
	}
	if _, refused := h.pod(t, root, plain("user-anna")); refused != nil {
		t.Errorf("an administrator's own pod: %v", refused)
	}
}

// TestPodOfAnAttemptNotSeenYet: a pod may be created before the watch delivers its
// attempt, which the API server has.
func TestPodOfAnAttemptNotSeenYet(t *testing.T) {
	var newest *v1alpha1.BatchJob
	reads := 0
	h := newHarness(t, func(c *admission.Config) {
		c.Read = func(context.Context, string, string) (*v1alpha1.BatchJob, error) { reads++; return newest, nil }
	})
	b := h.submit(t, anna, submission(nil))
	fake.Feed(h.Cluster, b) // pending in the store
	newest = b.DeepCopy()
	newest.Status = v1alpha1.BatchJobStatus{
		Attempt:    2,
		Allocation: &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}}},
	}
	if p, refused := h.pod(t, controller, podOf(nil)); refused != nil || *p.Spec.HostnameOverride != "n3" ||
		reads != 1 {
		t.Errorf("%v, %d reads", refused, reads)
	}
	newest.Status.Attempt = 3
	if _, refused := h.pod(t, controller, podOf(nil)); refused == nil || refused.Code != 409 ||
		!strings.Contains(refused.Message, "ended") {
		t.Errorf("%v", refused)
	}
}

func BenchmarkPod(b *testing.B) {
	h := newHarness(b)
	job := h.submit(b, anna, submission(nil))
	job.Status = v1alpha1.BatchJobStatus{
		Attempt:    2,
		Allocation: &v1alpha1.Allocation{Nodes: make([]v1alpha1.NodeAllocation, 3)},
	}
	fake.Feed(h.Cluster, job)
	r := &admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		UserInfo:  controller,
		Namespace: "user-anna",
		Object:    raw(b, podOf(nil)),
	}
	for b.Loop() {
		if a := h.post(b, "/mutate/pods", r); !a.Allowed {
			b.Fatal(a.Result)
		}
	}
}

// TestPodsForOurSchedulerTolerateItsNodes: a pod that names our scheduler tolerates the
// taint of its nodes; other pods are not changed.
func TestPodsForOurSchedulerTolerateItsNodes(t *testing.T) {
	h := newHarness(t)
	for scheduler, want := range map[string]int{"berth-scheduler": 2, "default-scheduler": 1} {
		p, status := h.pod(t, anna, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p"},
			Spec: corev1.PodSpec{
				SchedulerName: scheduler,
				Tolerations:   []corev1.Toleration{{Key: "x", Operator: corev1.TolerationOpExists}},
			},
		})
		if status != nil || len(p.Spec.Tolerations) != want {
			t.Errorf("%s: %+v %v", scheduler, p, status)
		}
	}
	h.running(t)
	p, status := h.pod(t, controller, podOf(func(p *corev1.Pod) { p.Spec.SchedulerName = "berth-scheduler" }))
	if status != nil || len(p.Spec.Tolerations) != 1 || p.Spec.Tolerations[0].Key != "berth.hpc/managed" ||
		p.Spec.HostnameOverride == nil {
		t.Errorf("a job's pod: %+v %v", p, status)
	}
}

// TestOnlyTheSchedulerMakesJobsOfPods: only the scheduler creates jobs that stand for
// pods, in any namespace.
func TestOnlyTheSchedulerMakesJobsOfPods(t *testing.T) {
	h := newHarness(t)
	forPods := func(b *v1alpha1.BatchJob) {
		b.Spec.Workload = &v1alpha1.Workload{
			Kind: "Pod",
			Name: "p",
			Pods: []v1alpha1.WorkloadPod{{Name: "p", UID: "u"}},
		}
	}
	if b := h.submit(t, anna, submission(forPods)); b.Spec.Workload != nil || b.Spec.User != "anna" {
		t.Errorf("a user's job stands for pods: %+v", b.Spec.Workload)
	}
	at := metav1.Now().Rfc3339Copy()
	b, status := h.create(t, who("system:berth-scheduler"), submission(func(b *v1alpha1.BatchJob) {
		forPods(b)
		b.Namespace, b.Spec.User, b.Spec.SubmitTime = "ml", "k8s_ml", &metav1.MicroTime{Time: at.Time}
		b.Finalizers = []string{"berth.hpc/job"}
	}), false)
	if status != nil || b.Spec.JobID == 0 || b.Spec.Workload == nil || b.Spec.User != "k8s_ml" {
		t.Errorf("%+v %v", b, status)
	}
}
