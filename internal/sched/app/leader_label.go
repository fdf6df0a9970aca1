package app

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/wire"
)

// labelLeader sets the leader's label on the pod and removes it from all others, so
// that the Service selects this process. If pod is "", it does nothing.
func labelLeader(ctx context.Context, pod string, c client.Client) error {
	if pod == "" {
		return nil
	}
	var labelled corev1.PodList
	if err := c.List(ctx, &labelled, client.InNamespace(wire.SystemNamespace),
		client.HasLabels{wire.LabelLeader}); err != nil {
		return fmt.Errorf("the last leader's pod: %w", err)
	}
	for i := range labelled.Items {
		if p := &labelled.Items[i]; p.Name != pod {
			if err := label(ctx, c, p.Name, "null"); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("the last leader's pod: %w", err)
			}
		}
	}
	if err := label(ctx, c, pod, `"true"`); err != nil {
		return fmt.Errorf("the leader's pod: %w", err)
	}
	return nil
}

// label sets the leader's label of a pod to a JSON value.
func label(ctx context.Context, c client.Client, pod, value string) error {
	p := &corev1.Pod{}
	p.Namespace, p.Name = wire.SystemNamespace, pod
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, wire.LabelLeader, value)
	return c.Patch(ctx, p, client.RawPatch("application/merge-patch+json", []byte(patch)))
}
