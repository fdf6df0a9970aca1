package table_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/internal/queue/table"
)

// If an object is sent again, its earlier place is released, also if a still earlier
// one of the same object has expired in between.
func TestPlacesOfOneObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tab := newTable(plans{})
		taken := 0
		reserve := func(object string) {
			t.Helper()
			room := func(all int, _ func(table.Key) int, _ int64) error { taken = all; return nil }
			if err := tab.Reserve(&table.Place{Object: object, User: "anna", Jobs: 1}, room); err != nil {
				t.Fatal(err)
			}
		}
		reserve("user-anna/a")
		time.Sleep(20 * time.Second)
		if tab.Resent("user-anna/a") {
			t.Error("it was never stored")
		}
		reserve("user-anna/a")
		time.Sleep(15 * time.Second)
		reserve("user-anna/b")
		tab.Resent("user-anna/a")
		if reserve("user-anna/a"); taken != 1 {
			t.Errorf("%d places are taken beside the new one, want that of b", taken)
		}
	})
}
