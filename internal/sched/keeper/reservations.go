package keeper

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/snapshot"
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
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *Keeper) keepReservation(ctx context.Context, r *v1alpha1.Reservation, idle map[string]time.Time) error {
	now := k.Now()
	if next, over := nextTime(&r.Spec, now); !next.IsZero() {
		n := r.DeepCopy()
		n.Spec.StartTime = metav1.NewTime(next)
		if err := k.Cluster.Client.Update(ctx, n); err != nil {
			return client.IgnoreNotFound(err)
		}
		k.Cluster.Reservations.Apply(n)
		return nil
	} else if over {
		return client.IgnoreNotFound(k.Cluster.Client.Delete(ctx, r))
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
	return client.IgnoreNotFound(k.Cluster.Client.Delete(ctx, r))
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
		if b.Spec.Job.Reservation != "" && !snapshot.Finished(b) && v1alpha1.ReservationObject(b.Spec.Job.Reservation) == r.Name {
			return true
		}
	}
	return false
}
