package operations

import (
	"context"
	"errors"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// maxNameTries bounds the names that are tried for a reservation without one.
const maxNameTries = 1000

// reservationAction returns the action of scontrol create, update or delete for
// reservations. Settings that no reservation could have are refused first.
func (s *Service) reservationAction(
	c *directory.Caller, verb string, settings map[string]string,
) (entityAction, error) {
	if verb != status.OpDelete {
		if err := change.CheckReservationSettings(settings, s.Now(), verb == status.OpCreate); err != nil {
			return nil, err
		}
	}
	if err := s.permitEntity(c, authz.Reservation, actionOf(verb), refusal.InvalidUser); err != nil {
		return nil, err
	}
	switch verb {
	case status.OpCreate:
		return func(ctx context.Context, name string) (string, error) {
			return s.createReservation(ctx, c, name, settings)
		}, nil
	case status.OpUpdate:
		return withName(
			func(ctx context.Context, name string) error { return s.updateReservation(ctx, name, settings) },
		), nil
	case status.OpDelete:
		return withName(s.deleteReservation), nil
	}
	return nil, refusal.NotSupported
}

// createReservation creates a reservation and returns its name, which it chooses
// if name is empty.
func (s *Service) createReservation(
	ctx context.Context, c *directory.Caller, name string, settings map[string]string,
) (string, error) {
	r := &v1alpha1.Reservation{}
	r.Spec.By = c.Name
	if err := s.applyReservation(r, settings, true); err != nil {
		return name, err
	}
	if name != "" {
		return name, s.writeNewReservation(ctx, r, name)
	}
	for try := 1; ; try++ {
		name = reservationNamePrefix(&r.Spec) + "_" + strconv.Itoa(try)
		err := s.writeNewReservation(ctx, r, name)
		if err != refusal.ReservationExists || try == maxNameTries { //nolint:errorlint // returned unwrapped
			return name, err
		}
	}
}

func (s *Service) writeNewReservation(ctx context.Context, r *v1alpha1.Reservation, name string) error {
	object := v1alpha1.ReservationObject(name)
	if len(validation.IsDNS1123Subdomain(object)) > 0 {
		return refusal.InvalidReservation
	}
	r.ObjectMeta = metav1.ObjectMeta{Name: object, Annotations: map[string]string{wire.AnnotationName: name}}
	err := s.Cluster.Client.Create(ctx, r, byCommand)
	switch {
	case apierrors.IsAlreadyExists(err):
		return refusal.ReservationExists
	case err != nil:
		return err
	}
	s.Cluster.Reservations.Apply(r)
	return nil
}

// reservationNamePrefix returns the part before the number of the name that a
// reservation without one gets: its first account, user or group.
func reservationNamePrefix(spec *v1alpha1.ReservationSpec) string {
	for _, names := range [][]string{spec.Accounts, spec.Users, spec.Groups} {
		if len(names) > 0 {
			return strings.TrimPrefix(names[0], "-")
		}
	}
	return "resv"
}

func (s *Service) updateReservation(ctx context.Context, name string, settings map[string]string) error {
	r := s.Directory.Reservation(name)
	if r == nil {
		return refusal.InvalidReservation
	}
	if len(settings) == 0 {
		return nil // as in Slurm
	}
	n := r.DeepCopy()
	if err := s.applyReservation(n, settings, false); err != nil {
		return err
	}
	err := s.Cluster.Client.Update(ctx, n, byCommand)
	switch {
	case apierrors.IsConflict(err):
		return refusal.NotAlterableNow
	case apierrors.IsNotFound(err):
		return refusal.InvalidReservation
	case err != nil:
		return err
	}
	s.Cluster.Reservations.Apply(n)
	return nil
}

func (s *Service) deleteReservation(ctx context.Context, name string) error {
	r := s.Directory.Reservation(name)
	if r == nil {
		return refusal.InvalidReservation
	}
	for _, b := range s.Cluster.Jobs.List() {
		if reserve.Of(b) == r.Name && !hasLeftReservation(b) {
			return refusal.ReservationInUse
		}
	}
	err := s.Cluster.Client.Delete(ctx, r)
	switch {
	case apierrors.IsNotFound(err):
		return refusal.InvalidReservation
	case err != nil:
		return err
	}
	s.Cluster.Reservations.Remove(r, s.Now())
	return nil
}

// hasLeftReservation reports whether the job no longer needs its reservation.
func hasLeftReservation(b *v1alpha1.BatchJob) bool {
	return b.IsFinal()
}

// applyReservation applies the settings to r, and chooses its nodes if they or its time
// changed.
func (s *Service) applyReservation(r *v1alpha1.Reservation, settings map[string]string, isNew bool) error {
	env := change.ReservationEnvironment{
		Now:      s.Now(),
		User:     func(name string) bool { return s.Directory.User(name) != nil },
		Account:  func(name string) bool { _, ok := s.Directory.AccountName(name); return ok },
		Licenses: func(name string) int32 { return s.Directory.Parameters().Licenses[name] },
	}
	moved, err := change.Reservation(&r.Spec, settings, &env, isNew)
	if err != nil {
		return err
	}
	if !s.associated(r.Spec.Users, r.Spec.Accounts) {
		return refusal.InvalidAccount
	}
	err = s.reservationPool().Place(r, moved)
	if !isNew && errors.Is(err, refusal.PartNodesNeedsAll) {
		return refusal.PartNodesNeedsAllUpdate
	}
	return err
}

// associated reports whether each of the users has an association with each of the
// accounts, which a reservation that names both needs. Excluded names ("-anna") do not.
func (s *Service) associated(users, accounts []string) bool {
	for _, account := range accounts {
		if a, known := s.Directory.Account(account); !known || a == nil || strings.HasPrefix(account, "-") {
			return true
		}
		for _, name := range users {
			u := s.Directory.User(name)
			if !strings.HasPrefix(name, "-") && (u == nil || !directory.HasAssociation(u, account)) {
				return false
			}
		}
	}
	return true
}

// reservationPool returns the cluster from which the nodes of reservations are chosen.
func (s *Service) reservationPool() *reserve.Pool {
	p := &reserve.Pool{
		Nodes:           s.Nodes(),
		Reservations:    s.Cluster.Reservations.List(),
		Jobs:            s.Cluster.Jobs.List(),
		PartitionExists: func(name string) bool { return s.Directory.Partition(name) != nil },
	}
	if d := s.Directory.Default(); d != nil {
		p.DefaultPartition = d.Name
	}
	return p
}
