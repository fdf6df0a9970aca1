package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// entity changes something other than jobs: nodes, partitions, reservations.
func (o *Operations) entity(ctx context.Context, c *directory.Caller, op *status.Operation) []status.OperationStatus {
	set := lowered(op.Set)
	act, err := o.entityAction(c, op, set)
	if err != nil {
		return []status.OperationStatus{{Job: strings.Join(op.Targets, ","), Error: text(err)}}
	}
	if len(op.Targets) == 0 {
		name, err := act(ctx, "")
		return []status.OperationStatus{{Job: name, Error: text(err)}}
	}
	out := make([]status.OperationStatus, 0, len(op.Targets))
	for _, target := range op.Targets {
		name, err := act(ctx, target)
		out = append(out, status.OperationStatus{Job: name, Error: text(err)})
	}
	return out
}

// denied reports whether the caller may not do that to what is nobody's.
func (o *Operations) denied(c *directory.Caller, object authz.Object, action authz.Action) bool {
	return o.Directory.Refusal(c.Roles(), object, action) != ""
}

// entityActor acts on one target and returns its name.
type entityActor func(ctx context.Context, target string) (string, error)

func (o *Operations) entityAction(c *directory.Caller, op *status.Operation, set map[string]string) (entityActor, error) {
	switch op.Entity {
	case status.EntityNode:
		if op.Verb != status.OpUpdate {
			return nil, errNotSupported
		}
		return o.nodeAction(c, set, len(op.Targets))
	case status.EntityPartition:
		return o.partitionAction(c, op.Verb, set)
	case status.EntityReservation:
		return o.reservationAction(c, op.Verb, set)
	}
	return nil, errNotSupported
}

func lowered(set map[string]string) map[string]string {
	out := make(map[string]string, len(set))
	for k, v := range set {
		out[strings.ToLower(k)] = v
	}
	return out
}

// merge writes a merge patch of o, whose resource version guards it where
// guard is set.
func (o *Operations) merge(ctx context.Context, obj client.Object, patch map[string]any, guard bool) error {
	if guard {
		meta, ok := patch["metadata"].(map[string]any)
		if !ok {
			meta = map[string]any{}
			patch["metadata"] = meta
		}
		meta["resourceVersion"] = obj.GetResourceVersion()
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding the change: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = o.Cluster.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), client.FieldOwner(wire.FieldManager))
	if apierrors.IsConflict(err) {
		return errNotNow
	}
	return err
}

// errInvalidUser is what Slurm says to those who may not change the cluster.
const errInvalidUser Refused = "Invalid user id"
