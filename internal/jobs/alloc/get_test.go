package alloc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// cluster is a cluster in which job 7 has the events that the test sends.
type cluster struct {
	Cluster
	submit    func(n int) error // the error of the n-th submission; nil: none fails
	eventsErr error
	events    chan *wire.JobEvent

	mu        sync.Mutex
	submitted int
	completed []int
}

func (c *cluster) Submit(context.Context, *jobs.Submission) (*jobs.Submitted, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.submitted++
	if c.submit != nil {
		if err := c.submit(c.submitted); err != nil {
			return nil, err
		}
	}
	return &jobs.Submitted{ID: 7}, nil
}

func (c *cluster) Partitions(context.Context) (*status.PartitionList, error) {
	return &status.PartitionList{Items: []status.Partition{{Name: "main"}}}, nil
}

func (c *cluster) Events(ctx context.Context, _ int64, _ bool, fn func(*wire.JobEvent) bool) error {
	for {
		select {
		case e, open := <-c.events:
			if !open {
				return c.eventsErr
			}
			if !fn(e) || e.Final {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *cluster) Complete(_ context.Context, _ int64, code int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.completed = append(c.completed, code)
	return nil
}

// run is one call of Get and what it printed.
type run struct {
	a           *Allocation
	err         error
	printed     string
	interrupted []int64
	pending     []int64
}

// get calls Get of a client of the cluster. change may change the client or the request.
func get(t *testing.T, c *cluster, immediate *int32, signals chan os.Signal, change func(*Client, *jobs.Submission)) run {
	t.Helper()
	var out recorder
	client := &Client{
		Name: "srun", Cluster: c, Refusal: "Unable to allocate resources",
		P:           &stdio.Process{Streams: stdio.Streams{Err: &out}},
		Pending:     func(id int64) { out.note(&out.pending, id) },
		Interrupted: func(id int64) { out.note(&out.interrupted, id) },
	}
	s := &jobs.Submission{}
	if change != nil {
		change(client, s)
	}
	a, err := client.Get(t.Context(), s, immediate, signals)
	if a != nil {
		t.Cleanup(func() { a.Complete(0) })
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	return run{a, err, out.text.String(), slices.Clone(out.interrupted), slices.Clone(out.pending)}
}

// recorder records what a client prints and the calls of its functions, which may come from
// the goroutine that follows the job.
type recorder struct {
	mu                   sync.Mutex
	text                 bytes.Buffer
	interrupted, pending []int64
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(b)
}

func (r *recorder) note(list *[]int64, id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, id)
}

// send returns a cluster with these events, after which there are no more.
func send(events ...*wire.JobEvent) *cluster {
	c := &cluster{events: make(chan *wire.JobEvent, len(events))}
	for _, e := range events {
		c.events <- e
	}
	return c
}

func waits(reason string) *wire.JobEvent { return &wire.JobEvent{State: "PENDING", Reason: reason} }

// starts returns the event of a job that runs, with the name ring.
func starts(t *testing.T) *wire.JobEvent {
	t.Helper()
	b, err := json.Marshal(&job.Job{Name: "ring"})
	if err != nil {
		t.Fatal(err)
	}
	return &wire.JobEvent{State: "RUNNING", Welcome: &wire.Welcome{JobID: 7, Job: b}}
}

func seconds(n int32) *int32 { return &n }

// TestMessagesUntilTheStart: what srun prints while the job waits, as Slurm 22.05.8 does.
func TestMessagesUntilTheStart(t *testing.T) {
	const queued, allocated = "srun: job 7 queued and waiting for resources\n", "srun: job 7 has been allocated resources\n"
	for name, tt := range map[string]struct {
		events []*wire.JobEvent
		het    bool
		quiet  bool
		want   string
	}{
		"at once":           {nil, false, false, ""},
		"at once, het":      {nil, true, false, queued + allocated},
		"after a wait":      {[]*wire.JobEvent{waits("Resources"), waits("Priority")}, false, false, queued + allocated},
		"quiet":             {[]*wire.JobEvent{waits("Resources")}, false, true, ""},
		"being placed":      {[]*wire.JobEvent{waits(""), {State: "CONFIGURING"}}, false, false, ""},
		"held":              {[]*wire.JobEvent{waits("JobHeldUser")}, false, false, "srun: Job is in held state, pending scheduler release\n" + queued + allocated},
		"a node is down":    {[]*wire.JobEvent{waits("ReqNodeNotAvail, UnavailableNodes:n1")}, false, false, "srun: Required node not available (down, drained or reserved)\n" + queued + allocated},
		"no node is up":     {[]*wire.JobEvent{waits("Nodes required for job are DOWN, DRAINED or reserved")}, false, false, "srun: Required node not available (down, drained or reserved)\n" + queued + allocated},
		"partition is down": {[]*wire.JobEvent{waits("PartitionDown")}, false, false, "srun: Partition in DOWN state\n" + queued + allocated},
		"notified":          {[]*wire.JobEvent{{Notice: "100% soon"}}, false, false, "srun: 100% soon\n"},
	} {
		c := send(append(tt.events, starts(t))...)
		r := get(t, c, nil, nil, func(c *Client, s *jobs.Submission) {
			c.Quiet = tt.quiet
			if tt.het {
				s.Job.Het = &job.Het{}
			}
		})
		if r.err != nil || r.printed != tt.want || r.a.ID != 7 || r.a.Job.Name != "ring" || r.a.Welcome.JobID != 7 {
			t.Errorf("%s: %v, %q, want %q", name, r.err, r.printed, tt.want)
		}
		if announced := strings.Contains(tt.want, queued) || tt.quiet; announced != slices.Equal(r.pending, []int64{7}) {
			t.Errorf("%s: pending %v", name, r.pending)
		}
	}
}

// TestImmediateRequests: with --immediate a job that does not start in time is cancelled.
func TestImmediateRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		immediate *int32
		reason    string
		command   string
		want      string // of the error; "": it starts
	}{
		"at once, nodes are busy":      {seconds(1), "Resources", "srun", textBusy},
		"at once, others come first":   {seconds(1), "Priority", "srun", textPriority},
		"at once, with a dependency":   {seconds(1), "Dependency", "srun", "Unable to allocate resources: Job dependency problem"},
		"at once, held":                {seconds(1), "JobHeldUser", "salloc", "Unable to allocate resources: Job dependency problem"},
		"zero is at once":              {seconds(0), "Resources", "salloc", textBusy},
		"srun in some seconds":         {seconds(5), "Resources", "srun", textBusy},
		"salloc in some seconds":       {seconds(5), "Resources", "salloc", textTimeout},
		"a job that does not even run": {seconds(5), "", "srun", textBusy},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := send(waits(tt.reason))
			begin := time.Now()
			r := get(t, c, tt.immediate, nil, func(c *Client, _ *jobs.Submission) { c.Name = tt.command })
			var e *slurmerr.Error
			if !errors.As(r.err, &e) || e.Message != tt.want || !slices.Equal(c.completed, []int{0}) {
				t.Errorf("%s: %v, completed %v; want %q", name, r.err, c.completed, tt.want)
			}
			if took, want := time.Since(begin), time.Duration(*tt.immediate)*time.Second; *tt.immediate > 1 && took != want {
				t.Errorf("%s: after %s, want %s", name, took, want)
			}
		})
	}
}

