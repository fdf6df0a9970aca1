package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// Bounds of watching. What a watch costs this process is a position in the
// table's history and the event being sent.
const (
	// A watch ends after watchLife and up to half as much again, at an event:
	// the client goes on from its revision, and rights are looked at anew.
	watchLife = 30 * time.Minute
	// watchPause is the least time between two events; an event that took
	// long to make and send is followed by watchIdle times as long a pause.
	watchPause = 100 * time.Millisecond
	watchIdle  = 10
	// heartbeat is the longest silence.
	heartbeat = 30 * time.Second
	// rowsOfEvent bounds one event.
	rowsOfEvent = 2000
)

// patienceToSend ends the watch of a client that does not read.
var patienceToSend = 30 * time.Second

func watching(v url.Values) bool { return v.Get("watch") == "true" || v.Get("watch") == "1" }

// watch answers GET jobs?watch=true: events of status.JobEvent, one a line.
func (a *API) watch(w http.ResponseWriter, r *http.Request, c *directory.Caller, asked table.Query) {
	q := asked
	a.confine(&q, c)
	values := r.URL.Query()
	p := table.Project(list(values, "fields"))
	a.Table.Await(r.Context(), q)
	f := follower{api: a, caller: c, stream: openStream(w), projection: p}
	life := watchLife + rand.N(watchLife/2)
	ctx, cancel := context.WithTimeout(r.Context(), life)
	defer cancel()
	f.follow(ctx, a.Table.Watch(q, values.Get("since"), p.Plans()), func() bool {
		now := asked
		again := a.Directory.Resolve(c.Identity, c.Groups)
		a.confine(&now, again)
		return slices.Equal(now.Users, q.Users)
	})
}

// stream is the body of a watch.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// openStream begins the answer to a watch.
func openStream(w http.ResponseWriter) stream {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	return stream{w, http.NewResponseController(w)}
}

// write sends a part of an event, and with last what has gathered; false: the
// client is gone, or does not read.
func (s *stream) write(part []byte, last bool) bool {
	if !s.patient(time.Now().Add(patienceToSend)) {
		return false
	}
	if _, err := s.w.Write(part); err != nil {
		return false
	}
	// HTTP/2 ends a stream whose deadline passes, also one that has nothing to
	// send: it must not outlive what is being sent.
	return !last || s.control.Flush() == nil && s.patient(time.Time{})
}

// patient says until when what is sent must have been taken.
func (s *stream) patient(until time.Time) bool {
	err := s.control.SetWriteDeadline(until)
	return err == nil || errors.Is(err, http.ErrNotSupported)
}

// follower sends one watch of jobs.
type follower struct {
	api    *API
	caller *directory.Caller
	stream
	projection *table.Projection
	buf        *buffer
}

// follow sends events until ctx ends, the client goes away, or it may no
// longer see what it asked for.
func (f *follower) follow(ctx context.Context, w *table.Watcher, still func() bool) {
	for {
		wait, cancel := context.WithTimeout(ctx, heartbeat)
		got, err := w.Next(wait)
		cancel()
		switch {
		case !still():
			return
		case ctx.Err() != nil:
			return
		case errors.Is(err, context.DeadlineExceeded):
			got.Rows, got.Gone = nil, nil
		}
		began := time.Now()
		if !f.send(ctx, &got, err != nil) {
			return
		}
		took := time.Since(began)
		f.api.budget.charge(f.caller, took)
		select {
		case <-time.After(max(watchPause, watchIdle*took)):
		case <-ctx.Done():
			return
		}
		if f.api.budget.pace.Await(ctx, f.caller.Name, weightOf(f.caller)) != nil {
			return
		}
	}
}

// send sends the changes as one event, or a few if there is much to tell.
func (f *follower) send(ctx context.Context, c *table.Changes, silence bool) bool {
	f.buf = takeBuffer() // of an event only: most watches are silent
	defer f.buf.release()
	kind := status.EventDiff
	switch {
	case silence:
		kind = status.EventMark
	case c.Sync:
		kind = status.EventSync
	}
	rows, gone := c.Rows, c.Gone
	for {
		part := rows[:min(len(rows), rowsOfEvent)]
		rows = rows[len(part):]
		revision := c.Revision
		if len(rows) > 0 {
			revision = "" // who goes on after a part would miss the rest
		}
		if !f.encodeInTurn(ctx, kind, revision, part, gone) || !f.write(f.buf.bytes, len(rows) == 0) {
			return false
		}
		if len(rows) == 0 {
			return true
		}
		gone = nil
		if c.Sync {
			kind = status.EventMore
		}
	}
}

// encodeInTurn encodes an event as one of the caller's queries; false: it was
// not to be.
func (f *follower) encodeInTurn(ctx context.Context, kind, revision string, rows []*table.Row, gone []int64) bool {
	release, err := f.api.budget.kinds[kindQuery].Acquire(ctx, f.caller.Name, weightOf(f.caller))
	if err != nil {
		return false
	}
	defer release()
	f.encode(kind, revision, rows, gone)
	return true
}

func (f *follower) encode(kind, revision string, rows []*table.Row, gone []int64) {
	b := append(f.buf.bytes[:0], `{"type":"`...)
	b = append(append(b, kind...), `","revision":"`...)
	b = append(append(b, revision...), `","time":`...)
	b = strconv.AppendInt(b, f.api.Now().Unix(), 10)
	if len(rows) > 0 {
		b = f.api.Table.AppendJSON(append(b, `,"items":`...), rows, f.projection)
	}
	for i, id := range gone {
		sep := `,`
		if i == 0 {
			sep = `,"gone":[`
		}
		b = strconv.AppendInt(append(b, sep...), id, 10)
	}
	if len(gone) > 0 {
		b = append(b, ']')
	}
	f.buf.bytes = append(b, '}', '\n')
}
