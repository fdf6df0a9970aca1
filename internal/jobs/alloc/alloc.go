// Package alloc is what srun and salloc do alike: ask for an allocation, say
// in Slurm's words how that goes, stay in touch with it, and give it back.
package alloc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// Cluster is what an allocation needs of a cluster.
type Cluster interface {
	Submit(ctx context.Context, s *jobs.Submission) (*jobs.Submitted, error)
	Partitions(ctx context.Context) (*status.PartitionList, error)
	Events(ctx context.Context, id int64, own bool, fn func(*wire.JobEvent) (more bool)) error
	Complete(ctx context.Context, id int64, code int) error
	AttachAs(ctx context.Context, id int64, client string) (io.ReadWriteCloser, error)
}

// Client is the command that asks.
type Client struct {
	Name    string // "srun", "salloc"
	P       *stdio.Process
	Cluster Cluster
	Quiet   bool
	// Refusal is what a refused request begins with ("Unable to allocate
	// resources").
	Refusal string
	// Pending, if not nil, is told the id of a job that has to wait, before
	// anything else is said about it.
	Pending func(id int64)
	// Interrupted says that the wait for job id (0: it has none yet) was ended
	// by a signal.
	Interrupted func(id int64)
	// Unowned: nobody waits for the job once it runs (salloc --no-shell).
	Unowned bool
}

// Allocation is a job that runs. Its methods are safe for concurrent use.
type Allocation struct {
	ID      int64
	Welcome *wire.Welcome
	Job     *job.Job

	client *Client
	over   chan struct{}
	end    *wire.JobEvent // after over
	cancel context.CancelFunc
}

// completeTime bounds the last request.
const completeTime = 30 * time.Second

// ErrInterrupted means that the wait for an allocation was ended by a signal;
// the job is cancelled.
var ErrInterrupted = errors.New("interrupted")

// Get asks for an allocation and waits for it. immediate is --immediate, in
// seconds; nil: it waits for as long as it takes. After a signal that ends
// programs the job is cancelled and the error is ErrInterrupted; other signals
// are dropped.
func (c *Client) Get(ctx context.Context, s *jobs.Submission, immediate *int32, signals <-chan os.Signal) (*Allocation, error) {
	stopped := false
	done, err := jobs.Patiently(retries, func(n int) bool {
		if n == 1 {
			c.Say("error: Slurm job queue full, sleeping and retrying.")
		}
		stopped = !sleep(ctx, time.Duration(n)*time.Second, signals)
		return !stopped
	}, func() (*jobs.Submitted, error) { return c.Cluster.Submit(ctx, s) })
	switch {
	case stopped:
		c.Interrupted(0)
		return nil, ErrInterrupted
	case err != nil:
		return nil, c.refused(ctx, &s.Job, err)
	}
	follow, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &Allocation{ID: done.ID, Job: &s.Job, client: c, over: make(chan struct{}), cancel: cancel}
	w := &wait{a: a, immediate: immediate, first: make(chan struct{})}
	go w.follow(follow)
	if immediate != nil && *immediate > 1 {
		t := time.AfterFunc(time.Duration(*immediate)*time.Second, w.late)
		defer t.Stop()
	}
	w.await(ctx, signals)
	if err := w.outcome(); err != nil {
		a.give(0)
		return nil, err
	}
	if c.Unowned {
		a.cancel()
	}
	return a, nil
}

// retries is how often an allocation is asked for again while the queue is full.
const retries = 10

// sleep waits; false: a signal or ctx ended it.
func sleep(ctx context.Context, d time.Duration, signals <-chan os.Signal) bool {
	over := time.After(d)
	for {
		select {
		case <-over:
			return true
		case <-ctx.Done():
			return false
		case s := <-signals:
			if ends(s) {
				return false
			}
		}
	}
}

// ends tells whether the signal ends programs.
func ends(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// await returns when the wait is settled.
func (w *wait) await(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-w.first:
			return
		case <-ctx.Done():
			w.settle(ctx.Err())
		case s := <-signals:
			if ends(s) {
				w.a.client.revoked(w.a.ID)
				w.a.client.Interrupted(w.a.ID)
				w.settle(ErrInterrupted)
			}
		}
	}
}

// wait follows a job until it runs, and further until it is over.
type wait struct {
	a         *Allocation
	immediate *int32

	mu     sync.Mutex
	queued bool
	placed bool // it has its nodes; it is about to run
	done   bool // first is closed
	err    error
	first  chan struct{} // closed when it runs, or when err is set
}

func (w *wait) follow(ctx context.Context) {
	c := w.a.client
	err := c.Cluster.Events(ctx, w.a.ID, true, func(e *wire.JobEvent) bool {
		w.event(e)
		return true
	})
	if err != nil && ctx.Err() == nil {
		w.settle(slurmerr.Wrap(slurmerr.Unreachable, err, c.Refusal+": "+err.Error()))
	}
	close(w.a.over)
}

