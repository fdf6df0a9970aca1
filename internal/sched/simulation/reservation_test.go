package simulation

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/reserve"
)

// reservation is a reservation that a process has received.
type reservation struct {
	spec  v1alpha1.ReservationSpec
	since time.Time
}

// end returns the end of the reservation's present time.
func (r *reservation) end() time.Time { return end(&r.spec) }

func end(s *v1alpha1.ReservationSpec) time.Time {
	return s.StartTime.Add(time.Duration(s.Duration) * time.Minute)
}

// reservationKnown notes that the process has received the reservation from its watch.
func (t *truth) reservationKnown(p *process, o *v1alpha1.Reservation, deleted bool) {
	if deleted {
		delete(p.reservations, o.Name)
		return
	}
	p.reservations[o.Name] = reservation{o.Spec, time.Now()}
}

// reservationChanged notes when a reservation is over.
func (t *truth) reservationChanged(o *v1alpha1.Reservation) {
	if at := end(&o.Spec); !slices.ContainsFunc(t.ends[o.Name], at.Equal) {
		t.ends[o.Name] = append(t.ends[o.Name], at)
	}
}

// longestReservation is what reserve makes at most.
const longestReservation = 8 * time.Minute

// longestStart is longer than what passes between the placement of a job and its start.
const longestStart = 2 * time.Minute

// endsWithReservation reports whether the job's reservation is over, which may have ended
// before the job's agents were ready.
func (t *truth) endsWithReservation(b *v1alpha1.BatchJob) bool {
	return slices.ContainsFunc(t.ends[reserve.Of(b)], func(at time.Time) bool {
		// With several clocks, the job may have started after the end by one of them, or before
		// the beginning.
		if t.sim.jumping {
			return !at.Add(-longestReservation).After(t.sim.latest())
		}
		return b.Status.StartTime != nil && at.After(b.Status.StartTime.Add(-longestStart)) && !at.After(t.sim.latest())
	})
}

// planTime is longer than what passes between the event that a plan is made for and its
// writes, and lateness than what passes between its snapshot and its writes.
const (
	planTime = time.Minute
	lateness = 10 * time.Second
)

// checkReservations checks that a job that is placed respects the reservations that its
// plan knew: it uses the nodes of its own while that is active, and no others' nodes.
func (t *truth) checkReservations(b *v1alpha1.BatchJob) {
	if t.sim.jumping || t.sim.leader == nil || b.Status.StartTime == nil || b.Status.Allocation == nil {
		return
	}
	own, now := reserve.Of(b), b.Status.StartTime.Time
	last := now.Add(time.Duration(b.Status.TimeLimit) * time.Minute)
	for name, r := range t.sim.leader.reservations {
		if time.Since(r.since) < planTime {
			continue
		}
		start, end := r.spec.StartTime.Time, r.end()
		isOn := func(n v1alpha1.NodeAllocation) bool { return n.Node == r.spec.Nodes || n.Name == r.spec.Nodes }
		switch {
		case name == own && (now.Before(start) || now.After(end.Add(lateness))):
			t.violate("job %d began at %s, outside of its reservation from %s to %s", b.Spec.JobID, now, start, end)
		case name == own && slices.ContainsFunc(b.Status.Allocation.Nodes,
			func(n v1alpha1.NodeAllocation) bool { return !isOn(n) }):
			t.violate("job %d of reservation %s runs on other nodes", b.Spec.JobID, name)
		case name != own && now.Before(end) && last.After(start.Add(lateness)) && slices.ContainsFunc(b.Status.Allocation.Nodes, isOn):
			t.violate("job %d runs until %s on a node of reservation %s, from %s to %s", b.Spec.JobID,
				last, name, start, end)
		}
	}
}

// reserve reserves a node that no other reservation has, as the administrator.
func (u *users) reserve() {
	s := u.sim
	free := map[string]bool{}
	for i := range s.nodes {
		free[nodeName(i)] = true
	}
	for _, o := range s.api.list(kindReservation) {
		delete(free, o.(*v1alpha1.Reservation).Spec.Nodes) //nolint:forcetypeassert // of that kind
	}
	name := nodeName(s.random.IntN(s.nodes))
	if !free[name] {
		return
	}
	u.reservations++
	r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("r%d", u.reservations)}}
	r.Spec = v1alpha1.ReservationSpec{
		StartTime: metav1.NewTime(s.now().Add(s.between(0, 3*time.Minute)).Truncate(time.Second)),
		Duration:  1 + s.random.Int32N(8), Nodes: name, Users: []string{"a"}, Flags: []string{"IGNORE_JOBS"},
	}
	switch s.random.IntN(5) {
	case 0:
		r.Spec.Flags = append(r.Spec.Flags, "HOURLY")
	case 1:
		r.Spec.Flags = append(r.Spec.Flags, "MAGNETIC")
	case 2:
		r.Spec.PurgeComp = 60
	case 3:
		r.Spec.Flags = append(r.Spec.Flags, "NO_HOLD_JOBS_AFTER_END")
	}
	if _, err := s.api.create(r); err != nil {
		panic(err) // the name is new
	}
	s.record("reserve " + r.Name + " " + name)
}

// deleteReservations deletes all reservations, as the administrator.
func (u *users) deleteReservations() {
	for _, o := range slices.Clone(u.sim.api.list(kindReservation)) {
		_ = u.sim.api.delete(keyOf(o), client.DeleteOptions{})
	}
}
