package control

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PodEvents reads the events about the pod from the API server, oldest first.
func (c *Cluster) PodEvents(ctx context.Context, p *corev1.Pod) ([]corev1.Event, error) {
	var list corev1.EventList
	selector := &client.ListOptions{Raw: &metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(p.UID)}}
	if err := c.Client.List(ctx, &list, client.InNamespace(p.Namespace), selector); err != nil {
		return nil, err
	}
	events := slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return e.InvolvedObject.UID != p.UID })
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return cmp.Compare(LastSeen(&a), LastSeen(&b)) })
	return events, nil
}

// LastSeen returns when an event occurred last, in Unix seconds; its two formats have
// different fields for that.
func LastSeen(e *corev1.Event) int64 {
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
