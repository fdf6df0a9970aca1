package agentapi_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
)

func TestGang(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 3)
	w := h.helloAll(t, 7, "anna", 1, 3)
	if h.ready != 1 {
		t.Errorf("GangReady was called %d times, want once", h.ready)
	}
	for i := range w {
		if w[i].Index != int32(i) || w[i].JobID != 7 || len(w[i].Hosts) != 3 || w[i].Hosts[2].Name != "n3" || w[i].Hosts[2].Address != "10.0.0.3:7000" || w[i].Hosts[2].Tasks != 1 {
			t.Errorf("node %d: %+v", i, w[i])
		}
		if w[i].UID != 1001 || w[i].User != "anna" || w[i].Group != "anna" || w[i].Home != "/home/anna" || w[i].Account != "physics" || w[i].Partition != "main" {
			t.Errorf("node %d: %+v", i, w[i])
		}
		if w[i].StartTime != h.now.Unix() || w[i].EndTime != h.now.Unix()+600 || w[i].KillWait != 30 || w[i].NodeTimeout != 350 || w[i].KubeHost != "https://kube" || w[i].Namespace != "user-anna" {
			t.Errorf("node %d: %+v", i, w[i])
		}
		if w[i].Certificate != w[0].Certificate || w[i].Key != w[0].Key {
			t.Error("the agents of a job have different certificates")
		}
		if batch := i == 0; (string(w[i].Script) == "script") != batch || (string(w[i].Environment) == "env") != batch {
			t.Errorf("node %d has the script %q", i, w[i].Script)
		}
	}
	if _, err := tls.X509KeyPair([]byte(w[0].Certificate), []byte(w[0].Key)); err != nil {
		t.Error(err)
	}
}

func TestCertificatesDiffer(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 1)
	h.place(t, 8, "anna", 1, 1)
	h.place(t, 9, "anna", 2, 1)
	seen := map[string]bool{}
	for _, w := range []wire.Welcome{h.helloAll(t, 7, "anna", 1, 1)[0], h.helloAll(t, 8, "anna", 1, 1)[0], h.helloAll(t, 9, "anna", 2, 1)[0]} {
		if seen[w.Key] || seen[w.Certificate] {
			t.Error("two jobs have one key")
		}
		seen[w.Key], seen[w.Certificate] = true, true
	}
}

// No agent gets its welcome before the agents of all nodes have sent their hello.
func TestHelloIsHeld(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 2)
	responded := make(chan int, 1)
	go func() {
		code, _ := h.post(t.Context(), wire.PathHello, token(7, "anna", 1, 0), hello(7, 1, 0), nil)
		responded <- code
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if code, _ := h.post(ctx, wire.PathHello, token(7, "anna", 1, 0), hello(7, 1, 0), nil); code != 0 {
		t.Fatalf("an agent of an incomplete gang gets the response %d", code)
	}
	select {
	case code := <-responded:
		t.Fatalf("an agent of an incomplete gang gets the response %d", code)
	default:
	}
	if code, text := h.post(t.Context(), wire.PathHello, token(7, "anna", 1, 1), hello(7, 1, 1), nil); code != 200 {
		t.Errorf("%d %s", code, text)
	}
	if code := <-responded; code != 200 {
		t.Errorf("%d", code)
	}
}

// If the server is restarted after the gang was recorded, agents that did not get their
// welcome get the same one from the new server.
func TestHelloAfterRestart(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 2)
	first := h.helloAll(t, 7, "anna", 1, 2)
	h.restart(t)
	var again wire.Welcome
	if code, text := h.post(t.Context(), wire.PathHello, token(7, "anna", 1, 1), hello(7, 1, 1), &again); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	if again.Key != first[1].Key || again.Hosts[0].Address != first[1].Hosts[0].Address || h.ready != 1 {
		t.Errorf("%+v; GangReady was called %d times, want once", again, h.ready)
	}
	moved := hello(7, 1, 1)
	moved.Address = "10.9.9.9:1"
	if code, _ := h.post(t.Context(), wire.PathHello, token(7, "anna", 1, 1), moved, nil); code != http.StatusConflict {
		t.Errorf("a hello with another address: %d, want %d", code, http.StatusConflict)
	}
}

func TestKeeperFailsAndRecovers(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 1)
	h.refuse = errors.New("try later")
	done := make(chan int, 1)
	go func() {
		code, _ := h.post(t.Context(), wire.PathHello, token(7, "anna", 1, 0), hello(7, 1, 0), nil)
		done <- code
	}()
	eventually.Holds(t, "an agent is ready", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.ready > 0 })
	h.mu.Lock()
	h.refuse = nil
	h.mu.Unlock()
	if code := <-done; code != 200 {
		t.Errorf("%d", code)
	}
}

