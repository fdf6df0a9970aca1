package table_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/fake"
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

// always is a Room that has room.
func always(int, func(table.Key) int, int64) error { return nil }

// TestPlacesCountUntilTheJobArrives: a place counts for the user, the account, the QOS and
// their combinations, and exactly once with the job that it was for.
func TestPlacesCountUntilTheJobArrives(t *testing.T) {
	c, tab := newTable(nil)
	p := &table.Place{Object: "user-anna/j-7", User: "anna", Account: "lab", QOS: "high", Jobs: 3, Bytes: 1000}
	if err := tab.Reserve(p, always); err != nil {
		t.Fatal(err)
	}
	keys := []table.Key{
		{User: "anna"}, {Account: "lab"}, {QOS: "high"}, {User: "anna", Account: "lab"}, {User: "anna", QOS: "high"},
	}
	check := func(when string, want int, bytes int64) {
		t.Helper()
		for _, k := range keys {
			if n := tab.Active(k); n != want {
				t.Errorf("%s: %d jobs of %+v, want %d", when, n, k, want)
			}
		}
		if all, _ := tab.Stored("anna", 7); all != bytes {
			t.Errorf("%s: %d bytes, want %d", when, all, bytes)
		}
	}
	check("reserved", 3, 1000)
	tab.Take(p, 7)
	b := batchJob(7, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Account, b.Spec.Job.QOS = "lab", "high" })
	fake.Feed(c, b)
	_, size := tab.Stored("anna", 7)
	if size == 0 {
		t.Fatal("the job has no size")
	}
	check("the job is there", 1, size)
	tab.GiveBack(p)
	tab.GiveBack(p)
	check("given back as well", 1, size)
	if !tab.Resent("user-anna/j-7") {
		t.Error("an object that was stored a moment ago is new")
	}
	c.Jobs.Remove(b, time.Now())
	check("the job is gone", 0, 0)
	if tab.Resent("user-anna/j-7") {
		t.Error("an object that was removed is still known; its name may be used again")
	}
}

// TestNoRoom: a refused place counts for nothing, and Room sees what the others take.
func TestNoRoom(t *testing.T) {
	c, tab := newTable(nil)
	fake.Feed(c, batchJob(1, "anna", nil), batchJob(2, "anna", fake.InState(v1alpha1.StateCompleted)))
	if err := tab.Reserve(&table.Place{User: "anna", Jobs: 10, Bytes: 5}, always); err != nil {
		t.Fatal(err)
	}
	stored, _ := tab.Stored("anna", 0)
	full := errors.New("full")
	room := func(all int, active func(table.Key) int, bytes int64) error {
		if n := active(table.Key{User: "anna"}); all != 12 || n != 11 || bytes != stored {
			t.Errorf("%d jobs, %d active of anna, %d bytes; want 12, 11, %d", all, n, bytes, stored)
		}
		return full
	}
	for range 2 {
		if err := tab.Reserve(&table.Place{User: "anna", Jobs: 4, Bytes: 9}, room); !errors.Is(err, full) {
			t.Errorf("%v", err)
		}
	}
	if n := tab.Active(table.Key{User: "anna"}); n != 11 {
		t.Errorf("%d active jobs after a refusal", n)
	}
}

// TestPlacesExpire: a place whose job never arrived is released after a while, also when
// its id is known.
func TestPlacesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, tab := newTable(nil)
		late := &table.Place{Object: "user-anna/a", User: "anna", Jobs: 2, Bytes: 10}
		if err := tab.Reserve(late, always); err != nil {
			t.Fatal(err)
		}
		tab.Take(late, 9)
		time.Sleep(31 * time.Second)
		if err := tab.Reserve(&table.Place{User: "ben", Jobs: 1}, always); err != nil {
			t.Fatal(err)
		}
		if n := tab.Active(table.Key{User: "anna"}); n != 0 {
			t.Errorf("%d jobs of a place that has expired", n)
		}
		tab.Take(late, 9)
		tab.GiveBack(late)
		if all, _ := tab.Stored("anna", 9); all != 0 || tab.Active(table.Key{User: "anna"}) != 0 {
			t.Errorf("an expired place still counts: %d bytes", all)
		}
	})
}
