package acct_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/acct/usage"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

func at(seconds int64) *metav1.MicroTime {
	t := metav1.NewMicroTime(time.Unix(seconds, 0))
	return &t
}

// batchJob returns a job of anna that, unless it is pending, ran from 110 to 170 on two
// CPUs.
func batchJob(id int64, state string) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("j", id), UID: types.UID(fmt.Sprint("uid-", id))},
	}
	b.Spec = v1alpha1.BatchJobSpec{JobID: id, User: "anna", Partition: "main", SubmitTime: at(100)}
	b.Status.State, b.Status.Attempt = state, 1
	if state != v1alpha1.StatePending {
		b.Status.StartTime, b.Status.EndTime = at(110), at(170)
		b.Status.Allocation = &v1alpha1.Allocation{
			Nodes: []v1alpha1.NodeAllocation{{Name: "n1", CPUs: 2, Memory: 1024}},
		}
	}
	return b
}

// row returns the row of a batchJob.
func row(b *v1alpha1.BatchJob) status.Job {
	return status.Job{
		ID:       b.Spec.JobID,
		User:     b.Spec.User,
		State:    b.Status.State,
		Submit:   100,
		Eligible: 100,
		Start:    110,
		End:      170,
		Nodes:    1,
		CPUs:     2,
		NodeList: "n1",
		TRES:     "cpu=2,mem=1G,node=1,billing=2",
	}
}

// recorder runs a Recorder until stop is called.
func recorder(t *testing.T, c *control.Cluster, address string) (r *acct.Recorder, stop func()) {
	t.Helper()
	return run(t, acct.Config{Address: address, Cluster: c, Row: row, Now: time.Now})
}

// run runs a Recorder until stop is called.
func run(t *testing.T, c acct.Config) (r *acct.Recorder, stop func()) {
	r = acct.NewRecorder(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return r, stop
}

// usedBy returns what the user has used, without decay.
func usedBy(r *acct.Recorder, user string, now time.Time, factor func(string) float64) map[string]float64 {
	used, _ := r.Usage().Used(&usage.Query{Now: now, Factor: factor})
	return used[status.AssociationKey{User: user}]
}

// A job is listed before it is stored, is stored with every attempt, and stays stored
// when its object is gone and everything restarts.
func TestRecorderFollowsTheQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	c := fake.Cluster(interceptor.Funcs{})
	r, stop := recorder(t, c, path)
	b := batchJob(7, v1alpha1.StateCompleted)
	b.Status.Restarts = 1
	b.Status.Past = []v1alpha1.PastAttempt{
		{Attempt: 1, State: "REQUEUED", Start: *at(150), End: *at(160), CPUs: 1, Nodes: 1, NodeList: "n9"},
	}
	b.Status.Attempt = 2
	fake.Feed(c, b)
	list, _, err := r.List(t.Context(), &status.RecordQuery{Jobs: []string{"7"}, Duplicates: true})
	if err != nil || len(list) != 2 || list[0].State != "REQUEUED" || list[0].NodeList != "n9" ||
		list[1].State != "COMPLETED" {
		t.Fatalf("%v %+v", err, list)
	}
	eventually.Holds(t, "the record to be stored", func() bool { return r.Stored(b) })
	used := usedBy(r, "anna", time.Unix(200, 0), nil)
	if used["cpu"] != 130 || used["mem"] != 1024*60 || used["wall"] <= 0 {
		t.Errorf("used: %v", used)
	}
	step := wire.StepRecord{ID: 0, Name: "a", State: "COMPLETED", Nodes: []string{"n1"}, Tasks: 1, CPUs: 1}
	r.RecordSteps(7, 2, []wire.StepRecord{step})
	r.RecordSteps(7, 1, []wire.StepRecord{{ID: 3, Name: "old", State: "CANCELLED"}})
	r.RecordSteps(7, 9, []wire.StepRecord{{ID: 5, Name: "of an unknown attempt"}})
	c.Jobs.Remove(b, time.Now())
	stop()

	r, _ = recorder(t, fake.Cluster(interceptor.Funcs{}), path)
	eventually.Holds(t, "the new process to answer", func() bool {
		list, _, err = r.List(t.Context(), &status.RecordQuery{Jobs: []string{"7"}, Duplicates: true})
		return err == nil && len(list) == 2
	})
	if s := list[1].Steps; len(s) != 2 || s[0].Step != "batch" || s[1].Name != "a" {
		t.Errorf("steps of the last run: %+v", s)
	}
	if s := list[0].Steps; len(s) != 2 || s[1].Name != "old" {
		t.Errorf("steps of the first run: %+v", s)
	}
}