func TestAttemptEndsWhileWaiting(t *testing.T) {
	h := newFixture(t)
	b := h.place(t, 7, "anna", 1, 2)
	done := make(chan int, 1)
	go func() {
		code, _ := h.post(t.Context(), wire.PathHello, token(7, "anna", 1, 0), hello(7, 1, 0), nil)
		done <- code
	}()
	eventually.Holds(t, "a token is reviewed", func() bool { h.mu.Lock(); defer h.mu.Unlock(); return h.reviews > 0 })
	b = b.DeepCopy()
	b.Status.Attempt, b.Status.Allocation = 2, nil
	fake.Feed(h.Cluster, b)
	if code := <-done; code != http.StatusGone {
		t.Errorf("%d", code)
	}
	h.place(t, 8, "anna", 1, 1)
	h.mu.Lock()
	h.refuse = errOver
	h.mu.Unlock()
	if code, _ := h.post(t.Context(), wire.PathHello, token(8, "anna", 1, 0), hello(8, 1, 0), nil); code != http.StatusGone {
		t.Errorf("an attempt that is not current for the keeper: %d, want %d", code, http.StatusGone)
	}
}

func TestImpostors(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 2, 2)
	h.place(t, 8, "ben", 1, 1)
	fake.Feed(h.Cluster, pod(7, "anna", 1, 0), pod(7, "ben", 2, 0), pod(7, "anna", 2, 5), pod(99, "anna", 1, 0))
	naked := pod(7, "anna", 2, 0)
	naked.Name, naked.UID, naked.OwnerReferences = "naked", "uid-naked", nil
	fake.Feed(h.Cluster, naked)
	good := token(7, "anna", 2, 0)
	for name, c := range map[string]struct {
		token string
		hello wire.Hello
		code  int
	}{
		"no token":              {"", hello(7, 2, 0), 401},
		"a bad token":           {"x", hello(7, 2, 0), 401},
		"another account":       {strings.Replace(good, "berth-job", "default", 1), hello(7, 2, 0), 401},
		"a token without pod":   {"user-anna///berth-job", hello(7, 2, 0), 401},
		"a pod that is gone":    {"user-anna/" + podName(7, 2, 0) + "/another-uid/berth-job", hello(7, 2, 0), 403},
		"a pod without owner":   {"user-anna/naked/uid-naked/berth-job", hello(7, 2, 0), 403},
		"another job's hello":   {token(8, "ben", 1, 0), hello(7, 2, 0), 409},
		"another index":         {good, hello(7, 2, 1), 409},
		"another attempt":       {good, hello(7, 1, 0), 409},
		"an old attempt":        {token(7, "anna", 1, 0), hello(7, 1, 0), 410},
		"another's namespace":   {token(7, "ben", 2, 0), hello(7, 2, 0), 403},
		"an index too high":     {token(7, "anna", 2, 5), hello(7, 2, 5), 403},
		"a job that is unknown": {token(99, "anna", 1, 0), hello(99, 1, 0), 410},
		"no address":            {good, wire.Hello{JobID: 7, Attempt: 2, Address: "nowhere"}, 400},
		"of the right job, ok":  {token(8, "ben", 1, 0), hello(8, 1, 0), 200},
	} {
		if code, text := h.post(t.Context(), wire.PathHello, c.token, c.hello, nil); code != c.code {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}

func TestCommands(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 2)
	h.helloAll(t, 7, "anna", 1, 2)
	batch := token(7, "anna", 1, 0)
	if code, _ := h.post(t.Context(), wire.PathCommands, token(7, "anna", 1, 1), wire.CommandQuery{}, nil); code != 403 {
		t.Errorf("node 1 gets commands: %d", code)
	}
	got := make(chan wire.Commands, 1)
	go func() {
		var c wire.Commands
		if code, text := h.post(t.Context(), wire.PathCommands, batch, wire.CommandQuery{}, &c); code != 200 {
			t.Errorf("%d %s", code, text)
		}
		got <- c
	}()
	h.server.Send(7, 2, wire.Command{Kind: wire.CommandSignal, Signal: 1}) // no such attempt
	h.server.Send(7, 1, wire.Command{Kind: wire.CommandSignal, Signal: 10})
	c := <-got
	if len(c.Items) != 1 || c.Items[0].Signal != 10 {
		t.Fatalf("%+v", c)
	}
	// If the response was lost, the agent gets the same command again; later only new ones.
	if again := h.poll(t, batch, 0); len(again) != 1 || !reflect.DeepEqual(again[0], c.Items[0]) {
		t.Errorf("%+v", again)
	}
	seen := c.Items[0].Seq
	h.server.Send(7, 1, wire.Command{Kind: wire.CommandTerminate, Reason: "TIMEOUT"})
	h.server.Send(7, 1, wire.Command{Kind: wire.CommandTerminate, Reason: "TIMEOUT"})
	if next := h.poll(t, batch, seen); len(next) != 1 || next[0].Reason != "TIMEOUT" || next[0].Seq <= seen {
		t.Errorf("%+v", next)
	}
}

