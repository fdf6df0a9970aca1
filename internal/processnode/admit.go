package processnode

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/berth-hpc/berth/internal/processnode/identity"
)

// refusal is the reason and message with which a node rejects a pod that was bound to it.
type refusal struct{ reason, message string }

// admit checks a pod as a kubelet does on arrival. It is called with mu held, so that
// the sum of requests and the decision are consistent.
func (m *manager) admit(p *pod) *refusal {
	if r := m.checkSupported(p); r != nil {
		return r
	}
	used := corev1.ResourceList{}
	pods := int64(0)
	for _, other := range m.pods {
		if other.node != p.node || other.refusal != nil || other.over.Load() {
			continue
		}
		pods++
		if other != p {
			add(used, requests(other.spec))
		}
	}
	capacity := p.node.Capacity()
	if most := capacity[corev1.ResourcePods]; pods > most.Value() {
		return &refusal{
			"OutOfpods",
			fmt.Sprintf("Node didn't have enough resource: pods, requested: 1, used: %d, capacity: %d", pods-1,
				most.Value()),
		}
	}
	for name, want := range requests(p.spec) {
		have, known := capacity[name]
		if want.IsZero() || !known && isLeftToOthers(name) {
			continue
		}
		sum := used[name].DeepCopy()
		sum.Add(want)
		if sum.Cmp(have) > 0 {
			taken := used[name]
			return &refusal{"OutOf" + string(name),
				fmt.Sprintf("Node didn't have enough resource: %s, requested: %s, used: %s, capacity: %s",
					name, want.String(), taken.String(), have.String())}
		}
	}
	return nil
}

// isLeftToOthers reports whether a kubelet that does not have the resource admits pods that
// request it: storage, and extended resources, which a driver of dynamic resource allocation may
// have or the whole cluster.
func isLeftToOthers(name corev1.ResourceName) bool {
	return name == corev1.ResourceEphemeralStorage || name == corev1.ResourceStorage ||
		strings.Contains(string(name), "/")
}

// checkSupported returns a refusal for pods that process nodes cannot run at all, or nil.
func (m *manager) checkSupported(p *pod) *refusal {
	for _, c := range p.allContainers() {
		if c.Image != HostImage {
			return &refusal{"ErrImagePull", fmt.Sprintf(
				"process nodes support only the image %s, the machine's root file system; container %s requests %s", HostImage,
				c.Name, c.Image)}
		}
		if c.RestartPolicy != nil {
			return &refusal{
				"CreateContainerConfigError",
				fmt.Sprintf("process nodes do not support restart policies of single containers (container %s)",
					c.Name),
			}
		}
		if _, err := identity.Of(p.spec, c, m.iso.Root); err != nil {
			return &refusal{"CreateContainerConfigError", err.Error()}
		}
	}
	return nil
}

// requests returns a pod's requests as the scheduler computes them: the sum of its
// containers, or its largest init container if that is more.
func requests(pod *corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range pod.Spec.Containers {
		add(sum, pod.Spec.Containers[i].Resources.Requests)
	}
	for i := range pod.Spec.InitContainers {
		for name, q := range pod.Spec.InitContainers[i].Resources.Requests {
			if have := sum[name]; q.Cmp(have) > 0 {
				sum[name] = q.DeepCopy()
			}
		}
	}
	add(sum, pod.Spec.Overhead)
	return sum
}

func add(sum, more corev1.ResourceList) {
	for name, q := range more {
		have, ok := sum[name]
		if !ok {
			have = resource.Quantity{Format: q.Format}
		}
		have.Add(q)
		sum[name] = have
	}
}