// While another process holds the lock of the database, only the writer waits for it. Each
// other call that waited would take lockTimeout, and all of them longer than the test may.
func TestLockedDatabaseDelaysNoCaller(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	c := fake.Cluster(interceptor.Funcs{})
	r, _ := recorder(t, c, path)
	first := batchJob(1, v1alpha1.StateCompleted)
	fake.Feed(c, first)
	eventually.Holds(t, "the first record", func() bool { return r.Stored(first) })
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	b := batchJob(2, v1alpha1.StateCompleted)
	for range 1000 {
		fake.Feed(c, b.DeepCopy())
		r.RecordSteps(2, 1, []wire.StepRecord{{ID: 0}})
		if r.Stored(b) {
			t.Fatal("a job counts as stored while the database is locked")
		}
		if list, _, err := r.List(t.Context(), &status.RecordQuery{}); err != nil || len(list) != 2 {
			t.Fatalf("%d jobs are listed, error %v", len(list), err)
		}
	}
	if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the second record", func() bool { return r.Stored(b) })
}

// While the database is unavailable, jobs are listed from the queue, with a warning, and
// finished ones stay until they can be stored.
func TestUnavailableDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	c := fake.Cluster(interceptor.Funcs{})
	r, _ := recorder(t, c, filepath.Join(dir, "a.db"))
	b := batchJob(1, v1alpha1.StateCompleted)
	fake.Feed(c, b)
	var list []status.Record
	var warning string
	eventually.Holds(t, "the warning", func() bool {
		var err error
		list, warning, err = r.List(t.Context(), &status.RecordQuery{Jobs: []string{"1"}})
		return err == nil && strings.Contains(warning, dir)
	})
	if len(list) != 1 || r.Stored(b) {
		t.Errorf("%d jobs are listed, want 1; stored: %v", len(list), r.Stored(b))
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the record", func() bool { return r.Stored(b) })
}

// Without a database no job waits to be stored, and lists say why they are empty.
func TestNoAccounting(t *testing.T) {
	c := fake.Cluster(interceptor.Funcs{})
	r, _ := recorder(t, c, "")
	b := batchJob(1, v1alpha1.StateCompleted)
	fake.Feed(c, b)
	if !r.Stored(b) {
		t.Error("a job waits to be stored, without a database")
	}
	if _, warning, err := r.List(t.Context(), &status.RecordQuery{Jobs: []string{"1"}}); err != nil || warning == "" {
		t.Errorf("%q %v", warning, err)
	}
}

// Usage is multiplied by the factor of the QOS, both right after the end of a job and
// when a new process reads it from the database.
func TestUsageCountsByQOS(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	ended := time.Now().Truncate(time.Hour).Add(-time.Hour)
	c := fake.Cluster(interceptor.Funcs{})
	start := func(c *control.Cluster) (*acct.Recorder, func()) {
		return run(t, acct.Config{Address: path, Cluster: c, Now: time.Now, Row: func(b *v1alpha1.BatchJob) status.Job {
			j := row(b)
			j.QOS, j.Start, j.End = b.Spec.Job.QOS, ended.Unix()-60, ended.Unix()
			return j
		}})
	}
	cpus := func(r *acct.Recorder) float64 {
		double := func(qos string) float64 { return map[string]float64{"expensive": 2, "free": 0, "": 1}[qos] }
		return usedBy(r, "anna", time.Now(), double)["cpu"]
	}
	r, stop := start(c)
	var jobs []*v1alpha1.BatchJob
	for id, qos := range map[int64]string{1: "", 2: "expensive", 3: "free"} {
		b := batchJob(id, v1alpha1.StateCompleted)
		b.Spec.Job.QOS = qos
		began, end := metav1.NewMicroTime(ended.Add(-time.Minute)), metav1.NewMicroTime(ended)
		b.Status.StartTime, b.Status.EndTime = &began, &end
		jobs = append(jobs, b)
		fake.Feed(c, b)
	}
	for _, b := range jobs {
		eventually.Holds(t, "a record to be stored", func() bool { return r.Stored(b) })
	}
	const want = 60*2 + 2*60*2
	if got := cpus(r); got != want {
		t.Errorf("%v CPU-seconds, want %d", got, want)
	}
	stop()
	r, _ = start(fake.Cluster(interceptor.Funcs{}))
	eventually.Holds(t, "the database to be read", func() bool { return cpus(r) == want })
}
