package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/wire"
)

const (
	// dialTimeout bounds how long the connection to an agent may take.
	dialTimeout = 10 * time.Second
	// maxClientName bounds the name that a client gives itself.
	maxClientName = 64
)

// relay connects the caller with the agent of the job's first node. Operators may
// watch other users' jobs, but run nothing in their name.
func (s *Server) relay(w http.ResponseWriter, r *http.Request, c *directory.Caller, b *v1alpha1.BatchJob) {
	if s.Operations.Permit(c, b, authz.Job, authz.Attach) != nil {
		response.Forbidden(w, r, refusal.AccessDenied)
		return
	}
	agent, err := s.dial(r.Context(), b)
	if notRunning := s.checkRunning(b.Spec.JobID); notRunning != nil {
		if err == nil {
			agent.Close()
		}
		reason := metav1.StatusReasonConflict
		if errors.Is(notRunning, refusal.AlreadyCompleting) {
			reason = wire.ReasonJobDone
		}
		response.Error(w, r, http.StatusConflict, reason, notRunning.Error())
		return
	}
	if err != nil {
		s.Limiter.DelayRefusal(r.Context(), c) // a client that retries at once would not help
		response.Unavailable(w, r, err)
		return
	}
	defer agent.Close()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		response.BadRequest(w, r, fmt.Errorf("this connection cannot be upgraded: %w", err))
		return
	}
	defer conn.Close()
	if conn.SetDeadline(time.Time{}) != nil {
		return
	}
	const switching = "HTTP/1.1 101 Switching Protocols\r\n" +
		"Connection: Upgrade\r\nUpgrade: " + wire.AttachProtocol + "\r\n\r\n"
	if _, err := io.WriteString(conn, switching); err != nil {
		return
	}
	if relayBoth(conn, buffered.Reader, agent) {
		s.reportHangup(r, b)
	}
}

// checkRunning returns why a job has no agent to connect to, or nil.
func (s *Server) checkRunning(id int64) error {
	b, ok := s.job(id)
	switch {
	case ok && b.Status.State == v1alpha1.StateRunning:
		return nil
	case ok && (change.Pending(b) || change.Live(b)):
		return refusal.JobPending
	}
	return refusal.AlreadyCompleting
}

// dial connects to the job's first agent for as long as the job runs: the address
// of a deleted pod does not even refuse connections.
func (s *Server) dial(ctx context.Context, b *v1alpha1.BatchJob) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			changed := s.clients.changed(b.Spec.JobID)
			if s.checkRunning(b.Spec.JobID) != nil {
				cancel()
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	return s.Agents.Dial(ctx, b)
}

// relayBoth copies in both directions until one side ends. It reports whether the
// client ended first: a read from it ended, or a write to it failed.
func relayBoth(client io.WriteCloser, fromClient io.Reader, agent io.ReadWriteCloser) (clientEnded bool) {
	var first sync.Once
	end := func(byClient bool) { first.Do(func() { clientEnded = byClient }) }
	done := make(chan struct{})
	go func() {
		defer close(done)
		to := &errorWriter{w: agent}
		_ = copyStream(to, fromClient) // either side's end is the other's as well
		end(!to.failed)
		agent.Close()
	}()
	to := &errorWriter{w: client}
	_ = copyStream(to, agent)
	end(to.failed)
	client.Close()
	<-done
	return clientEnded
}

// errorWriter records whether a write failed, so that a copy that ended because of
// its writer can be told from one that ended because of its reader.
type errorWriter struct {
	w      io.Writer
	failed bool
}

func (e *errorWriter) Write(b []byte) (int, error) {
	n, err := e.w.Write(b)
	e.failed = err != nil
	return n, err
}

// reportHangup reports to the agent, after hangupTimeout, that a client whose connection
// has ended hung up, unless the API server between them has gone away. The API server is
// alive if one of its other connections outlived the client's by outliveTime. Whether that
// is still open in the end does not matter: API servers close idle connections. The agent
// ignores the report if the client has reconnected.
func (s *Server) reportHangup(r *http.Request, b *v1alpha1.BatchJob) {
	client := r.URL.Query().Get(wire.AttachClient)
	if client == "" || len(client) > maxClientName {
		return
	}
	others := s.connectionOf(r).others()
	if len(others) == 0 {
		return
	}
	stillAlive := time.Now().Add(outliveTime)
	time.AfterFunc(hangupTimeout, func() {
		if slices.ContainsFunc(others, func(o *connection) bool { return o.openAt(stillAlive) }) {
			s.Agents.Send(b.Spec.JobID, b.Status.Attempt, wire.Command{Kind: wire.CommandHungUp, Client: client})
		}
	})
}
