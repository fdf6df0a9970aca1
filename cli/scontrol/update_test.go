package scontrol

import "testing"

// Of a key that is given several times, in whatever spelling, the last counts.
func TestLastOfEqualKeysCounts(t *testing.T) {
	for range 100 {
		s, err := specify([]string{"comment=a", "JobId=3", "Comment=b", "COMMENT=c", "Comm=d"}, notUpdated)
		if err != nil || s.names != "3" || len(s.set) != 1 || s.set["Comment"] != "d" {
			t.Fatalf("%+v, %v", s, err)
		}
	}
}
