package operations

import (
	"context"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// Reasons of nodes whose reboot is requested without one, as in Slurm.
const (
	reasonReboot     = "reboot requested"
	reasonRebootASAP = "Reboot ASAP"
)

// rebootNodes returns the action of scontrol reboot. As in Slurm, nothing is done if one of the
// names is no node, and a node whose reboot is requested already stays as it is.
func (s *Service) rebootNodes(c *directory.Caller, settings map[string]string, names []string) (entityAction, error) {
	if err := s.permitEntity(c, authz.Node, authz.Action(status.OpReboot), refusal.PermissionDenied); err != nil {
		return nil, err
	}
	nextState := strings.ToUpper(settings["nextstate"])
	if nextState != "" && nextState != wire.RebootResume && nextState != wire.RebootDown {
		return nil, refusal.InvalidNodeState
	}
	if s.Cluster.Parameters().RebootProgram == "" {
		return nil, refusal.NoRebootProgram
	}
	rows := map[string]status.Node{}
	for _, n := range s.Nodes() {
		rows[n.Name] = n
	}
	for _, name := range names {
		if _, ok := rows[name]; !ok {
			return nil, refusal.InvalidNode
		}
	}
	_, asap := settings["asap"]
	return withName(func(ctx context.Context, name string) error {
		row := rows[name]
		return s.changeReboot(ctx, &row, func(n *corev1.Node) error {
			if n.Annotations[wire.AnnotationReboot] == "" {
				s.requestReboot(c, n, asap, nextState, settings["reason"])
			}
			return nil
		})
	}), nil
}

// requestReboot adds the request to the node.
func (s *Service) requestReboot(c *directory.Caller, n *corev1.Node, asap bool, nextState, reason string) {
	r := wire.NodeReboot{NextState: nextState}
	drained := n.Annotations[wire.AnnotationState] != "" || n.Spec.Unschedulable
	standard := reasonReboot
	if asap && !drained {
		r.Drained, standard = true, reasonRebootASAP
		n.Annotations[wire.AnnotationState] = annotationDrain
		n.Spec.Unschedulable = true
	}
	if asap && r.NextState == "" {
		r.NextState = wire.RebootResume
	}
	n.Annotations[wire.AnnotationReboot] = r.String()
	if reason == "" && n.Annotations[wire.AnnotationReason] == "" {
		reason = standard
	}
	if reason != "" {
		n.Annotations[wire.AnnotationReason] = s.reasonText(c, reason)
	}
}

// cancelReboot withdraws the request; the node is refused if there is none, or if the reboot
// has begun.
func cancelReboot(n *corev1.Node) error {
	r := wire.ParseNodeReboot(n.Annotations)
	if r == nil || r.Issued != nil {
		return refusal.InvalidNodeState
	}
	delete(n.Annotations, wire.AnnotationReboot)
	if r.Drained {
		delete(n.Annotations, wire.AnnotationState)
		n.Spec.Unschedulable = false
	}
	if n.Annotations[wire.AnnotationState] == "" && !n.Spec.Unschedulable {
		delete(n.Annotations, wire.AnnotationReason)
	}
	return nil
}

// changeReboot changes the Node of the row. The change is computed again if the Node was
// written in the meantime.
func (s *Service) changeReboot(ctx context.Context, row *status.Node, change func(*corev1.Node) error) error {
	key := client.ObjectKey{Name: row.Name}
	if row.Object != "" {
		key.Name = row.Object
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for range maxRetries {
		before := &corev1.Node{}
		if err := s.Cluster.Client.Get(ctx, key, before); apierrors.IsNotFound(err) {
			return refusal.InvalidNodeState // a node of a pool that does not run
		} else if err != nil {
			return err
		}
		after := before.DeepCopy()
		after.Annotations = maps.Clone(before.Annotations)
		if after.Annotations == nil {
			after.Annotations = map[string]string{}
		}
		if err := change(after); err != nil {
			return err
		}
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		err := s.Cluster.Client.Patch(ctx, after, patch, byCommand)
		if err == nil {
			s.Cluster.Nodes.Apply(after)
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return refusal.TryAgain
}
