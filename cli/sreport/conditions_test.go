package sreport

import (
	"testing"
	"time"
)

// Seen on Slurm 22.05.8 at 14:58.
func TestWholeHours(t *testing.T) {
	at := func(text string) time.Time {
		x, err := time.Parse("15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, c := range [][4]string{
		{"10:31", "14:58", "11:00", "15:00"}, {"10:29", "14:29", "10:00", "14:00"}, {"10:29", "14:30", "10:00", "15:00"},
		{"10:31", "14:00", "11:00", "14:00"}, {"10:00", "20:00", "10:00", "15:00"},
	} {
		o := &Options{start: at(c[0]), end: at(c[1])}
		if o.roundToHours(at("14:58")); !o.start.Equal(at(c[2])) || !o.end.Equal(at(c[3])) {
			t.Errorf("%s to %s: %v to %v", c[0], c[1], o.start, o.end)
		}
	}
}
