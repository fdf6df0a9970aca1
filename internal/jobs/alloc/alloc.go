// Package alloc obtains allocations for srun and salloc. It requests an allocation,
// reports in Slurm's words how it proceeds, follows the job, and releases it.
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

// Cluster is the access to a cluster that an allocation needs.
type Cluster interface {
	Submit(ctx context.Context, s *jobs.Submission) (*jobs.Submitted, error)
	Partitions(ctx context.Context) (*status.PartitionList, error)
	Events(ctx context.Context, id int64, own bool, fn func(*wire.JobEvent) (more bool)) error
	Complete(ctx context.Context, id int64, code int) error
	AttachAs(ctx context.Context, id int64, client string) (io.ReadWriteCloser, error)
}

// Client is the command that requests an allocation.
type Client struct {
	Name    string // "srun", "salloc"
	P       *stdio.Process
	Cluster Cluster
	Quiet   bool
	// Refusal is the beginning of the message about a refused request ("Unable to
	// allocate resources").
	Refusal string
	// Pending, if not nil, is called with the id of a job that must wait, before other
	// messages about it.
	Pending func(id int64)
	// Interrupted reports that a signal ended the wait for the job with the given id; 0:
	// it has none yet.
	Interrupted func(id int64)
	// Unowned means that no process follows the job after its start (salloc
	// --no-shell).
	Unowned bool
}

// Allocation is a running job. Its methods are safe for concurrent use.
type Allocation struct {
	ID      int64
	Welcome *wire.Welcome
	Job     *job.Job

	client *Client
	over   chan struct{}
	end    *wire.JobEvent // set before over is closed
	cancel context.CancelFunc
}

// completeTimeout limits the request that releases the allocation.
const completeTimeout = 30 * time.Second

// ErrInterrupted means that a signal ended the wait for an allocation; the job is
// cancelled.
var ErrInterrupted = errors.New("interrupted")

