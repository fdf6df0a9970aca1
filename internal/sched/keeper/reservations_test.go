package keeper

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

func TestReservationsComeAgain(t *testing.T) {
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
		if next, over := nextTime(s, friday.Add(tt.after)); !next.Equal(tt.next) || over != tt.over {
			t.Errorf("%+v: %v %v", tt, next, over)
		}
	}
	if next, over := nextTime(&v1alpha1.ReservationSpec{StartTime: metav1.NewTime(friday), Duration: -1}, friday.AddDate(9, 0, 0)); over || !next.IsZero() {
		t.Error("a reservation without end ended")
	}
}