// TestPlacedJobIsImmediate: a job that has its nodes in time starts, even if its pods take
// longer.
func TestPlacedJobIsImmediate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{events: make(chan *wire.JobEvent)}
		go func() {
			c.events <- waits("Resources")
			c.events <- &wire.JobEvent{State: "CONFIGURING"}
			time.Sleep(time.Minute)
			c.events <- starts(t)
		}()
		if r := get(t, c, seconds(3), nil, nil); r.err != nil {
			t.Error(r.err)
		}
	})
}

// TestSignalsWhileWaiting: a signal that terminates programs cancels the job; others do not.
func TestSignalsWhileWaiting(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		signals := make(chan os.Signal, 2)
		signals <- syscall.SIGUSR1
		signals <- s
		c := send(waits("Resources"))
		r := get(t, c, nil, signals, nil)
		if !errors.Is(r.err, ErrInterrupted) || !slices.Equal(r.interrupted, []int64{7}) || !slices.Equal(c.completed, []int{0}) {
			t.Errorf("%v: %v, interrupted %v, completed %v", s, r.err, r.interrupted, c.completed)
		}
		if !strings.Contains(r.printed, "srun: Job allocation 7 has been revoked\n") {
			t.Errorf("%v: %q", s, r.printed)
		}
	}
}

