package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// The outcome of a write without a clear answer is found out with increasing pauses. If the
// API server answers and refuses so often, the write was not done.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
	refusals     = 6
)

// isUncertain reports whether a write that failed with err may have been done: the API
// server did not answer, or failed on the way. A proxy or a client that sends the request
// again can turn the answer into a conflict or into 429 (Too Many Requests).
func isUncertain(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || apierrors.IsConflict(err)
	}
	return err != nil
}

// patchStatus writes the status of n, a changed copy of base, and returns the object. If
// there is no clear answer it finds out whether the write was done, because what it
// allocates must not be allocated again. The resource version makes sure that it is done
// once at most.
func (c *Cluster) patchStatus(ctx context.Context, base, n *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	wait := firstPause
	for refused := 0; ; wait = min(2*wait, longestPause) {
		written := n.DeepCopy()
		err := c.Client.Status().Patch(ctx, written, patch)
		switch {
		case err == nil:
			return written, nil
		case !isUncertain(err):
			return nil, err
		}
		found, done, getErr := c.outcome(ctx, base, n)
		if done || apierrors.IsNotFound(getErr) {
			return found, getErr
		}
		if getErr == nil {
			refused++
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
		if refused == refusals {
			return nil, err
		}
	}
}

// outcome reads the object that n, a changed copy of base, may have become. done is true
// if it is not base any more: then it is n, or somebody else changed or replaced it, which
// is a conflict. The store has what was found then.
func (c *Cluster) outcome(ctx context.Context, base, n *v1alpha1.BatchJob) (
	found *v1alpha1.BatchJob, done bool, err error) {
	found = &v1alpha1.BatchJob{}
	if err := c.Client.Get(ctx, client.ObjectKeyFromObject(base), found); err != nil {
		return nil, false, err
	}
	if found.ResourceVersion == base.ResourceVersion {
		return nil, false, nil
	}
	if found.UID != base.UID || !sameStatus(&found.Status, &n.Status) {
		if found.UID != base.UID {
			c.Jobs.Remove(base, time.Now())
		}
		c.ApplyJob(found)
		return nil, true, apierrors.NewConflict(batchJobs, base.Name, errors.New("the object has changed"))
	}
	return found, true, nil
}

// sameStatus compares statuses as they are in the API server: times have microseconds.
func sameStatus(a, b *v1alpha1.BatchJobStatus) bool {
	x, err := json.Marshal(a)
	y, other := json.Marshal(b)
	return err == nil && other == nil && string(x) == string(y)
}

// CreateObject creates o. If there is no clear answer it tries again, so that the error
// says whether the object exists: AlreadyExists also if it is this one.
func (c *Cluster) CreateObject(ctx context.Context, o client.Object) error {
	wait := firstPause
	for refused := 1; ; refused++ {
		err := c.Client.Create(ctx, o)
		if !isUncertain(err) || refused == refusals {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
		wait = min(2*wait, longestPause)
	}
}
