package attach

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/wire"
)

const (
	// heartbeatInterval is the time between the empty lines in a job's events.
	heartbeatInterval = 10 * time.Second
	// planInterval is the time between two reads of the plan for a pending job.
	planInterval = 100 * time.Millisecond
)

// serveEvents sends the state of a job, one line of JSON for each change, until the
// job has ended. With own=true the caller is the client that the job belongs to.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request, id int64) {
	if r.URL.Query().Get("own") == "true" {
		defer s.clients.connect(id, s.connectionOf(r))()
	}
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/json")
	var last wire.JobEvent
	heartbeat := time.NewTimer(0)
	defer heartbeat.Stop()
	notice := s.notice(id)
	for {
		changed := s.clients.changed(id)
		if text := s.notice(id); text != notice {
			notice = text
			_, message, _ := strings.Cut(text, " ")
			if err := writeEvent(w, control, &wire.JobEvent{State: last.State, Notice: message}); err != nil {
				return
			}
		}
		e, complete := s.event(id)
		if e.State != last.State || e.Reason != last.Reason {
			if err := writeEvent(w, control, &e); err != nil {
				return
			}
			last = e
			heartbeat.Reset(heartbeatInterval)
			if e.Final {
				return
			}
		}
		var newPlan <-chan time.Time
		if !complete {
			newPlan = time.After(planInterval)
		}
		select {
		case <-changed:
		case <-newPlan:
		case <-heartbeat.C:
			if writeEvent(w, control, nil) != nil {
				return
			}
			heartbeat.Reset(heartbeatInterval)
		case <-r.Context().Done():
			return
		}
	}
}

// notice returns the annotation with the last message to the job's client.
func (s *Server) notice(id int64) string {
	b, ok := s.job(id)
	if !ok {
		return ""
	}
	return b.Annotations[wire.AnnotationNotice]
}

// writeEvent writes one event, or an empty line for nil.
func writeEvent(w io.Writer, control *http.ResponseController, e *wire.JobEvent) error {
	line := []byte("\n")
	if e != nil {
		b, err := json.Marshal(e)
		if err != nil {
			return err
		}
		line = append(b, '\n')
	}
	// Writers without deadlines, as in tests, need none.
	_ = control.SetWriteDeadline(time.Now().Add(3 * heartbeatInterval))
	if _, err := w.Write(line); err != nil {
		return err
	}
	return control.Flush()
}

// event returns the state of the job. complete is false while the next plan may
// add to it without a change of the job.
func (s *Server) event(id int64) (e wire.JobEvent, complete bool) {
	b, ok := s.job(id)
	switch {
	case !ok:
		return wire.JobEvent{State: v1alpha1.StateCancelled, Final: true}, true
	case change.Pending(b):
		e.State = v1alpha1.StatePending
		if p, ok := s.Table.Planned(id); ok && p.Reason != "None" {
			e.Reason = p.Reason
		}
		return e, e.Reason != ""
	case change.Live(b):
		return s.liveEvent(b)
	case b.Status.Final == v1alpha1.StatePending: // it returns to the queue
		return wire.JobEvent{State: v1alpha1.StateConfiguring}, true
	}
	e = wire.JobEvent{State: b.Status.State, Reason: b.Status.Reason, Final: true}
	if b.Status.Final != "" {
		e.State = b.Status.Final
	}
	if code := b.Status.ExitCode; code != nil {
		e.Status, e.Signal = code.Status, code.Signal
	}
	return e, true
}

// liveEvent returns the state of a job that has nodes, with what a client needs to
// connect once the job runs.
func (s *Server) liveEvent(b *v1alpha1.BatchJob) (e wire.JobEvent, complete bool) {
	e.State = b.Status.State
	if e.State != v1alpha1.StateRunning {
		return e, true
	}
	var err error
	if e.Welcome, err = s.Agents.Describe(b); err != nil {
		return wire.JobEvent{State: v1alpha1.StateConfiguring}, false
	}
	return e, true
}
