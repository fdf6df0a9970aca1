package keeper

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/job"
)

// reservationInterval is how often reservations are checked. Planning does not
// depend on it: a plan ignores reservations that are over.
const reservationInterval = 5 * time.Second

// maintainReservations moves repeated reservations that are over to their next
// time, and deletes the others, until ctx ends.
func (k *Keeper) maintainReservations(ctx context.Context) {
	idle := map[string]time.Time{} // time since which a reservation is unused, by name
	tick := time.NewTicker(reservationInterval)
	defer tick.Stop()
	for {
		for _, r := range k.reservations() {
			if err := k.maintainReservation(ctx, r, idle); err != nil && ctx.Err() == nil {
				k.Log.Warn("reservation is retried", "reservation", r.Name, "error", err)
			}
		}
		if err := k.holdOrphans(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("cannot hold jobs whose reservation was deleted; will retry", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// maintainReservation moves, deletes or repairs one reservation. idle has the time since
// which a reservation is unused, by name.
func (k *Keeper) maintainReservation(ctx context.Context, r *v1alpha1.Reservation, idle map[string]time.Time) error {
	now := k.Now()
	next, over := nextStart(&r.Spec, now)
	switch {
	case !next.IsZero():
		return k.updateReservation(ctx, r, func(s *v1alpha1.ReservationSpec) { s.StartTime = metav1.NewTime(next) })
	case over && k.isStillHeld(r):
		return nil
	case over:
		return k.deleteReservation(ctx, r)
	}
	if nodes, changed := k.replacementNodes(r); changed {
		return k.updateReservation(ctx, r, func(s *v1alpha1.ReservationSpec) { s.Nodes = nodes })
	}
	if r.Spec.PurgeComp <= 0 || now.Before(r.Spec.StartTime.Time) || k.isUsed(r) {
		delete(idle, r.Name)
		return nil
	}
	if idle[r.Name].IsZero() {
		idle[r.Name] = now
	}
	if now.Sub(idle[r.Name]) < time.Duration(r.Spec.PurgeComp)*time.Second {
		return nil
	}
	delete(idle, r.Name)
	return k.deleteReservation(ctx, r)
}

// updateReservation writes a change of the reservation.
func (k *Keeper) updateReservation(
	ctx context.Context, r *v1alpha1.Reservation, change func(*v1alpha1.ReservationSpec),
) error {
	n := r.DeepCopy()
	change(&n.Spec)
	if err := k.Cluster.Client.Update(ctx, n); err != nil {
		return client.IgnoreNotFound(err)
	}
	k.Cluster.Reservations.Apply(n)
	return nil
}

// replacementNodes returns the nodes that the reservation should have now; changed
// is false if it has them.
func (k *Keeper) replacementNodes(r *v1alpha1.Reservation) (nodes string, changed bool) {
	if k.Nodes == nil {
		return "", false
	}
	p := reserve.Pool{Nodes: k.Nodes(), Reservations: k.Cluster.Reservations.List(), Jobs: k.Cluster.Jobs.List()}
	return p.Replace(r)
}

// isStillHeld reports whether jobs still hold nodes in a reservation that is over,
// and queues these jobs.
func (k *Keeper) isStillHeld(r *v1alpha1.Reservation) bool {
	return k.enqueueAll(func(b *v1alpha1.BatchJob) bool {
		return reserve.Of(b) == r.Name && b.HoldsAllocation() && !reserve.Flagged(&r.Spec, "FLEX")
	}) > 0
}

// reservationEnd returns when the job's reservation ends it; zero: never.
func (k *Keeper) reservationEnd(b *v1alpha1.BatchJob) time.Time {
	name := reserve.Of(b)
	if name == "" || b.Status.StartTime == nil {
		return time.Time{}
	}
	r, ok := k.Cluster.Reservations.Get(name)
	if !ok {
		return time.Time{}
	}
	at, _ := reserve.Ends(&r.Spec, b.Status.StartTime.Time, k.Cluster.Parameters().ResvOverRun)
	return at
}

// reservationChanged queues the jobs in a reservation whose time has changed.
func (k *Keeper) reservationChanged(old, now *v1alpha1.Reservation) {
	if old == nil || now == nil || old.Spec.StartTime.Equal(&now.Spec.StartTime) &&
		old.Spec.Duration == now.Spec.Duration {
		return
	}
	k.enqueueAll(func(b *v1alpha1.BatchJob) bool { return reserve.Of(b) == now.Name && b.HoldsAllocation() })
}

// deleteReservation deletes the reservation. Jobs that wait for it are held, unless it
// has the flag NO_HOLD_JOBS_AFTER_END.
func (k *Keeper) deleteReservation(ctx context.Context, r *v1alpha1.Reservation) error {
	if reserve.Flagged(&r.Spec, "NO_HOLD_JOBS_AFTER_END") {
		for _, b := range k.waitingForReservations() {
			if reserve.Of(b) != r.Name {
				continue
			}
			if err := k.clearReservation(ctx, b, b.Spec.Job.Hold); err != nil {
				return err
			}
		}
	}
	return client.IgnoreNotFound(k.Cluster.Client.Delete(ctx, r))
}

// reservations returns the reservations in the order of their names.
func (k *Keeper) reservations() []*v1alpha1.Reservation {
	all := k.Cluster.Reservations.List()
	slices.SortFunc(all, func(a, b *v1alpha1.Reservation) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// waitingForReservations returns the pending jobs that request a reservation, in the order
// of their ids.
func (k *Keeper) waitingForReservations() []*v1alpha1.BatchJob {
	all := slices.DeleteFunc(k.Cluster.Jobs.List(), func(b *v1alpha1.BatchJob) bool {
		return !b.AwaitsStart() || b.Spec.Job.Reservation == ""
	})
	slices.SortFunc(all, func(a, b *v1alpha1.BatchJob) int { return cmp.Compare(a.Spec.JobID, b.Spec.JobID) })
	return all
}

// holdOrphans holds the jobs that wait for a deleted reservation.
func (k *Keeper) holdOrphans(ctx context.Context) error {
	for _, b := range k.waitingForReservations() {
		if b.Spec.Cancel != nil {
			continue
		}
		if _, known := k.Cluster.Reservations.Get(v1alpha1.ReservationObject(b.Spec.Job.Reservation)); known {
			continue
		}
		hold := job.HoldDeleted + b.Spec.Job.Reservation
		if b.Spec.Job.Hold == "admin" { // which the owner could not release
			hold = b.Spec.Job.Hold
		}
		if err := k.clearReservation(ctx, b, hold); err != nil {
			return err
		}
	}
	return nil
}

// clearReservation removes the request for a reservation from a pending job and
// sets its hold.
func (k *Keeper) clearReservation(ctx context.Context, b *v1alpha1.BatchJob, hold string) error {
	b, err := k.Cluster.EnsureCreated(ctx, b)
	if err != nil {
		return err
	}
	n := b.DeepCopy()
	n.Spec.Job.Reservation, n.Spec.Job.Hold = "", hold
	if err := k.Cluster.Client.Patch(ctx, n, client.MergeFrom(b)); err != nil {
		return client.IgnoreNotFound(err)
	}
	k.Cluster.ApplyJob(n)
	return nil
}

// nextStart returns when a reservation that has ended starts again; over is true if it
// does not.
func nextStart(s *v1alpha1.ReservationSpec, now time.Time) (next time.Time, over bool) {
	if s.Duration < 0 {
		return time.Time{}, false
	}
	lasts := time.Duration(s.Duration) * time.Minute
	start := s.StartTime.Time
	if now.Before(start.Add(lasts)) {
		return time.Time{}, false
	}
	for !now.Before(start.Add(lasts)) {
		var again bool
		if start, again = snapshot.NextOccurrence(s, start); !again {
			return time.Time{}, true
		}
	}
	return start, false
}

// isUsed reports whether a job without a final state names the reservation.
func (k *Keeper) isUsed(r *v1alpha1.Reservation) bool {
	for _, b := range k.Cluster.Jobs.List() {
		if reserve.Of(b) == r.Name && !b.IsFinal() {
			return true
		}
	}
	return false
}
