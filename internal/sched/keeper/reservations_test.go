package keeper

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
)

func TestNextStartOfReservations(t *testing.T) {
	friday := time.Date(2026, 1, 2, 8, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		flag  string
		after time.Duration
		next  time.Time
		over  bool
	}{
		{"", 59 * time.Minute, time.Time{}, false},
		{"", time.Hour, time.Time{}, true},
		{"DAILY", 59 * time.Minute, time.Time{}, false},
		{"DAILY", time.Hour, friday.AddDate(0, 0, 1), false},
		{"DAILY", 73 * time.Hour, friday.AddDate(0, 0, 4), false},
		{"WEEKDAY", time.Hour, friday.AddDate(0, 0, 3), false},
		{"WEEKEND", time.Hour, friday.AddDate(0, 0, 1), false},
		{"WEEKLY", time.Hour, friday.AddDate(0, 0, 7), false},
		{"HOURLY", time.Hour, friday.Add(time.Hour), false},
	} {
		s := &v1alpha1.ReservationSpec{StartTime: metav1.NewTime(friday), Duration: 60}
		if tt.flag != "" {
			s.Flags = []string{tt.flag}
		}
		if next, over := nextStart(s, friday.Add(tt.after)); !next.Equal(tt.next) || over != tt.over {
			t.Errorf("%+v: %v %v", tt, next, over)
		}
	}
	if next, over := nextStart(&v1alpha1.ReservationSpec{StartTime: metav1.NewTime(friday), Duration: -1}, friday.AddDate(9, 0, 0)); over || !next.IsZero() {
		t.Error("an endless reservation ended")
	}
}

// A job that waits for a reservation which has ended or was deleted is held and no
// longer requests it. It is not held if the reservation has the flag
// NO_HOLD_JOBS_AFTER_END.
func TestJobsOfDeletedReservationsAreHeld(t *testing.T) {
	now := time.Now()
	c := fake.Cluster(interceptor.Funcs{})
	k := New(Config{Cluster: c, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	reservation := func(name string, flags ...string) *v1alpha1.Reservation {
		r := &v1alpha1.Reservation{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ReservationObject(name), UID: types.UID(name)}}
		r.Spec = v1alpha1.ReservationSpec{StartTime: metav1.NewTime(now.Add(-time.Hour)), Duration: 30, Flags: flags}
		return r
	}
	for _, r := range []*v1alpha1.Reservation{reservation("ended"), reservation("freed", "NO_HOLD_JOBS_AFTER_END"), reservation("endless")} {
		if r.Name == v1alpha1.ReservationObject("endless") {
			r.Spec.Duration = -1
		}
		if err := c.Client.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		c.Reservations.Apply(r)
	}
	for i, name := range []string{"ended", "freed", "endless", "nosuch", ""} {
		b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Namespace: "user-a", Name: fmt.Sprint("j-", i+1), UID: types.UID(fmt.Sprint(i + 1))}}
		b.Spec.JobID, b.Spec.User, b.Spec.Job.Reservation = int64(i+1), "a", name
		if err := c.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		c.ApplyJob(b)
	}
	for _, r := range c.Reservations.List() {
		if err := k.maintainReservation(t.Context(), r, map[string]time.Time{}); err != nil {
			t.Fatal(err)
		}
		left := &v1alpha1.Reservation{}
		if c.Client.Get(t.Context(), client.ObjectKey{Name: r.Name}, left) != nil {
			c.Reservations.Remove(r, now)
		}
	}
	if err := k.holdOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"deleted:ended ", " ", " endless", "deleted:nosuch ", " "} {
		b, _ := c.Job(int64(i + 1))
		if got := b.Spec.Job.Hold + " " + b.Spec.Job.Reservation; got != want {
			t.Errorf("job %d: %q, want %q", i+1, got, want)
		}
	}
}
