package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// update returns the action that applies the settings of scontrol update to a job: all of
// them or none.
func (s *Service) update(set map[string]string) action {
	return func(ctx context.Context, c *directory.Caller, row *table.Row) error {
		return s.retryOnConflict(ctx, row, func() error {
			b, err := s.Job(c, row, status.OpUpdate)
			if err != nil {
				return err
			}
			changed, warning := change.Job(b, set, s.environment(c, b, row))
			if changed == nil {
				return warning
			}
			spec, err := specDifference(&b.Spec, &changed.Spec)
			if err != nil {
				return err
			}
			if len(spec) > 0 {
				err = s.patchJob(ctx, b, guardedSpecPatch(b, spec))
			}
			if err != nil {
				return err
			}
			return warning
		})
	}
}

// environment returns what a change of the job is checked against.
func (s *Service) environment(c *directory.Caller, b *v1alpha1.BatchJob, row *table.Row) *change.Environment {
	return &change.Environment{
		Now:         s.Now(),
		Operator:    c.Operator,
		Priority:    s.Table.Merged(row).Priority,
		TimeLimit:   table.TimeLimit(b, s.Directory.Partition(partitionOf(b))),
		Partition:   s.Directory.Partition,
		Account:     s.Directory.AccountName,
		QOS:         s.Directory.QOSName,
		Node:        s.nodeExists(),
		Reservation: func(name string) bool { return s.Directory.Reservation(name) != nil },
		License:     func(name string) bool { return s.Directory.Parameters().Licenses[name] > 0 },
		Job: func(id int64) *v1alpha1.BatchJob {
			other, _ := s.Cluster.Job(id)
			return other
		},
		CheckBounds: func(old, now *v1alpha1.BatchJob) error {
			if s.CheckBounds == nil {
				return nil
			}
			return s.CheckBounds(old, now, c)
		},
		Validate: func(b *v1alpha1.BatchJob) error { return s.validate(b, c.Operator) },
	}
}

// nodeExists returns a function that reports whether a node exists. The nodes are
// listed when it is called first.
func (s *Service) nodeExists() func(name string) bool {
	var names map[string]bool
	return func(name string) bool {
		if names == nil {
			names = map[string]bool{}
			for _, n := range s.Nodes() {
				names[n.Name] = true
			}
		}
		return names[name]
	}
}

// validate checks a changed job as a submission, whatever hold it has. A job that
// is too large for its partition is refused with another message than a
// submission.
func (s *Service) validate(b *v1alpha1.BatchJob, byOperator bool) error {
	if s.Validate == nil {
		return nil
	}
	if b.Spec.Job.Hold != "" {
		free := *b
		free.Spec.Job.Hold = ""
		b = &free
	}
	err := s.Validate(b, byOperator)
	if errors.Is(err, refusal.InvalidNodeCount) || errors.Is(err, refusal.TooManyProcessors) {
		return refusal.PartitionConfigUnavailable
	}
	return err
}

// partitionOf returns the partition whose limits apply to the job.
func partitionOf(b *v1alpha1.BatchJob) string {
	if b.Status.Partition != "" && !change.Pending(b) {
		return b.Status.Partition
	}
	return b.Spec.Partition
}

// specDifference returns the merge patch (RFC 7386) that turns one spec into the
// other.
func specDifference(from, to *v1alpha1.BatchJobSpec) (map[string]any, error) {
	a, err := members(from)
	if err != nil {
		return nil, err
	}
	b, err := members(to)
	if err != nil {
		return nil, err
	}
	return mergePatch(a, b), nil
}

// members returns the members of the spec's JSON object.
func members(spec *v1alpha1.BatchJobSpec) (m map[string]any, err error) {
	raw, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(raw, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("encoding the job: %w", err)
	}
	return m, nil
}

func mergePatch(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if _, ok := to[name]; !ok {
			patch[name] = nil
		}
	}
	for name, after := range to {
		before, existed := from[name]
		beforeObject, wasObject := before.(map[string]any)
		afterObject, isObject := after.(map[string]any)
		switch {
		case wasObject && isObject:
			if inner := mergePatch(beforeObject, afterObject); len(inner) > 0 {
				patch[name] = inner
			}
		case !existed || !equal(before, after):
			patch[name] = after
		}
	}
	return patch
}

func equal(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && slices.Equal(x, y)
}
