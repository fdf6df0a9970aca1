package api

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/wire"
)

// Agents reach the agents of jobs.
type Agents interface {
	Sender
	// Dial connects to the agent of the job's first node on behalf of a
	// client, who has been checked.
	Dial(ctx context.Context, b *v1alpha1.BatchJob) (io.ReadWriteCloser, error)
	// Describe is what a client may know of a running job.
	Describe(b *v1alpha1.BatchJob) (*wire.Welcome, error)
}

const (
	// beat is the time between the signs of life of a job's events.
	beat = 10 * time.Second
	// look is the time between two looks at the plan for a pending job.
	look = 100 * time.Millisecond
	// dialTime bounds how long an agent may take to answer.
	dialTime = 10 * time.Second
	// maxClient bounds what a client calls itself.
	maxClient = 64
)

// attach answers jobs/ID/attach: the way of srun, salloc, sattach and sbcast to
// a job from outside. As an upgrade (wire.AttachProtocol) it is a connection to
// the agent of the job's first node; else it is the job's events.
func (a *API) attach(w http.ResponseWriter, r *http.Request, c *directory.Caller) {
	ref, ok := parseID(r.PathValue("id"))
	if !ok {
		refuse(w, r, http.StatusNotFound, metav1.StatusReasonNotFound, textInvalidID)
		return
	}
	a.Table.Await(r.Context(), table.Query{IDs: []int64{ref.id}})
	id := a.oneJob(r.Context(), ref)
	b, ok := a.Operations.Cluster.Job(id)
	switch {
	case !ok:
		refuse(w, r, http.StatusNotFound, metav1.StatusReasonNotFound, textInvalidID)
	case a.Operations.refusal(c, b, authz.Job, authz.Events) != nil:
		refuse(w, r, http.StatusForbidden, metav1.StatusReasonForbidden, string(errDenied))
	case r.Header.Get("Upgrade") == wire.AttachProtocol:
		a.relay(w, r, c, b)
	default:
		a.events(w, r, id)
	}
}

// relay connects the caller with the job's first agent. An operator who is not
// the job's owner may look, and run nothing in another user's name.
func (a *API) relay(w http.ResponseWriter, r *http.Request, c *directory.Caller, b *v1alpha1.BatchJob) {
	if a.Operations.refusal(c, b, authz.Job, authz.Attach) != nil {
		refuse(w, r, http.StatusForbidden, metav1.StatusReasonForbidden, string(errDenied))
		return
	}
	agent, err := a.dial(r.Context(), b)
	if text, over := a.notRunning(b.Spec.JobID); over {
		if err == nil {
			agent.Close()
		}
		refuse(w, r, http.StatusConflict, metav1.StatusReasonConflict, string(text))
		return
	}
	if err != nil {
		a.budget.refused.Wait(r.Context(), c.Name, weightOf(c)) // a client that tries again at once would not help
		refuse(w, r, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error())
		return
	}
	defer agent.Close()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		refuse(w, r, http.StatusBadRequest, metav1.StatusReasonBadRequest, "this connection cannot be upgraded: "+err.Error())
		return
	}
	defer conn.Close()
	if conn.SetDeadline(time.Time{}) != nil {
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+wire.AttachProtocol+"\r\n\r\n"); err != nil {
		return
	}
	if both(conn, buffered.Reader, agent) {
		a.missed(r, b)
	}
}

// notRunning says why a job has no agent to speak to.
func (a *API) notRunning(id int64) (text Refused, yes bool) {
	b, ok := a.Operations.Cluster.Job(id)
	switch {
	case ok && b.Status.State == v1alpha1.StateRunning:
		return "", false
	case ok && (pending(b) || live(b)):
		return errPending, true
	}
	return errDone, true
}

// dial connects to the job's first agent for as long as the job runs: the
// address of a pod that is gone does not even refuse.
func (a *API) dial(ctx context.Context, b *v1alpha1.BatchJob) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			changed := a.owners.changed(b.Spec.JobID)
			if _, over := a.notRunning(b.Spec.JobID); over {
				cancel()
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	return a.Agents.Dial(ctx, b)
}

