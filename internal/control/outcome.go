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

// After a write whose outcome is uncertain, the object is read, and the write repeated,
// with increasing pauses.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = time.Second
	// maxAttempts is the number of writes after which the write counts as not done, if
	// the API server responds and the object has not changed.
	maxAttempts = 6
)

// isUncertain reports whether a write that failed with err may have been done: the API
// server did not respond, or failed on the way. A conflict or 429 (Too Many Requests) is
// uncertain as well, because a proxy or the client library may have sent a request twice,
// and this may be the response to the second.
func isUncertain(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || apierrors.IsConflict(err)
	}
	return err != nil
}

// patchStatus writes the status of n, a changed copy of base, and returns the object. If
// the outcome is uncertain, it finds out whether the write was done, because the resources
// that the status allocates must not be allocated again. The resource version makes sure
// that the write is done at most once.
func (c *Cluster) patchStatus(ctx context.Context, base, n *v1alpha1.BatchJob) (*v1alpha1.BatchJob, error) {
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	wait := firstPause
	for attempts := 0; ; wait = min(2*wait, longestPause) {
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
			attempts++
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(wait):
		}
		if attempts == maxAttempts {
			return nil, err
		}
	}
}

// outcome reads the object of base, which may have become n, a changed copy of base. done
// is true if the object has changed: to n, or by another writer who changed or replaced
// it. The latter is a conflict, and outcome applies the object to the store.
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

// CreateObject creates o, which becomes the created object. If the outcome is uncertain, it
// tries again. The error is then AlreadyExists if an object of that name exists, even if
// an earlier attempt created it.
func (c *Cluster) CreateObject(ctx context.Context, o client.Object) error {
	return repeat(ctx, func() error { return c.Client.Create(ctx, o) })
}

// ReadObject reads the object with that key into o. If the API server does not respond, it
// tries again.
func (c *Cluster) ReadObject(ctx context.Context, key client.ObjectKey, o client.Object) error {
	return repeat(ctx, func() error { return c.Client.Get(ctx, key, o) })
}

// repeat calls do, at most maxAttempts times, until its outcome is certain.
func repeat(ctx context.Context, do func() error) error {
	wait := firstPause
	for attempts := 1; ; attempts++ {
		err := do()
		if !isUncertain(err) || attempts == maxAttempts {
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