func (h *fixture) poll(t *testing.T, token string, after int64) []wire.Command {
	t.Helper()
	var c wire.Commands
	if code, text := h.post(t.Context(), wire.PathCommands, token, wire.CommandQuery{After: after}, &c); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	return c.Items
}

// The command to terminate follows from the status of the job: the agent receives it while it
// waits, and again after a restart of the server.
func TestTerminateFollowsFromStatus(t *testing.T) {
	for reason, change := range map[string]func(*v1alpha1.BatchJob){
		"CANCELLED": func(b *v1alpha1.BatchJob) { b.Status.Final = v1alpha1.StateCancelled },
		"REQUEUE":   func(b *v1alpha1.BatchJob) { b.Status.Final = v1alpha1.StatePending },
		"TIMEOUT":   func(b *v1alpha1.BatchJob) { b.Status.Final = v1alpha1.StateTimeout },
		"PREEMPTED": func(b *v1alpha1.BatchJob) { b.Status.Final = v1alpha1.StatePreempted },
	} {
		t.Run(reason, func(t *testing.T) {
			h := newFixture(t)
			h.place(t, 7, "anna", 1, 1)
			h.helloAll(t, 7, "anna", 1, 1)
			batch := token(7, "anna", 1, 0)
			got := make(chan []wire.Command, 1)
			go func() { got <- h.poll(t, batch, 0) }()
			running, _ := h.Job(7)
			b := running.DeepCopy()
			b.Status.State = v1alpha1.StateCompleting
			change(b)
			fake.Feed(h.Cluster, b)
			c := <-got
			if len(c) != 1 || c[0].Kind != wire.CommandTerminate || c[0].Reason != reason {
				t.Fatalf("%+v", c)
			}
			h.clockMu.Lock()
			h.now = h.now.Add(time.Minute)
			h.clockMu.Unlock()
			h.restart(t)
			if again := h.poll(t, batch, c[0].Seq); len(again) != 1 || again[0].Reason != reason || again[0].Seq <= c[0].Seq {
				t.Errorf("after a restart: %+v", again)
			}
		})
	}
}

// An agent gets no command before the keeper has decided about a request: it could report the
// end first, as a failure of the job.
func TestNoCommandBeforeKeeperHasDecided(t *testing.T) {
	long := metav1.NewMicroTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, request := range map[string]func(*v1alpha1.BatchJob){
		"cancel":  func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{By: "anna"} },
		"requeue": func(b *v1alpha1.BatchJob) { b.Spec.Requeues = 1 },
		"limit":   func(b *v1alpha1.BatchJob) { b.Status.StartTime, b.Status.TimeLimit = &long, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			h := newFixture(t)
			h.place(t, 7, "anna", 1, 1)
			h.helloAll(t, 7, "anna", 1, 1)
			running, _ := h.Job(7)
			b := running.DeepCopy()
			request(b)
			fake.Feed(h.Cluster, b)
			// A command that is sent later arrives alone.
			h.server.Send(7, 1, wire.Command{Kind: wire.CommandSignal, Signal: 10})
			if c := h.poll(t, token(7, "anna", 1, 0), 0); len(c) != 1 || c[0].Kind != wire.CommandSignal {
				t.Errorf("%+v", c)
			}
		})
	}
}

// The command to terminate has the reason why the job returns to the queue.
func TestTerminateHasReasonOfRequeue(t *testing.T) {
	for want, change := range map[string]func(*v1alpha1.BatchJob){
		"REQUEUE":               func(*v1alpha1.BatchJob) {},
		v1alpha1.StatePreempted: func(b *v1alpha1.BatchJob) { b.Status.Preempt = &v1alpha1.Preemption{Mode: "REQUEUE"} },
		v1alpha1.StateCancelled: func(b *v1alpha1.BatchJob) { b.Spec.Cancel = &v1alpha1.CancelRequest{By: "anna"} },
	} {
		t.Run(want, func(t *testing.T) {
			h := newFixture(t)
			h.place(t, 7, "anna", 1, 1)
			h.helloAll(t, 7, "anna", 1, 1)
			running, _ := h.Job(7)
			b := running.DeepCopy()
			b.Status.Final = v1alpha1.StatePending
			change(b)
			fake.Feed(h.Cluster, b)
			if c := h.poll(t, token(7, "anna", 1, 0), 0); len(c) != 1 || c[0].Kind != wire.CommandTerminate || c[0].Reason != want {
				t.Errorf("%+v", c)
			}
		})
	}
}

