package member

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/internal/wire"
)

// pod returns the pod of the third node in a replicated job of job 7, in its second
// attempt, that begins with the job's node 10.
func pod(change func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{wire.LabelJobID: "7", wire.LabelAttempt: "2"},
		Annotations: map[string]string{
			wire.AnnotationNodeOffset: "10", batchv1.JobCompletionIndexAnnotation: "2",
		},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job-7-2-a-0", Controller: &yes}},
	}}
	if change != nil {
		change(p)
	}
	return p
}

func TestPlaceOfAPod(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		index  int
	}{
		"with an offset":    {nil, 12},
		"without an offset": {func(p *corev1.Pod) { delete(p.Annotations, wire.AnnotationNodeOffset) }, 2},
		"with a list of nodes": {func(p *corev1.Pod) {
			p.Annotations[wire.AnnotationNodes] = "4,9-10"
		}, 10},
	} {
		got, err := Of(pod(tt.change))
		if want := (Place{JobID: 7, Attempt: 2, Index: tt.index}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// TestPodsThatAreNotNodesOfAJob: a pod whose labels, annotations or owner do not agree has no
// place, so that a user cannot pose as a node of another job.
func TestPodsThatAreNotNodesOfAJob(t *testing.T) {
	owner := func(change func(*metav1.OwnerReference)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(&p.OwnerReferences[0]) }
	}
	label := func(name, value string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels[name] = value } }
	annotation := func(name, value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Annotations[name] = value }
	}
	no := false
	for name, change := range map[string]func(*corev1.Pod){
		"no labels":               func(p *corev1.Pod) { p.Labels = nil },
		"a job id of words":       label(wire.LabelJobID, "seven"),
		"job 0":                   label(wire.LabelJobID, "0"),
		"a negative job":          label(wire.LabelJobID, "-7"),
		"no attempt":              label(wire.LabelAttempt, ""),
		"attempt 0":               label(wire.LabelAttempt, "0"),
		"a huge attempt":          label(wire.LabelAttempt, "4294967298"),
		"no owner":                func(p *corev1.Pod) { p.OwnerReferences = nil },
		"an owner, no controller": owner(func(r *metav1.OwnerReference) { r.Controller = &no }),
		"a ReplicaSet":            owner(func(r *metav1.OwnerReference) { r.Kind = "ReplicaSet" }),
		"a Job of another group":  owner(func(r *metav1.OwnerReference) { r.APIVersion = "batch.example.com/v1" }),
		"a Job of another job":    owner(func(r *metav1.OwnerReference) { r.Name = "job-8-2-a-0" }),
		"a Job of job 72":         owner(func(r *metav1.OwnerReference) { r.Name = "job-72-2-a-0" }),
		"a Job of another try":    owner(func(r *metav1.OwnerReference) { r.Name = "job-7-21-a-0" }),
		"no completion index":     func(p *corev1.Pod) { delete(p.Annotations, batchv1.JobCompletionIndexAnnotation) },
		"a negative index":        annotation(batchv1.JobCompletionIndexAnnotation, "-1"),
		"a huge index":            annotation(batchv1.JobCompletionIndexAnnotation, "4294967296"),
		"a negative offset":       annotation(wire.AnnotationNodeOffset, "-10"),
		"an empty offset":         annotation(wire.AnnotationNodeOffset, ""),
		"a short list of nodes":   annotation(wire.AnnotationNodes, "4,9"),
		"a list of words":         annotation(wire.AnnotationNodes, "four"),
	} {
		if got, err := Of(pod(change)); err == nil || got != (Place{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