// Get requests an allocation and waits for it. immediate is --immediate in seconds; nil:
// no limit. After a signal that terminates programs, Get cancels the job and returns
// ErrInterrupted; it ignores other signals. Other errors are *slurmerr.Error, with the
// message to print, or that of ctx.
func (c *Client) Get(
	ctx context.Context, s *jobs.Submission, immediate *int32, signals <-chan os.Signal,
) (*Allocation, error) {
	stopped := false
	done, err := jobs.SubmitWithRetry(retries, func(n int) bool {
		if n == 1 {
			c.Print("error: Slurm job queue full, sleeping and retrying.")
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
	w := &wait{a: a, immediate: immediate, settled: make(chan struct{})}
	go w.follow(follow)
	if immediate != nil && *immediate > 1 {
		t := time.AfterFunc(time.Duration(*immediate)*time.Second, w.expire)
		defer t.Stop()
	}
	w.await(ctx, signals)
	if err := w.result(); err != nil {
		a.Complete(0)
		return nil, c.withRevoked(a.ID, err)
	}
	if c.Unowned {
		a.cancel()
	}
	return a, nil
}

// withRevoked adds the line of Slurm's salloc about the end of an allocation to the error
// after the time of --immediate. salloc --no-shell does not print it.
func (c *Client) withRevoked(id int64, err error) error {
	var e *slurmerr.Error
	if c.Name == "salloc" && !c.Unowned && !c.Quiet && errors.As(err, &e) && e.Kind == slurmerr.Busy {
		e.After = fmt.Sprintf("%s: Job allocation %d has been revoked.\n", c.Name, id)
	}
	return err
}

// retries is the number of retries while the queue is full.
const retries = 10

// sleep waits. It returns false if a signal or ctx ended the wait.
func sleep(ctx context.Context, d time.Duration, signals <-chan os.Signal) bool {
	timer := time.After(d)
	for {
		select {
		case <-timer:
			return true
		case <-ctx.Done():
			return false
		case s := <-signals:
			if terminates(s) {
				return false
			}
		}
	}
}

// terminates reports whether the signal terminates programs.
func terminates(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGTERM || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// await returns when the wait is settled. It settles it after a signal that terminates
// programs, or the end of ctx.
func (w *wait) await(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-w.settled:
			return
		case <-ctx.Done():
			w.settle(ctx.Err())
		case s := <-signals:
			if terminates(s) {
				w.a.client.revoked(w.a.ID)
				w.a.client.Interrupted(w.a.ID)
				w.settle(ErrInterrupted)
			}
		}
	}
}

// wait waits for the start of a job, and then follows it to its end.
type wait struct {
	a         *Allocation
	immediate *int32

	mu      sync.Mutex
	queued  bool
	placed  bool          // the job has its nodes and is about to run
	done    bool          // the wait is settled
	err     error         // of the settled wait; nil: the job runs
	settled chan struct{} // closed when the wait is settled
}

// follow handles the events of the job until its end.
func (w *wait) follow(ctx context.Context) {
	c := w.a.client
	err := c.Cluster.Events(ctx, w.a.ID, true, func(e *wire.JobEvent) bool {
		w.handleEvent(e)
		return true
	})
	if err != nil && ctx.Err() == nil {
		w.settle(slurmerr.Wrap(slurmerr.Unreachable, err, c.Refusal+": "+err.Error()))
	}
	close(w.a.over)
}

// settle ends the wait. Only the first call has an effect.
func (w *wait) settle(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.done, w.err = true, err
		close(w.settled)
	}
}

// result returns the error of the settled wait.
func (w *wait) result() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Messages of --immediate, in srun and salloc.
const (
	textBusy     = "Unable to allocate resources: Requested nodes are busy"
	textTimeout  = "Unable to allocate resources: Connection timed out"
	textPriority = "Unable to allocate resources: Immediate execution impossible, insufficient priority"
)

// notImmediate returns the message of --immediate about a job that waits for the given
// reason.
func (c *Client) notImmediate(reason string) string {
	switch reason {
	case status.ReasonPriority:
		return textPriority
	case status.ReasonHeldUser, status.ReasonHeldAdmin, status.ReasonDependency, status.ReasonBeginTime:
		return c.Refusal + ": Job dependency problem"
	}
	return textBusy
}

// expire ends the wait when the time of --immediate is over.
func (w *wait) expire() {
	w.mu.Lock()
	placed := w.placed
	w.mu.Unlock()
	if !placed {
		text := textBusy
		if w.a.client.Name == "salloc" {
			text = textTimeout
		}
		w.settle(slurmerr.New(slurmerr.Busy, text))
	}
}

// handleEvent handles an event of the job.
func (w *wait) handleEvent(e *wire.JobEvent) {
	switch {
	case e.Notice != "":
		w.a.client.Info("%s", e.Notice)
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

// pending handles a job that does not start in the first planning cycle.
func (w *wait) pending(reason string) {
	c := w.a.client
	if w.immediate != nil && *w.immediate <= 1 {
		w.settle(slurmerr.New(slurmerr.Busy, c.notImmediate(reason)))
		return
	}
	if !w.markQueued() {
		return
	}
	switch {
	case reason == status.ReasonHeldUser:
		c.Info("Job is in held state, pending scheduler release")
	case status.Reason(reason).IsNodeNotAvailable(), strings.HasPrefix(reason, "Nodes required for job are DOWN"):
		c.Info("Required node not available (down, drained or reserved)")
	case reason == status.ReasonPartitionDown:
		c.Info("Partition in DOWN state")
	}
	w.announceQueued()
}

// markQueued records that the job is announced as waiting. It returns false if it was
// announced before.
func (w *wait) markQueued() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	first := !w.queued
	w.queued = true
	return first
}

func (w *wait) announceQueued() {
	c := w.a.client
	if c.Pending != nil {
		c.Pending(w.a.ID)
	}
	c.Info("job %d queued and waiting for resources", w.a.ID)
}

// running handles the start of the job. A heterogeneous job is announced as waiting
// even if it starts at once: Slurm never starts one at its submission, and programs
// wait for those messages.
func (w *wait) running(e *wire.JobEvent) {
	w.mu.Lock()
	done := w.done
	w.mu.Unlock()
	if done {
		return
	}
	if w.a.Job.Het != nil && w.markQueued() {
		w.announceQueued()
	}
	w.mu.Lock()
	queued := w.queued
	w.mu.Unlock()
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

// ended handles the end of the job. If it never ran, it settles the wait.
func (w *wait) ended() {
	w.mu.Lock()
	done := w.done
	w.mu.Unlock()
	if !done {
		if c := w.a.client; c.Name == "salloc" { // Slurm's srun does not print it here
			c.revoked(w.a.ID)
		}
		w.a.client.Info("Job has been cancelled")
		w.settle(slurmerr.New(slurmerr.Refused, w.a.client.Refusal+": "+jobs.ErrDone))
	}
}

// revoked prints that the allocation has ended, in the words of the command.
func (c *Client) revoked(id int64) {
	dot := ""
	if c.Name == "salloc" {
		dot = "."
	}
	c.Info("Job allocation %d has been revoked%s", id, dot)
}

// Info prints a line that --quiet suppresses.
func (c *Client) Info(format string, args ...any) {
	if !c.Quiet {
		c.Print(format, args...)
	}
}

// Print prints a line.
func (c *Client) Print(format string, args ...any) {
	fmt.Fprintf(c.P.Err, c.Name+": "+format+"\n", args...)
}

// Over returns a channel that is closed when the job has ended, or when its events are no
// longer available.
func (a *Allocation) Over() <-chan struct{} { return a.over }

// End returns the last event of the job after Over is closed, or nil if it is unknown.
func (a *Allocation) End() *wire.JobEvent { return a.end }

// Complete releases the allocation, with the exit code of its command. It returns no
// error: if the request fails, the cluster cancels the job after a while, because no
// process follows it any more.
func (a *Allocation) Complete(code int) {
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	if err := a.client.Cluster.Complete(ctx, a.ID, code); err != nil {
		a.client.Print("error: Unable to release job allocation %d: %v", a.ID, err)
	}
	a.cancel()
}

// refused returns the error of a request for an allocation that failed with err.
func (c *Client) refused(ctx context.Context, j *job.Job, err error) error {
	switch kube.KindOf(err) {
	case kube.Denied, kube.Busy:
		return slurmerr.Wrap(slurmerr.Refused, err, jobs.RefusalText(ctx, c.Cluster, j.Partitions, c.Refusal, err))
	case kube.Expired, kube.Forbidden:
		return slurmerr.Wrap(slurmerr.Denied, err, c.Refusal+": "+err.Error())
	}
	return slurmerr.Wrap(slurmerr.Unreachable, err, c.Refusal+": "+err.Error())
}