func TestReport(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 2)
	h.helloAll(t, 7, "anna", 1, 2)
	r := wire.Report{JobID: 7, Attempt: 1, Kind: wire.ReportEnded, Status: 3}
	if code, text := h.post(t.Context(), wire.PathReport, token(7, "anna", 1, 0), r, nil); code != 200 || len(h.reports) != 1 || !reflect.DeepEqual(h.reports[0], r) {
		t.Errorf("%d %s %+v", code, text, h.reports)
	}
	if code, _ := h.post(t.Context(), wire.PathReport, token(7, "anna", 1, 1), r, nil); code != 403 {
		t.Errorf("node 1: %d", code)
	}
	r.JobID = 8
	if code, _ := h.post(t.Context(), wire.PathReport, token(7, "anna", 1, 0), r, nil); code != 409 {
		t.Errorf("of another job: %d", code)
	}
	r.JobID = 7
	h.refuse = errOver
	if code, _ := h.post(t.Context(), wire.PathReport, token(7, "anna", 1, 0), r, nil); code != 410 {
		t.Errorf("of an attempt that has ended: %d, want 410", code)
	}
	h.refuse = errors.New("disk full")
	if code, _ := h.post(t.Context(), wire.PathReport, token(7, "anna", 1, 0), r, nil); code != 503 {
		t.Errorf("a report that could not be stored: %d, want 503", code)
	}
	if h.reviews > 2 {
		t.Errorf("%d token reviews for two pods", h.reviews)
	}
}

// A job that requests no memory receives its allocation.
func TestDefaultMemory(t *testing.T) {
	h := newFixture(t)
	h.place(t, 7, "anna", 1, 1)
	perCPU, perNode := int64(50), int64(700)
	shape := func() job.Shape {
		var j job.Job
		if err := json.Unmarshal(h.helloAll(t, 7, "anna", 1, 1)[0].Job, &j); err != nil {
			t.Fatal(err)
		}
		return j.Shape
	}
	if s := shape(); s.MemPerCPU != nil || s.MemPerNode != nil {
		t.Errorf("without a default: %+v", s)
	}
	set := &v1alpha1.Cluster{}
	set.Name = v1alpha1.ClusterName
	set.Spec.DefMemPerCPU = &perCPU
	fake.Feed(h.Cluster, set)
	if s := shape(); s.MemPerCPU == nil || *s.MemPerCPU != perCPU {
		t.Errorf("the cluster's: %+v", s)
	}
	p := &v1alpha1.Partition{}
	p.Name, p.Spec.DefMemPerNode = "main", &perNode
	fake.Feed(h.Cluster, p)
	if s := shape(); s.MemPerCPU != nil || s.MemPerNode == nil || *s.MemPerNode != perNode {
		t.Errorf("the partition's: %+v", s)
	}
	if b, _ := h.Job(7); b.Spec.Job.Shape.MemPerNode != nil {
		t.Error("the stored job was changed")
	}
}

// The cluster sets which resource limits a job inherits, unless the job does so itself.
func TestResourceLimits(t *testing.T) {
	h := newFixture(t)
	set := &v1alpha1.Cluster{}
	set.Name = v1alpha1.ClusterName
	set.Spec.PropagateResourceLimitsExcept = []string{"MEMLOCK"}
	fake.Feed(h.Cluster, set)
	for id, c := range map[int64]struct {
		options  map[string]string
		want     map[string]uint64
		withheld []string
	}{
		7: {nil, map[string]uint64{"CORE": 0}, []string{"MEMLOCK"}},
		8: {map[string]string{"propagate": "ALL"}, map[string]uint64{"CORE": 0, "MEMLOCK": 65536}, nil},
	} {
		h.place(t, id, "anna", 1, 1)
		b, _ := h.Job(id)
		b = b.DeepCopy()
		b.Spec.Job.Batch.Rlimits, b.Spec.Job.Options = map[string]uint64{"CORE": 0, "MEMLOCK": 65536}, c.options
		fake.Feed(h.Cluster, b)
		w := h.helloAll(t, id, "anna", 1, 1)[0]
		var j job.Job
		if err := json.Unmarshal(w.Job, &j); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(j.Batch.Rlimits, c.want) || !reflect.DeepEqual(w.Unpropagated, c.withheld) {
			t.Errorf("job %d: %v, without %v", id, j.Batch.Rlimits, w.Unpropagated)
		}
	}
}