// both copies in both directions until one side ends. left: it was the client,
// which shows in what is read from it or in what is written to it.
func both(client io.WriteCloser, from io.Reader, agent io.ReadWriteCloser) (left bool) {
	var first sync.Once
	ended := func(byClient bool) { first.Do(func() { left = byClient }) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		to := &outlet{w: agent}
		_, _ = io.Copy(to, from) // the end of either is the end of both
		ended(!to.failed)
		agent.Close()
	}()
	to := &outlet{w: client}
	_, _ = io.Copy(to, agent)
	ended(to.failed)
	client.Close()
	<-done
	return left
}

// outlet tells a copy that ended because it could not be written from one that
// could not be read.
type outlet struct {
	w      io.Writer
	failed bool
}

func (o *outlet) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	o.failed = err != nil
	return n, err
}

// missed tells the agent that a client whose connection has ended hung up, if
// the API server lives that it came through: one of its other connections
// outlived this one by a while. That it is open at the end is too much to ask: API
// servers close connections that they have not used for long.
func (a *API) missed(r *http.Request, b *v1alpha1.BatchJob) {
	client := r.URL.Query().Get(wire.AttachClient)
	if client == "" || len(client) > maxClient {
		return
	}
	others := a.linkOf(r).besides()
	if len(others) == 0 {
		return
	}
	ended := time.Now()
	time.Sleep(hungUp)
	if slices.ContainsFunc(others, func(l *link) bool { return l.outlived(ended.Add(outlives)) }) {
		a.Agents.Send(b.Spec.JobID, b.Status.Attempt, wire.Command{Kind: wire.CommandHungUp, Client: client})
	}
}

// events tells how the job is, one line of JSON for each change, until it is
// over. With own=true the caller is who the job waits for: when nobody is any
// more, the job is cancelled.
func (a *API) events(w http.ResponseWriter, r *http.Request, id int64) {
	if r.URL.Query().Get("own") == "true" {
		defer a.owners.hold(id, a.linkOf(r))()
	}
	rc := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/json")
	var last wire.JobEvent
	lived := time.NewTimer(0)
	defer lived.Stop()
	for {
		changed := a.owners.changed(id)
		e, planned := a.event(id)
		if e.State != last.State || e.Reason != last.Reason {
			if err := a.tell(w, rc, &e); err != nil {
				return
			}
			last = e
			lived.Reset(beat)
			if e.Final {
				return
			}
		}
		var again <-chan time.Time
		if !planned {
			again = time.After(look)
		}
		select {
		case <-changed:
		case <-again:
		case <-lived.C:
			if a.tell(w, rc, nil) != nil {
				return
			}
			lived.Reset(beat)
		case <-r.Context().Done():
			return
		}
	}
}

// tell writes one event, or with nil an empty line.
func (a *API) tell(w io.Writer, rc *http.ResponseController, e *wire.JobEvent) error {
	line := []byte("\n")
	if e != nil {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		line = append(b, '\n')
	}
	_ = rc.SetWriteDeadline(time.Now().Add(3 * beat)) // a writer that knows none needs none
	if _, err := w.Write(line); err != nil {
		return err
	}
	return rc.Flush()
}

// event is how the job is now. planned is false while only a new plan can tell
// more.
func (a *API) event(id int64) (e wire.JobEvent, planned bool) {
	b, ok := a.Operations.Cluster.Job(id)
	switch {
	case !ok:
		return wire.JobEvent{State: v1alpha1.StateCancelled, Final: true}, true
	case pending(b):
		e.State = v1alpha1.StatePending
		p, ok := a.Table.Planned(id)
		if ok && p.Reason != "None" {
			e.Reason = p.Reason
		}
		return e, e.Reason != ""
	case live(b):
		e.State = b.Status.State
		if e.State == v1alpha1.StateRunning {
			var err error
			if e.Welcome, err = a.Agents.Describe(b); err != nil {
				return wire.JobEvent{State: v1alpha1.StateConfiguring}, false
			}
		}
		return e, true
	}
	e.State, e.Final = b.Status.State, true
	if b.Status.Final != "" {
		e.State = b.Status.Final
	}
	if b.Status.Final == v1alpha1.StatePending { // it goes back to the queue
		return wire.JobEvent{State: v1alpha1.StateConfiguring}, true
	}
	e.Reason = b.Status.Reason
	if x := b.Status.ExitCode; x != nil {
		e.Status, e.Signal = x.Status, x.Signal
	}
	return e, true
}
