// Package operations carries out the operations of the queue API (POST
// operations): on jobs and their steps, and on nodes, partitions and reservations.
// It writes with the scheduler's identity on behalf of callers, whose own rights
// it checks first.
package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/bounds"
	"github.com/berth-hpc/berth/translate/status"
)

// Sender sends a command to the agent of a job's batch host.
type Sender interface {
	Send(jobID int64, attempt int32, c wire.Command)
}

// BulkCanceller cancels many pending jobs by one write.
type BulkCanceller interface {
	Cancel(ctx context.Context, jobs []*v1alpha1.BatchJob, by string) error
}

// Service carries out operations. Fields are required unless they say otherwise.
// Safe for concurrent use.
type Service struct {
	Cluster   *control.Cluster
	Directory *directory.Directory
	Table     *table.Table
	// Nodes returns the rows of the nodes, in the cluster's order.
	Nodes func() []status.Node
	// Shows reports whether the rows of nodes and partitions include every change that this
	// process had seen at the instant; nil: they always do.
	Shows  func(at time.Time) bool
	Agents Sender
	Now    func() time.Time
	// Validate returns why a changed job would be refused if its user submitted it
	// now; byOperator: an operator changes it. nil: nothing is refused.
	Validate func(b *v1alpha1.BatchJob, byOperator bool) error
	// CheckBounds refuses what a change makes larger than it may be (package
	// bounds); nil: nothing is refused.
	CheckBounds func(old, now *v1alpha1.BatchJob, c *directory.Caller) error
	// StateTimeout bounds how long suspend, resume and, for a moment, the cancellation of
	// pending jobs and changes of other things wait until rows show it; 0: they do not wait.
	StateTimeout time.Duration
	// BulkCanceller, if set, cancels many jobs by one write; nil: each job is
	// written.
	BulkCanceller BulkCanceller
}

const (
	// operationTimeout bounds one request, which the API server ends after a minute. What
	// is not done by then has the outcome status.NotInTime, so that the client requests it
	// again.
	operationTimeout = 40 * time.Second
	// writeTimeout bounds one write.
	writeTimeout = 30 * time.Second
)

// Execute carries out an operation. It returns one outcome for each name in the
// operation, or for each job that its filters choose. The error is for a 400 (Bad
// Request): the operation is not well formed.
func (s *Service) Execute(
	ctx context.Context, c *directory.Caller, op *status.Operation,
) ([]status.OperationStatus, error) {
	if err := checkSize(op.Set, op.Keys); err != nil {
		return nil, err
	}
	switch {
	case op.Entity == "" || op.Entity == status.EntityJob:
		return s.executeOnJobs(ctx, c, op)
	case op.Entity == status.EntityStep && op.Verb == status.OpUpdate:
		return s.updateSteps(ctx, c, op), nil
	}
	return s.executeOnEntity(ctx, c, op), nil
}

// checkSize refuses settings that are beyond their budgets, before any is parsed.
func checkSize(set map[string]string, keys []string) error {
	if err := bounds.Settings.Check(int64(max(len(set), len(keys)))); err != nil {
		return err
	}
	for key, v := range set {
		if err := bounds.SettingText.Check(int64(len(key) + len(v))); err != nil {
			return err
		}
	}
	return nil
}

// Message returns the text of an outcome for the error; "" for nil.
func Message(err error) string { return outcome("", err).Error }

// outcome returns the outcome for one job or target; err is nil for success.
func outcome(name string, err error) status.OperationStatus {
	o := status.OperationStatus{Job: name}
	var setting refusal.Setting
	var text refusal.Text
	switch {
	case err == nil:
	case errors.As(err, &setting):
		o.Error, o.Code = string(setting.Message), setting.Code
		o.Parameter, o.Value = setting.Parameter, setting.Value
	case errors.As(err, &text):
		o.Error, o.Code = string(text), text.Code()
	case apierrors.IsNotFound(err):
		o.Error, o.Code = string(refusal.InvalidJobID), status.CodeInvalidJobID
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		o.Error, o.Code = status.NotInTime, status.CodeNotInTime
	default:
		o.Error = err.Error()
	}
	return o
}

// Permit returns nil if the caller may do the action to the job, or to its steps,
// else Slurm's refusal.
func (s *Service) Permit(c *directory.Caller, b *v1alpha1.BatchJob, object authz.Object, action authz.Action) error {
	if text := s.Directory.Refusal(s.Directory.RolesOnJob(c, b), object, action); text != "" {
		return refusal.Text(text)
	}
	return nil
}

