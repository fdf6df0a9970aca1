package keeper

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/reserve"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
	"github.com/berth-hpc/berth/translate/job"
)

// reservationsEvery is how often reservations are looked at. Planning does not
// depend on it: a plan leaves out by itself what is over.
const reservationsEvery = 5 * time.Second

// keepReservations moves repeated reservations that are over to their next
// time, and deletes the others, until ctx ends.
func (k *Keeper) keepReservations(ctx context.Context) {
	idle := map[string]time.Time{} // since when nobody has used it
	tick := time.NewTicker(reservationsEvery)
	defer tick.Stop()
	for {
		for _, r := range k.Cluster.Reservations.List() {
			if err := k.keepReservation(ctx, r, idle); err != nil && ctx.Err() == nil {
				k.Log.Warn("reservation is tried again", "reservation", r.Name, "error", err)
			}
		}
		if err := k.holdOrphans(ctx); err != nil && ctx.Err() == nil {
			k.Log.Warn("jobs whose reservation is gone are held later", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *Keeper) keepReservation(ctx context.Context, r *v1alpha1.Reservation, idle map[string]time.Time) error {
	now := k.Now()
	next, over := nextTime(&r.Spec, now)
	switch {
	case !next.IsZero():
		return k.changeReservation(ctx, r, func(s *v1alpha1.ReservationSpec) { s.StartTime = metav1.NewTime(next) })
	case over && k.emptying(r):
		return nil
	case over:
		return k.removeReservation(ctx, r)
	}
	if nodes, moved := k.replaced(r); moved {
		return k.changeReservation(ctx, r, func(s *v1alpha1.ReservationSpec) { s.Nodes = nodes })
	}
	if r.Spec.PurgeComp <= 0 || now.Before(r.Spec.StartTime.Time) || k.used(r) {
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
	return k.removeReservation(ctx, r)
}

func (k *Keeper) changeReservation(ctx context.Context, r *v1alpha1.Reservation, change func(*v1alpha1.ReservationSpec)) error {
	n := r.DeepCopy()
	change(&n.Spec)
	if err := k.Cluster.Client.Update(ctx, n); err != nil {
		return client.IgnoreNotFound(err)
	}
	k.Cluster.Reservations.Apply(n)
	return nil
}

// replaced is the nodes that the reservation should have now.
func (k *Keeper) replaced(r *v1alpha1.Reservation) (nodes string, moved bool) {
	if k.Nodes == nil {
		return "", false
	}
	p := reserve.Pool{Nodes: k.Nodes(), Reservations: k.Cluster.Reservations.List(), Jobs: k.Cluster.Jobs.List()}
	return p.Replace(r)
}

// emptying tells whether jobs still hold nodes in a reservation that is over,
// and has another look at them.
func (k *Keeper) emptying(r *v1alpha1.Reservation) bool {
	left := false
	for _, b := range k.Cluster.Jobs.List() {
		if reserve.Of(b) == r.Name && b.HoldsAllocation() && !reserve.Flagged(&r.Spec, "FLEX") {
			k.queue.Add(b.Spec.JobID)
			left = true
		}
	}
	return left
}

// expires is when the job's reservation ends it; zero: nothing does.
func (k *Keeper) expires(b *v1alpha1.BatchJob) time.Time {
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

// reservationChanged looks at the jobs in a reservation whose time has changed.
func (k *Keeper) reservationChanged(old, now *v1alpha1.Reservation) {
	if old == nil || now == nil || old.Spec.StartTime.Equal(&now.Spec.StartTime) && old.Spec.Duration == now.Spec.Duration {
		return
	}
	for _, b := range k.Cluster.Jobs.List() {
		if reserve.Of(b) == now.Name && b.HoldsAllocation() {
			k.queue.Add(b.Spec.JobID)
		}
	}
}

// removeReservation deletes the reservation. Jobs that wait for it are held,
// unless it says that they need it no more (NO_HOLD_JOBS_AFTER_END).
func (k *Keeper) removeReservation(ctx context.Context, r *v1alpha1.Reservation) error {
	if reserve.Flagged(&r.Spec, "NO_HOLD_JOBS_AFTER_END") {
		for _, b := range k.Cluster.Jobs.List() {
			if !b.AwaitsStart() || b.Spec.Job.Reservation == "" || reserve.Of(b) != r.Name {
				continue
			}
			if err := k.dropReservation(ctx, b, b.Spec.Job.Hold); err != nil {
				return err
			}
		}
	}
	return client.IgnoreNotFound(k.Cluster.Client.Delete(ctx, r))
}

// holdOrphans holds the jobs that wait for a reservation which is gone.
func (k *Keeper) holdOrphans(ctx context.Context) error {
	for _, b := range k.Cluster.Jobs.List() {
		if !b.AwaitsStart() || b.Spec.Job.Reservation == "" || b.Spec.Cancel != nil {
			continue
		}
		if _, known := k.Cluster.Reservations.Get(v1alpha1.ReservationObject(b.Spec.Job.Reservation)); known {
			continue
		}
		hold := job.HoldDeleted + b.Spec.Job.Reservation
		if b.Spec.Job.Hold == "admin" { // which the owner could not release
			hold = b.Spec.Job.Hold
		}
		if err := k.dropReservation(ctx, b, hold); err != nil {
			return err
		}
	}
	return nil
}

// dropReservation has a waiting job want no reservation any more.
func (k *Keeper) dropReservation(ctx context.Context, b *v1alpha1.BatchJob, hold string) error {
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

// nextTime is when a reservation that is over begins again; over tells that it
// never does.
func nextTime(s *v1alpha1.ReservationSpec, now time.Time) (next time.Time, over bool) {
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
		if start, again = snapshot.NextReservation(s, start); !again {
			return time.Time{}, true
		}
	}
	return start, false
}

// used tells whether a job that is not over names the reservation.
func (k *Keeper) used(r *v1alpha1.Reservation) bool {
	for _, b := range k.Cluster.Jobs.List() {
		if reserve.Of(b) == r.Name && !b.IsFinal() {
			return true
		}
	}
	return false
}
