package operations

import (
	"context"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/status"
)

// entityAction changes, creates or deletes one entity and returns its name.
type entityAction func(ctx context.Context, name string) (string, error)

// executeOnEntity carries out an operation on nodes, partitions or reservations. A
// creation without a name chooses one.
func (s *Service) executeOnEntity(
	ctx context.Context, c *directory.Caller, op *status.Operation,
) []status.OperationStatus {
	act, err := s.entityActionFor(c, op)
	if err != nil {
		return []status.OperationStatus{outcome(strings.Join(op.Targets, ","), err)}
	}
	names := op.Targets
	if len(names) == 0 {
		names = []string{""}
	}
	out, changed := make([]status.OperationStatus, 0, len(names)), false
	for _, name := range names {
		name, err := act(ctx, name)
		out = append(out, outcome(name, err))
		changed = changed || err == nil
	}
	if changed {
		s.awaitShown(ctx)
	}
	return out
}

// awaitShown returns when rows show what has been written, so that the next command sees it, or
// after a moment: the planner may be busy.
func (s *Service) awaitShown(ctx context.Context) {
	if s.Shows == nil || s.StateTimeout == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(s.StateTimeout, shownTimeout))
	defer cancel()
	written := s.Now()
	poll(ctx, func() bool { return s.Shows(written) })
}

func (s *Service) entityActionFor(c *directory.Caller, op *status.Operation) (entityAction, error) {
	settings := lowerKeys(op.Set)
	switch op.Entity {
	case status.EntityNode:
		switch op.Verb {
		case status.OpUpdate:
			return s.updateNodes(c, settings, len(op.Targets))
		case status.OpReboot:
			return s.rebootNodes(c, settings, op.Targets)
		}
	case status.EntityPartition:
		return s.partitionAction(c, op.Verb, settings)
	case status.EntityReservation:
		return s.reservationAction(c, op.Verb, settings)
	}
	return nil, refusal.NotSupported
}

func lowerKeys(set map[string]string) map[string]string {
	out := make(map[string]string, len(set))
	for key, v := range set {
		out[strings.ToLower(key)] = v
	}
	return out
}

// withName returns an entity action that returns the name that it is given.
func withName(act func(ctx context.Context, name string) error) entityAction {
	return func(ctx context.Context, name string) (string, error) { return name, act(ctx, name) }
}