// permitEntity returns nil if the caller may do the action to something that
// belongs to no user. unauthorized is the error otherwise.
func (s *Service) permitEntity(
	c *directory.Caller, object authz.Object, action authz.Action, unauthorized error,
) error {
	if s.Directory.Refusal(c.Roles(), object, action) != "" {
		return unauthorized
	}
	return nil
}

// Job returns the row's BatchJob if the caller may do the action to it.
func (s *Service) Job(c *directory.Caller, row *table.Row, action authz.Action) (*v1alpha1.BatchJob, error) {
	return s.jobFor(c, row, authz.Job, action)
}

func (s *Service) jobFor(
	c *directory.Caller, row *table.Row, object authz.Object, action authz.Action,
) (*v1alpha1.BatchJob, error) {
	b, ok := s.Cluster.Job(row.ID)
	if !ok {
		return nil, refusal.InvalidJobID
	}
	if err := s.Permit(c, b, object, action); err != nil {
		return nil, err
	}
	return b, nil
}

func (s *Service) resolver() query.Resolver {
	return query.Resolver{Table: s.Table, Directory: s.Directory}
}

// Stored returns the job once it has an object, which the job of a single pod may
// lack for a moment.
func (s *Service) Stored(ctx context.Context, b *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	b, err := s.Cluster.EnsureCreated(ctx, b)
	if apierrors.IsConflict(err) {
		return nil, refusal.NotAlterableNow
	}
	return b, err
}

// patchJob merges a change into the BatchJob and puts the result into the store. The
// UID guards against another object with the same name.
func (s *Service) patchJob(ctx context.Context, b *v1alpha1.BatchJob, change map[string]any) error {
	b, err := s.Stored(ctx, b)
	if err != nil {
		return err
	}
	meta := metadataOf(change)
	if meta["resourceVersion"] == "" { // the change was made before the job had an object
		meta["resourceVersion"] = b.ResourceVersion
	}
	meta["uid"] = b.UID
	obj := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name}}
	if err := s.patch(ctx, obj, change); err != nil {
		return err
	}
	s.Cluster.ApplyJob(obj)
	s.Table.Refresh(obj)
	return nil
}

// byCommand marks what an operator changes of the configuration.
const byCommand = client.FieldOwner(wire.FieldManagerScontrol)

// patch writes a merge patch (RFC 7386) of obj, which has the result afterwards.
func (s *Service) patch(ctx context.Context, obj client.Object, change map[string]any) error {
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding the change: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	owner := byCommand
	if _, isJob := obj.(*v1alpha1.BatchJob); isJob {
		owner = client.FieldOwner(wire.FieldManager)
	}
	err = s.Cluster.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, body), owner)
	if apierrors.IsConflict(err) {
		return refusal.NotAlterableNow
	}
	return err
}

// metadataOf returns the member metadata of a merge patch, which it adds if it is
// absent.
func metadataOf(change map[string]any) map[string]any {
	meta, ok := change["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		change["metadata"] = meta
	}
	return meta
}

// specPatch returns a merge patch of a job's spec.
func specPatch(spec map[string]any) map[string]any { return map[string]any{"spec": spec} }

// guardedSpecPatch returns a merge patch of a job's spec that fails if the job has
// changed meanwhile.
func guardedSpecPatch(b *v1alpha1.BatchJob, spec map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"resourceVersion": b.ResourceVersion}, "spec": spec}
}

// maxRetries limits how often a change is computed again because the job was written in
// the meantime.
const maxRetries = 4

// retryOnConflict calls change, which computes and writes a change of the row's job. It
// calls it again with the job's newest state if the job was written in between.
func (s *Service) retryOnConflict(ctx context.Context, row *table.Row, change func() error) error {
	var err error
	for range maxRetries {
		if err = change(); !errors.Is(err, refusal.NotAlterableNow) {
			return err
		}
		newest := &v1alpha1.BatchJob{}
		key := client.ObjectKey{Namespace: row.Namespace, Name: row.Object}
		if err := s.Cluster.Client.Get(ctx, key, newest); err != nil {
			return err
		}
		s.Cluster.ApplyJob(newest)
	}
	return err
}
