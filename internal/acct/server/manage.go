package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// byCommand marks what is changed with sacctmgr.
const byCommand = client.FieldOwner(wire.FieldManagerSacctmgr)

// maxChanges bounds the changes of one request, maxBody its size in bytes.
const (
	maxChanges = 10_000
	maxBody    = 32 << 20
)

// manage serves POST associations: it makes all of the changes, or none.
func (s *Server) manage(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	var in status.AcctChanges
	d := json.NewDecoder(io.LimitReader(r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		response.BadRequest(w, r, fmt.Errorf("the changes cannot be parsed: %w", err))
		return
	}
	if n := len(in.Items); n > maxChanges {
		response.BadRequest(w, r, fmt.Errorf("%d changes are too many for one request: at most %d", n, maxChanges))
		return
	}
	targets := make([]target, len(in.Items))
	for i := range in.Items {
		t, found := s.target(&in.Items[i])
		if !s.mayChange(c, &in.Items[i], t) {
			response.Error(w, r, http.StatusForbidden, metav1.StatusReasonForbidden, errDenied)
			return
		}
		if !found {
			response.Error(
				w,
				r,
				http.StatusConflict,
				metav1.StatusReasonConflict,
				"somebody else has changed it meanwhile: try again",
			)
			return
		}
		targets[i] = t
	}
	err := s.apply(r.Context(), targets, true)
	if err == nil && !in.Check {
		if err = s.apply(r.Context(), targets, false); err == nil {
			s.recordTransactions(c, targets)
		}
	}
	switch {
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
		response.Error(
			w,
			r,
			http.StatusConflict,
			metav1.StatusReasonConflict,
			"somebody else has changed it meanwhile: try again",
		)
	case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err):
		response.Error(w, r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	case err != nil:
		response.Error(w, r, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
	default:
		response.JSON(w, r, s.state(c))
	}
}

// apply makes the changes in order; with dry it only has the API server check
// them. If one fails, it undoes those before it, the last first.
func (s *Server) apply(ctx context.Context, targets []target, dry bool) error {
	for i := range targets {
		err := s.applyOne(ctx, &targets[i], dry)
		if err == nil {
			continue
		}
		if dry {
			return err
		}
		undo := context.WithoutCancel(ctx)
		for k := i - 1; k >= 0; k-- {
			if back := s.undo(undo, &targets[k]); back != nil {
				err = errors.Join(err, fmt.Errorf("undoing the change of %s: %w", nameOf(&targets[k]), back))
			}
		}
		return err
	}
	return nil
}

func nameOf(t *target) string {
	if t.now != nil {
		return t.now.GetName()
	}
	return t.old.GetName()
}

// applyOne makes one change, if the object still is as it was read.
func (s *Server) applyOne(ctx context.Context, t *target, dry bool) error {
	k := s.Cluster.Client
	switch {
	case t.now == nil && t.old == nil:
		return nil
	case t.now == nil:
		uid, version := t.old.GetUID(), t.old.GetResourceVersion()
		opts := []client.DeleteOption{client.Preconditions{UID: &uid, ResourceVersion: &version}}
		if dry {
			opts = append(opts, client.DryRunAll)
		}
		err := k.Delete(ctx, control.Stored(t.old), opts...)
		if err == nil && !dry {
			s.removeStored(t.old)
		}
		return err
	case t.old == nil:
		if dry {
			return k.Create(ctx, control.Stored(t.now), client.DryRunAll)
		}
		t.now = control.Stored(t.now)
		return s.stored(t.now, k.Create(ctx, t.now, byCommand))
	}
	if dry {
		return k.Update(ctx, control.Stored(t.now), client.DryRunAll)
	}
	t.now = control.Stored(t.now)
	return s.stored(t.now, k.Update(ctx, t.now, byCommand))
}

// stored applies a written object to the store, so that the next reader sees it,
// and gives it the name that users know. It returns err.
func (s *Server) stored(o client.Object, err error) error {
	control.Named(o)
	if err != nil {
		return err
	}
	switch x := o.DeepCopyObject().(type) {
	case *v1alpha1.Account:
		s.Cluster.Accounts.Apply(x)
	case *v1alpha1.User:
		s.Cluster.Users.Apply(x)
	case *v1alpha1.QOS:
		s.Cluster.QOS.Apply(x)
	}
	return nil
}

// removeStored removes a deleted object from the store.
func (s *Server) removeStored(o client.Object) {
	switch x := o.(type) {
	case *v1alpha1.Account:
		s.Cluster.Accounts.Remove(x, s.Now())
	case *v1alpha1.User:
		s.Cluster.Users.Remove(x, s.Now())
	case *v1alpha1.QOS:
		s.Cluster.QOS.Remove(x, s.Now())
	}
}

// undo restores an object as it was.
func (s *Server) undo(ctx context.Context, t *target) error {
	k := s.Cluster.Client
	switch {
	case t.old == nil:
		err := client.IgnoreNotFound(k.Delete(ctx, control.Stored(t.now)))
		if err == nil {
			s.removeStored(t.now)
		}
		return err
	case t.now == nil:
		back := control.Stored(t.old)
		back.SetResourceVersion("")
		back.SetUID("")
		return s.stored(back, k.Create(ctx, back, byCommand))
	}
	back := control.Stored(t.old)
	back.SetResourceVersion(t.now.GetResourceVersion())
	return s.stored(back, k.Update(ctx, back, byCommand))
}
