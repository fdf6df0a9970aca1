package plugin

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-hpc/berth/internal/wire"
)

// binder writes bindings.
func binder(h fwk.Handle) func(context.Context, *corev1.Binding) error {
	return func(ctx context.Context, b *corev1.Binding) error {
		return h.ClientSet().CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
	}
}

// Bind binds a pod that a job stands for, and has it say which job that is, in
// one write: the job's own object comes later. Kubernetes' own plugin binds the
// others, a job's own pods included, which say it from the beginning.
func (p *Plugin) Bind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	m, ours, err := p.memberOf(pod)
	if err != nil || !ours || labelled(pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	err = p.bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			Annotations: map[string]string{wire.AnnotationJob: strconv.FormatInt(m.jobID, 10)}},
		Target: corev1.ObjectReference{Kind: "Node", Name: node},
	})
	return fwk.AsStatus(err)
}
