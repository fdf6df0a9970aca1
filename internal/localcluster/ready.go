package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/berth-hpc/berth/internal/wire"
)

// errNotReady reports that the scheduler is registered but not reachable yet.
var errNotReady = errors.New("the scheduler cannot be reached yet")

// awaitScheduler waits until the scheduler can be reached through the API server. When it
// has registered, the API server starts to use its webhook and aggregated API a moment
// later. Before that, submissions are not admitted and the queue is not served.
func (k *cluster) awaitScheduler(ctx context.Context, a *api) error {
	if k.Parts.Scheduler == nil {
		return nil
	}
	if err := a.retry(ctx, func() error { return k.checkQueue(ctx, a) }); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	if err := a.retry(ctx, func() error { return k.checkAdmission(ctx, a) }); err != nil {
		return fmt.Errorf("admission: %w", err)
	}
	return nil
}

// checkQueue requests the nodes, all of which the scheduler must know.
func (k *cluster) checkQueue(ctx context.Context, a *api) error {
	var list struct {
		Items []struct{} `json:"items"`
	}
	if err := a.do(ctx, http.MethodGet, wire.QueueRoot+"/nodes", "", nil, &list); err != nil {
		return err
	}
	if k.Parts.Nodes != nil && len(list.Items) < len(k.Nodes) {
		return fmt.Errorf("%w: it knows %d of %d nodes", errNotReady, len(list.Items), len(k.Nodes))
	}
	return nil
}

// checkAdmission submits a job in a dry run; admission assigns an id to it.
func (k *cluster) checkAdmission(ctx context.Context, a *api) error {
	job := map[string]any{
		"apiVersion": berthAPI, "kind": "BatchJob",
		"metadata": map[string]any{"name": "j-ready"},
		"spec": map[string]any{
			"job": map[string]any{"name": "ready", "hold": "user", "batch": map[string]any{"workDir": "/"}},
		},
	}
	var made struct {
		Spec struct {
			JobID int64 `json:"jobID"`
		} `json:"spec"`
	}
	path := "/apis/" + berthAPI + "/namespaces/" + k.Admin.Namespace() + "/batchjobs?dryRun=All"
	err := a.do(ctx, http.MethodPost, path, "application/json", job, &made)
	var s *statusError
	switch {
	case errors.As(err, &s) && s.Code == http.StatusForbidden:
		// The client is an administrator's: only admission refuses, and a site may make
		// it refuse this job.
		return nil
	case errors.As(err, &s) && (s.Code == http.StatusUnprocessableEntity || s.Code == http.StatusBadRequest):
		// The type requires fields that admission sets.
		return fmt.Errorf("%w: %w", errNotReady, err)
	case err == nil && made.Spec.JobID == 0:
		return errNotReady
	}
	return err
}
