package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	quantities "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/translate/status"
)

// Bounds of what is told about the pods of a job.
const (
	podsTold   = 20 // pods
	podsAsked  = 5  // of them with their events
	eventsTold = 10 // of one pod
)

// pods answers GET jobs/ID/pods: how a job's pods are and why they do not
// start, for its owner and for operators.
func (a *API) pods(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	ref, ok := parseID(r.PathValue("id"))
	if !ok {
		refuse(w, r, http.StatusNotFound, metav1.StatusReasonNotFound, textInvalidID)
		return
	}
	cluster := a.Operations.Cluster
	b, ok := cluster.Job(a.oneJob(r.Context(), ref))
	switch {
	case !ok:
		refuse(w, r, http.StatusNotFound, metav1.StatusReasonNotFound, textInvalidID)
		return
	case a.Operations.refusal(c, b, authz.Job, authz.Pods) != nil:
		refuse(w, r, http.StatusForbidden, metav1.StatusReasonForbidden, string(errDenied))
		return
	}
	pods := a.podsOf(b)
	slices.SortFunc(pods, func(x, y *corev1.Pod) int {
		return cmp.Or(trouble(x)-trouble(y), cmp.Compare(x.Name, y.Name))
	})
	out := &status.PodList{Kind: "PodList", APIVersion: apiVersion(), Time: a.Now().Unix(), Count: len(pods), Items: []status.Pod{}}
	measuring := r.URL.Query().Get("usage") == "true"
	for i, p := range pods[:min(len(pods), podsTold)] {
		row := podRow(p)
		if i < podsAsked {
			row.Events = a.eventsOf(r.Context(), p)
		}
		if measuring {
			measuring = a.measure(r.Context(), p, &row)
		}
		out.Items = append(out.Items, row)
	}
	a.list(w, r, out)
}

// podsOf are the pods of the attempt of a job that is now: its own, those that
// another task of its array was in before, or those that it stands for.
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

// trouble orders pods: those that do not start come first.
func trouble(p *corev1.Pod) int {
	switch p.Status.Phase {
	case corev1.PodFailed:
		return 0
	case corev1.PodPending:
		return 1
	}
	return 2
}

// podRow is what the pod's own object tells.
func podRow(p *corev1.Pod) status.Pod {
	row := status.Pod{Name: p.Name, Node: p.Spec.NodeName, Phase: string(p.Status.Phase), Reason: p.Status.Reason, Message: p.Status.Message}
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
		if w := c.State.Waiting; w != nil && row.Message == "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			row.Reason, row.Message = w.Reason, w.Message
		}
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 && row.Reason == "" {
			row.Reason, row.Message = t.Reason, t.Message
		}
	}
	return row
}

// eventsOf are the newest events about a pod; none where they cannot be read.
func (a *API) eventsOf(ctx context.Context, p *corev1.Pod) []status.PodEvent {
	var list corev1.EventList
	err := a.Operations.Cluster.Client.List(ctx, &list, client.InNamespace(p.Namespace), &client.ListOptions{
		Raw: &metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(p.UID)}})
	if err != nil {
		return nil
	}
	var out []status.PodEvent
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.UID != p.UID {
			continue
		}
		out = append(out, status.PodEvent{Time: eventTime(e), Type: e.Type, Reason: e.Reason, Message: e.Message, Count: eventCount(e)})
	}
	slices.SortStableFunc(out, func(x, y status.PodEvent) int { return cmp.Compare(x.Time, y.Time) })
	return out[max(0, len(out)-eventsTold):]
}

// eventTime is when an event was seen last; its two formats have different
// members for that.
func eventTime(e *corev1.Event) int64 {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Unix()
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Unix()
	case !e.EventTime.IsZero():
		return e.EventTime.Unix()
	}
	return e.CreationTimestamp.Unix()
}

func eventCount(e *corev1.Event) int32 {
	if e.Series != nil {
		return e.Series.Count
	}
	return e.Count
}

// podMetrics is the kind that the metrics API answers with.
var podMetrics = schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}

// measure asks the metrics API what a pod uses; false: there is no such API,
// and it is no use to ask about the next one.
func (a *API) measure(ctx context.Context, p *corev1.Pod, row *status.Pod) bool {
	m := &unstructured.Unstructured{}
	m.SetGroupVersionKind(podMetrics)
	if err := a.Operations.Cluster.Client.Get(ctx, client.ObjectKeyFromObject(p), m); err != nil {
		return client.IgnoreNotFound(err) == nil // of this pod nothing is known yet
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
		use, ok := c.(map[string]any)
		if !ok {
			continue
		}
		row.CPU += quantity(use, "cpu", quantities.Milli)
		row.Memory += quantity(use, "memory", 0)
	}
	return true
}

// quantity reads what a container uses of a resource, in units of 10 to the
// power of scale; 0 where it says nothing.
func quantity(container map[string]any, name string, scale quantities.Scale) int64 {
	text, _, err := unstructured.NestedString(container, "usage", name)
	if err != nil {
		return 0
	}
	q, err := quantities.ParseQuantity(text)
	if err != nil {
		return 0
	}
	return q.ScaledValue(scale)
}