// TestFullQueue: a request is repeated while the queue is full, at most ten times, and until a
// signal.
func TestFullQueue(t *testing.T) {
	full := &kube.Error{Kind: kube.Busy, Message: "Resource temporarily unavailable"}
	const line = "srun: error: Slurm job queue full, sleeping and retrying.\n"
	synctest.Test(t, func(t *testing.T) {
		c := send(starts(t))
		c.submit = func(n int) error {
			if n < 4 {
				return full
			}
			return nil
		}
		begin := time.Now()
		if r := get(t, c, nil, nil, nil); r.err != nil || r.printed != line || time.Since(begin) != 6*time.Second {
			t.Errorf("%v after %s: %q", r.err, time.Since(begin), r.printed)
		}
		c = send()
		c.submit = func(int) error { return full }
		r := get(t, c, nil, nil, nil)
		if r.err == nil || !strings.Contains(r.err.Error(), "Resource temporarily unavailable") || c.submitted != 11 || len(c.completed) != 0 {
			t.Errorf("%v after %d requests, completed %v", r.err, c.submitted, c.completed)
		}
		signals := make(chan os.Signal, 2)
		signals <- syscall.SIGWINCH
		signals <- syscall.SIGINT
		c = send()
		c.submit = func(int) error { return full }
		if r = get(t, c, nil, signals, nil); !errors.Is(r.err, ErrInterrupted) || c.submitted != 1 || !slices.Equal(r.interrupted, []int64{0}) {
			t.Errorf("%v after %d requests, interrupted %v", r.err, c.submitted, r.interrupted)
		}
	})
}

// TestRefusedRequests: the message and the kind of the error depend on the reason of the failure.
func TestRefusedRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		err        error
		partitions []string
		kind       slurmerr.Kind
		want       string
	}{
		"by admission":         {&kube.Error{Kind: kube.Denied, Message: "Invalid qos specification"}, nil, slurmerr.Refused, "Unable to allocate resources: Invalid qos specification"},
		"an unknown partition": {&kube.Error{Kind: kube.Denied, Message: "Invalid partition name specified"}, []string{"main", "x"}, slurmerr.Refused, "invalid partition specified: x\nUnable to allocate resources: Invalid partition name specified"},
		"an old credential":    {&kube.Error{Kind: kube.Expired, Message: "expired"}, nil, slurmerr.Denied, "Unable to allocate resources: expired"},
		"no permission":        {&kube.Error{Kind: kube.Forbidden, Message: "forbidden"}, nil, slurmerr.Denied, "Unable to allocate resources: forbidden"},
		"no cluster":           {&kube.Error{Kind: kube.Unreachable, Message: "gone"}, nil, slurmerr.Unreachable, "Unable to allocate resources: gone"},
	} {
		c := send()
		c.submit = func(int) error { return tt.err }
		r := get(t, c, nil, nil, func(_ *Client, s *jobs.Submission) { s.Job.Partitions = tt.partitions })
		var e *slurmerr.Error
		if !errors.As(r.err, &e) || e.Kind != tt.kind || e.Message != tt.want || !errors.Is(r.err, tt.err) || len(c.completed) != 0 {
			t.Errorf("%s: %#v, completed %v", name, r.err, c.completed)
		}
	}
}

// TestJobsThatEndBeforeTheyRun: a job that is cancelled while it waits, or whose events are
// lost, is no allocation.
func TestJobsThatEndBeforeTheyRun(t *testing.T) {
	ends := &wire.JobEvent{State: "CANCELLED", Final: true}
	for command, want := range map[string]string{
		"srun": "srun: Job has been cancelled\n", "salloc": "salloc: Job allocation 7 has been revoked.\nsalloc: Job has been cancelled\n",
	} {
		r := get(t, send(ends), nil, nil, func(c *Client, _ *jobs.Submission) { c.Name = command })
		if r.err == nil || r.err.Error() != "Unable to allocate resources: "+jobs.ErrDone || r.printed != want {
			t.Errorf("%s: %v, %q", command, r.err, r.printed)
		}
	}
	c := send()
	c.eventsErr = &kube.Error{Kind: kube.Forbidden, Message: "no"}
	close(c.events)
	var e *slurmerr.Error
	if r := get(t, c, nil, nil, nil); !errors.As(r.err, &e) || e.Kind != slurmerr.Unreachable || !slices.Equal(c.completed, []int{0}) {
		t.Errorf("without events: %v, completed %v", r.err, c.completed)
	}
}

// TestEndOfAllocation: Over is closed with the job's last event.
func TestEndOfAllocation(t *testing.T) {
	c := &cluster{events: make(chan *wire.JobEvent, 2)}
	c.events <- starts(t)
	r := get(t, c, nil, nil, nil)
	if r.err != nil {
		t.Fatal(r.err)
	}
	select {
	case <-r.a.Over():
		t.Error("the allocation is over while it runs")
	default:
	}
	c.events <- &wire.JobEvent{State: "TIMEOUT", Final: true, Status: 1}
	<-r.a.Over()
	if e := r.a.End(); e == nil || e.State != "TIMEOUT" || e.Status != 1 {
		t.Errorf("%+v", e)
	}
}

func (c *cluster) AttachAs(context.Context, int64, string) (io.ReadWriteCloser, error) {
	return nil, errors.New("not used")
}
