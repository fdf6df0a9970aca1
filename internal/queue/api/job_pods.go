package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/translate/status"
)

// Limits of a list of a job's pods.
const (
	maxPods           = 20 // in the list
	maxPodsWithEvents = 5  // for which events are read from the API server
	maxPodEvents      = 10 // of one pod
)

// pods serves GET jobs/ID/pods: the state of a job's pods and why they do not
// start, for its owner and for operators.
func (a *API) pods(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	ref, ok := query.ParseRef(r.PathValue("id"))
	if !ok {
		response.NotFound(w, r, refusal.InvalidJobID)
		return
	}
	b, ok := a.Operations.Cluster.Job(a.resolver().JobID(r.Context(), ref))
	switch {
	case !ok:
		response.NotFound(w, r, refusal.InvalidJobID)
		return
	case a.Operations.Permit(c, b, authz.Job, authz.Pods) != nil:
		response.Forbidden(w, r, refusal.AccessDenied)
		return
	}
	pods := a.podsOf(b)
	slices.SortFunc(pods, func(x, y *corev1.Pod) int {
		return cmp.Or(phaseOrder(x)-phaseOrder(y), cmp.Compare(x.Name, y.Name))
	})
	out := &status.PodList{
		Kind:       "PodList",
		APIVersion: apiVersion,
		Time:       a.Now().Unix(),
		Count:      len(pods),
		Items:      []status.Pod{},
	}
	withUsage := r.URL.Query().Get("usage") == "true"
	for i, p := range pods[:min(len(pods), maxPods)] {
		row := podRow(p)
		if i < maxPodsWithEvents {
			row.Events = a.podEvents(r.Context(), p)
		}
		if withUsage {
			withUsage = a.addUsage(r.Context(), p, &row)
		}
		out.Items = append(out.Items, row)
	}
	response.JSON(w, r, out)
}

// podsOf returns the pods of the job: its own, those of another job in which it runs, or
// those that it represents.
func (a *API) podsOf(b *v1alpha1.BatchJob) []*corev1.Pod {
	cluster := a.Operations.Cluster
	if work := b.Spec.Workload; work != nil {
		if work.Group != "" {
			return cluster.WorkloadPods(work.Group)
		}
		var pods []*corev1.Pod
		for _, p := range work.Pods {
			pods = append(pods, cluster.WorkloadPods("pod "+string(p.UID))...)
		}
		return pods
	}
	id := b.Spec.JobID
	if of := b.Status.Pods; of != nil {
		id = of.JobID
	}
	return slices.DeleteFunc(cluster.JobPods(id), func(p *corev1.Pod) bool { return p.Namespace != b.Namespace })
}

// phaseOrder returns the place of a pod in the list: those that do not start come
// first.
func phaseOrder(p *corev1.Pod) int {
	switch p.Status.Phase {
	case corev1.PodFailed:
		return 0
	case corev1.PodPending:
		return 1
	}
	return 2
}

// podRow returns what the Pod object shows. The reason is the pod's, else that of
// its scheduling, else that of a container.
func podRow(p *corev1.Pod) status.Pod {
	row := status.Pod{
		Name: p.Name, Node: p.Spec.NodeName, Phase: string(p.Status.Phase),
		Reason: p.Status.Reason, Message: p.Status.Message,
	}
	if row.Phase == "" {
		row.Phase = string(corev1.PodPending)
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			row.Ready = c.Status == corev1.ConditionTrue
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && row.Reason == "":
			row.Reason, row.Message = c.Reason, c.Message
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		row.Restarts += c.RestartCount
		if waiting := c.State.Waiting; waiting != nil && row.Message == "" && !isOrdinaryWait(waiting.Reason) {
			row.Reason, row.Message = waiting.Reason, waiting.Message
		}
		if ended := c.State.Terminated; ended != nil && ended.ExitCode != 0 && row.Reason == "" {
			row.Reason, row.Message = ended.Reason, ended.Message
		}
	}
	return row
}

// isOrdinaryWait reports whether every container waits for that reason at first.
func isOrdinaryWait(reason string) bool {
	return reason == "PodInitializing" || reason == "ContainerCreating"
}

// podEvents returns the newest events about a pod, or none if they cannot be read.
func (a *API) podEvents(ctx context.Context, p *corev1.Pod) []status.PodEvent {
	events, err := a.Operations.Cluster.PodEvents(ctx, p)
	if err != nil {
		return nil
	}
	var out []status.PodEvent
	for i := max(0, len(events)-maxPodEvents); i < len(events); i++ {
		out = append(out, podEvent(&events[i]))
	}
	return out
}

func podEvent(e *corev1.Event) status.PodEvent {
	out := status.PodEvent{
		Time: control.LastSeen(e), Type: e.Type, Reason: e.Reason, Message: e.Message, Count: e.Count,
	}
	if e.Series != nil {
		out.Count = e.Series.Count
	}
	return out
}

// podMetrics is the kind of object that the metrics API returns.
var podMetrics = schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}

// addUsage adds to the row what the pod uses according to the metrics API. It returns
// false if there is no such API, so that no request is made for the other pods.
func (a *API) addUsage(ctx context.Context, p *corev1.Pod, row *status.Pod) bool {
	m := &unstructured.Unstructured{}
	m.SetGroupVersionKind(podMetrics)
	if err := a.Operations.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(p), m); err != nil {
		return client.IgnoreNotFound(err) == nil // this pod has not been measured yet
	}
	containers, _, err := unstructured.NestedSlice(m.Object, "containers")
	if err != nil {
		return false
	}
	row.Measured = a.Now().Unix()
	if at, _, err := unstructured.NestedString(m.Object, "timestamp"); err == nil {
		var t metav1.Time
		if t.UnmarshalQueryParameter(at) == nil && !t.IsZero() {
			row.Measured = t.Unix()
		}
	}
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if !ok {
			continue
		}
		row.CPU += usageOf(container, corev1.ResourceCPU, resource.Milli)
		row.Memory += usageOf(container, corev1.ResourceMemory, 0)
	}
	return true
}

// usageOf returns how much a container uses of a resource, in units of 10 to the
// power of scale, or 0 if it has not been measured.
func usageOf(container map[string]any, name corev1.ResourceName, scale resource.Scale) int64 {
	text, _, err := unstructured.NestedString(container, "usage", string(name))
	if err != nil {
		return 0
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0
	}
	return q.ScaledValue(scale)
}
