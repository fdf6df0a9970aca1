package acct_test

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/status"
)

// The database adds up plain records, the recorder those with devices or a suspension,
// and the queue those that have not ended: together every attempt counts once.
func TestReportCountsEveryRunOnce(t *testing.T) {
	for name, address := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "a.db") },
		"postgres": func(t *testing.T) string { return accttest.Postgres(t) },
	} {
		t.Run(name, func(t *testing.T) { reportOnce(t, address(t)) })
	}
}

func reportOnce(t *testing.T, address string) {
	s, err := store.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	accttest.Put(t, s, []store.Entry{
		accttest.Entry(1, "anna", nil), // 1010 to 1110, 2 CPUs, 1 GiB
		accttest.Entry(2, "anna", func(r *status.Record) { r.Start, r.End, r.WCKey = 2010, 2210, "k" }),
		accttest.Entry(
			3,
			"ben",
			func(r *status.Record) { r.AllocTRES = "billing=2,cpu=2,gres/gpu=3,mem=1G,node=1" },
		), // 3010 to 3110
		accttest.Entry(
			4,
			"ben",
			func(r *status.Record) { r.Suspended = 60 },
		), // 4010 to 4110
		accttest.Entry(
			5,
			"carl",
			func(r *status.Record) { r.Start, r.End, r.State, r.AllocTRES, r.CPUs = 0, 5100, "CANCELLED", "", 0 },
		),
		accttest.Entry(
			6,
			"carl",
			func(r *status.Record) { r.End, r.State = 0, "RUNNING" },
		), // its object is gone; from 6010 on
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c := fake.Cluster(interceptor.Funcs{})
	r, _ := recorder(t, c, address)
	over := batchJob(7, v1alpha1.StateCompleted) // stored by the recorder, and in the queue
	running := batchJob(8, v1alpha1.StateRunning)
	for _, b := range []*v1alpha1.BatchJob{over, running} {
		at := metav1.NewMicroTime(time.Unix(7000, 0))
		b.Spec.SubmitTime, b.Status.EligibleTime, b.Status.StartTime = &at, &at, &at
		if b == over {
			end := metav1.NewMicroTime(time.Unix(7050, 0))
			b.Status.EndTime = &end
		}
		fake.Feed(c, b)
	}
	eventually.Holds(t, "the record to be stored", func() bool { return r.Stored(over) })
	report := func(start, end int64) map[string][2]int64 {
		t.Helper()
		list, err := r.Report(t.Context(), &status.UsageQuery{Start: start, End: end})
		if err != nil {
			t.Fatal(err)
		}
		out := map[string][2]int64{}
		for _, u := range list {
			if used := [2]int64{u.TRES["cpu"], u.TRES["gres/gpu"]}; used != [2]int64{} {
				out[u.User+u.WCKey] = used
			}
		}
		return out
	}
	for _, x := range []struct {
		start, end int64
		want       map[string][2]int64
	}{
		{1000, 3000, map[string][2]int64{"anna": {200, 0}, "annak": {400, 0}}},
		{1060, 2110, map[string][2]int64{"anna": {100, 0}, "annak": {200, 0}}},
		{3000, 5000, map[string][2]int64{"ben": {280, 300}}},
		{5050, 6110, map[string][2]int64{"carl": {200, 0}}},
	} {
		if got := report(x.start, x.end); !reflect.DeepEqual(got, x.want) {
			t.Errorf("%d to %d: %v, want %v", x.start, x.end, got, x.want)
		}
	}
	list, err := r.Report(t.Context(), &status.UsageQuery{Start: 1, End: 5000, Jobs: true})
	if err != nil || len(list) != 3 || list[0].Jobs != 1 || list[2].Jobs != 2 || list[2].CPUs != 2 {
		t.Errorf("by size: %+v, %v", list, err)
	}
	if id, err := r.HighestJobID(t.Context()); err != nil || id < 7 {
		t.Errorf("the highest id is %d: %v", id, err)
	}
	want := map[string][2]int64{"anna": {2*50 + 2*100, 0}, "carl": {200, 0}}
	if got := report(7000, 7100); !reflect.DeepEqual(got, want) {
		t.Errorf("of the queue: %v, want %v", got, want)
	}
	leader := r
	r = acct.NewRecorder(acct.Config{Address: address, ReadOnly: true, Cluster: c, Row: leader.Row, Now: leader.Now})
	go r.Run(t.Context())
	eventually.Holds(t, "a reader to have opened the database", func() bool {
		_, err := r.Report(t.Context(), &status.UsageQuery{Start: 1, End: 2})
		return err == nil
	})
	if got := report(7000, 7100); !reflect.DeepEqual(got, want) {
		t.Errorf("a reader has %v, want %v", got, want)
	}
}
