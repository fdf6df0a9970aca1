package plugin

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/berth-hpc/berth/internal/wire"
)

// binder returns a function that writes a binding.
func binder(h fwk.Handle) func(context.Context, *corev1.Binding) error {
	return func(ctx context.Context, b *corev1.Binding) error {
		return h.ClientSet().CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
	}
}

// Bind binds a pod of a workload and annotates it with its job in one write, because the
// job's object is created later. Kubernetes' own plugin binds other pods, including those
// of jobs, which have had the annotation since their creation.
func (p *Plugin) Bind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	m, ours, err := p.memberOf(pod)
	if err != nil || !ours || hasJobLabel(pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	err = p.bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			Annotations: map[string]string{wire.AnnotationJob: strconv.FormatInt(m.jobID, 10)}},
		Target: corev1.ObjectReference{Kind: "Node", Name: node},
	})
	return fwk.AsStatus(err)
}