// settle ends the wait, once.
func (w *wait) settle(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.done, w.err = true, err
		close(w.first)
	}
}

func (w *wait) outcome() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// What --immediate says, to srun and salloc alike.
const (
	busy  = "Unable to allocate resources: Requested nodes are busy"
	later = "Unable to allocate resources: Immediate execution impossible, insufficient priority"
)

// late is the end of --immediate's time.
func (w *wait) late() {
	w.mu.Lock()
	placed := w.placed
	w.mu.Unlock()
	if !placed {
		w.settle(slurmerr.New(slurmerr.Busy, busy))
	}
}

func (w *wait) event(e *wire.JobEvent) {
	switch {
	case e.Final:
		w.a.end = e
		w.ended()
	case e.State == "PENDING" && e.Reason != "":
		w.pending(e.Reason)
	case e.Welcome != nil:
		w.running(e)
	case e.State != "PENDING":
		w.mu.Lock()
		w.placed = true
		w.mu.Unlock()
	}
}

// pending: the job was looked at and does not start now.
func (w *wait) pending(reason string) {
	c := w.a.client
	if w.immediate != nil && *w.immediate <= 1 {
		text := busy
		if reason == "Priority" {
			text = later
		}
		w.settle(slurmerr.New(slurmerr.Busy, text))
		return
	}
	w.mu.Lock()
	again := w.queued
	w.queued = true
	w.mu.Unlock()
	if again {
		return
	}
	switch {
	case reason == "JobHeldUser":
		c.Info("Job is in held state, pending scheduler release")
	case strings.HasPrefix(reason, "ReqNodeNotAvail"), strings.HasPrefix(reason, "Nodes required for job are DOWN"):
		c.Info("Required node not available (down, drained or reserved)")
	}
	if c.Pending != nil {
		c.Pending(w.a.ID)
	}
	c.Info("job %d queued and waiting for resources", w.a.ID)
}

func (w *wait) running(e *wire.JobEvent) {
	w.mu.Lock()
	queued, done := w.queued, w.done
	w.mu.Unlock()
	if done {
		return
	}
	if err := json.Unmarshal(e.Welcome.Job, &w.a.Job); err != nil {
		w.settle(slurmerr.Wrap(slurmerr.Internal, err, ""))
		return
	}
	w.a.Welcome = e.Welcome
	if queued {
		w.a.client.Info("job %d has been allocated resources", w.a.ID)
	}
	w.settle(nil)
}

// ended: the job was over before it ran.
func (w *wait) ended() {
	w.mu.Lock()
	done := w.done
	w.mu.Unlock()
	if !done {
		if c := w.a.client; c.Name == "salloc" { // srun does not say it here
			c.revoked(w.a.ID)
		}
		w.a.client.Info("Job has been cancelled")
		w.settle(slurmerr.New(slurmerr.Refused, w.a.client.Refusal+": "+jobs.ErrDone))
	}
}

// revoked says that the allocation is no more, as each of the commands does.
func (c *Client) revoked(id int64) {
	dot := ""
	if c.Name == "salloc" {
		dot = "."
	}
	c.Info("Job allocation %d has been revoked%s", id, dot)
}

// Info writes a line that --quiet suppresses.
func (c *Client) Info(format string, args ...any) {
	if !c.Quiet {
		c.Say(format, args...)
	}
}

// Say writes a line.
func (c *Client) Say(format string, args ...any) {
	fmt.Fprintf(c.P.Err, c.Name+": "+format+"\n", args...)
}

// Over is closed when the job is over, or nothing more can be known about it.
func (a *Allocation) Over() <-chan struct{} { return a.over }

// End is how the job ended, once Over is closed; nil: that is not known.
func (a *Allocation) End() *wire.JobEvent { return a.end }

// Complete gives the allocation back, with the exit code of what it was for.
func (a *Allocation) Complete(code int) { a.give(code) }

// give does not fail: a job that cannot be told is cancelled by the cluster,
// since nobody owns it any more.
func (a *Allocation) give(code int) {
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	if err := a.client.Cluster.Complete(ctx, a.ID, code); err != nil {
		a.client.Say("error: Unable to give back job allocation %d: %v", a.ID, err)
	}
	a.cancel()
}

// refused explains why there will be no allocation.
func (c *Client) refused(ctx context.Context, j *job.Job, err error) error {
	switch kube.KindOf(err) {
	case kube.Denied, kube.Busy:
		return slurmerr.Wrap(slurmerr.Refused, err, jobs.Explained(ctx, c.Cluster, j.Partitions, c.Refusal, err))
	case kube.Expired, kube.Forbidden:
		return slurmerr.Wrap(slurmerr.Denied, err, c.Refusal+": "+err.Error())
	}
	return slurmerr.Wrap(slurmerr.Unreachable, err, c.Refusal+": "+err.Error())
}
