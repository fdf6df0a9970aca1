package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/berth-hpc/berth/internal/kube"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/status"
)

// ErrStopWatch is returned by the callback of a watch to end the watch without an error.
var ErrStopWatch = errors.New("stop the watch")

// Pauses before a broken watch is resumed.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// Watch calls each with every event of the jobs that match f, in order, until each
// returns an error (for ErrStopWatch, Watch returns nil), the server refuses, or ctx
// is done. A broken watch resumes after the last event; lost, if not nil, is called
// with the reason before each pause. The first event is a SYNC.
func (c *Client) Watch(ctx context.Context, f Filter, each func(*status.JobEvent) error, lost func(error)) error {
	q := f.query()
	return c.follow(ctx, wire.QueueRoot+"/jobs", q, func(line []byte) error {
		var e status.JobEvent
		if err := decodeEvent(line, &e); err != nil {
			return err
		}
		if err := each(&e); err != nil {
			return err
		}
		if e.Revision != "" || e.Type == status.EventSync {
			q.Set("since", e.Revision)
		}
		return nil
	}, lost)
}

// WatchNodes calls each with every event of the nodes, in order, like Watch. A broken
// watch resumes with a new SYNC.
func (c *Client) WatchNodes(ctx context.Context, each func(*status.NodeEvent) error, lost func(error)) error {
	return c.follow(ctx, wire.QueueRoot+"/nodes", url.Values{}, func(line []byte) error {
		var e status.NodeEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		return each(&e)
	}, lost)
}

// follow calls event with the lines of a watch until it returns an error, and resumes
// a broken watch with the query as it is then.
func (c *Client) follow(
	ctx context.Context,
	path string,
	q url.Values,
	event func([]byte) error,
	lost func(error),
) error {
	q.Set("watch", "true")
	pause := firstRetry
	var stop error
	for {
		err := c.api.Stream(ctx, path, q, func(line []byte) error {
			if stop = event(line); stop == nil {
				pause = firstRetry
			}
			return stop
		})
		switch {
		case errors.Is(stop, ErrStopWatch):
			return nil
		case stop != nil:
			return stop
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && isPermanent(err):
			return queueError(err)
		case err != nil && lost != nil:
			lost(queueError(err))
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, lastRetry)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isPermanent reports whether a retry cannot succeed.
func isPermanent(err error) bool {
	switch kube.KindOf(err) {
	case kube.Unavailable, kube.Unreachable:
		return false
	}
	return true
}

// decodeEvent decodes an event. An event of the plain form is decoded faster than by
// encoding/json (see jobList.Decode).
func decodeEvent(line []byte, e *status.JobEvent) error {
	d := decoder{data: line}
	err := d.object(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			return d.string(&e.Type)
		case "revision":
			return d.string(&e.Revision)
		case "time":
			e.Time, err = d.number()
		case "items":
			e.Items, err = d.rows()
		default:
			return errOther
		}
		return err
	})
	if err == nil && d.peek() == 0 {
		return nil
	}
	*e = status.JobEvent{}
	return json.Unmarshal(line, e)
}

// Mirror is a copy of the list of jobs, which the events of a Watch update. The zero
// value is empty. It is not safe for concurrent use.
type Mirror struct {
	Time int64 // of the last event, by the server's clock, in Unix seconds
	rows map[int64]status.Job
}

// Apply applies an event. It reports whether the list has changed.
func (m *Mirror) Apply(e *status.JobEvent) bool {
	m.Time = e.Time
	if e.Type == status.EventSync || m.rows == nil {
		m.rows = make(map[int64]status.Job, len(e.Items))
	}
	for i := range e.Items {
		m.rows[e.Items[i].ID] = e.Items[i]
	}
	for _, id := range e.Gone {
		delete(m.rows, id)
	}
	return e.Type != status.EventMark
}

// List returns a copy of the jobs, by ascending id.
func (m *Mirror) List() []status.Job {
	out := make([]status.Job, 0, len(m.rows))
	for _, j := range m.rows {
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b status.Job) int { return int(a.ID - b.ID) })
	return out
}
