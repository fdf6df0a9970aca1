package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fairness"
	"github.com/berth-hpc/berth/internal/queue/query"
	"github.com/berth-hpc/berth/internal/queue/response"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// Limits of watches. An open watch costs this process a position in the table's
// history and the part of an event that is being sent.
const (
	// A watch ends at an event between watchLifetime and one and a half times that: the
	// client continues from its revision, and its permissions are checked again.
	watchLifetime = 30 * time.Minute
	// minEventInterval is the least time between two events. An event that took
	// long to encode and send is followed by a pause of restFactor times as long.
	minEventInterval = 100 * time.Millisecond
	restFactor       = 10
	// markInterval is the longest time without an event.
	markInterval = 30 * time.Second
	// maxRowsPerEvent bounds one event, and maxPart the bytes of it that are encoded before
	// those of the last part are written, except for the last row.
	maxRowsPerEvent = 2000
	maxPart         = 128 << 10
)

// watchJobs serves GET jobs?watch=true: events of type status.JobEvent, one a
// line.
func (a *API) watchJobs(w http.ResponseWriter, r *http.Request, c *directory.Caller, requested table.Query) {
	q := requested
	a.resolver().Restrict(&q, c)
	v := r.URL.Query()
	fields := table.Project(query.List(v, "fields"))
	a.Table.Await(r.Context(), q)
	watch := jobWatch{api: a, caller: c, stream: response.NewStream(w), fields: fields}
	ctx, cancel := context.WithTimeout(r.Context(), watchLifetime+rand.N(watchLifetime/2))
	defer cancel()
	watch.run(ctx, a.Table.Watch(q, v.Get("since"), fields.Plans()), func() bool {
		now := requested
		a.resolver().Restrict(&now, a.Directory.Resolve(c.Identity, c.Groups))
		return slices.Equal(now.Users, q.Users)
	})
}

// jobWatch is one watch of jobs.
type jobWatch struct {
	api    *API
	caller *directory.Caller
	stream response.Stream
	fields *table.Projection
	buf    *response.Buffer
}

// run sends events until ctx ends, the client goes away, or mayContinue returns
// false because the caller may no longer see what it requested.
func (x *jobWatch) run(ctx context.Context, w *table.Watcher, mayContinue func() bool) {
	for {
		waitCtx, cancel := context.WithTimeout(ctx, markInterval)
		changes, err := w.Next(waitCtx)
		cancel()
		if !mayContinue() || ctx.Err() != nil {
			return
		}
		if errors.Is(err, context.DeadlineExceeded) {
			changes.Rows, changes.Gone = nil, nil
		}
		start := time.Now()
		if !x.send(ctx, &changes, err != nil) {
			return
		}
		lasted := time.Since(start)
		x.api.limiter.Charge(x.caller, lasted)
		select {
		case <-time.After(max(minEventInterval, restFactor*lasted)):
		case <-ctx.Done():
			return
		}
		if x.api.limiter.AwaitTime(ctx, x.caller) != nil {
			return
		}
	}
}

// send sends the changes as one event, or as a few if there are many rows; with
// mark set, it sends only the revision. It returns false if the watch must end.
func (x *jobWatch) send(ctx context.Context, c *table.Changes, mark bool) bool {
	x.buf = response.NewBuffer() // for this event only: most watches are silent
	defer x.buf.Release()
	kind := status.EventDiff
	switch {
	case mark:
		kind = status.EventMark
	case c.Sync:
		kind = status.EventSync
	}
	rows, gone := c.Rows, c.Gone
	for {
		part := rows[:min(len(rows), maxRowsPerEvent)]
		rows = rows[len(part):]
		last := len(rows) == 0
		revision := c.Revision
		if !last {
			revision = "" // a client that continued from here would miss the other rows
		}
		if !x.sendEvent(ctx, &jobEvent{kind: kind, revision: revision, rows: part, gone: gone}, last) {
			return false
		}
		if last {
			return true
		}
		gone = nil
		if c.Sync {
			kind = status.EventMore
		}
	}
}

// jobEvent is the rest of an event that is being sent.
type jobEvent struct {
	kind, revision string
	begun          bool
	rows           []*table.Row
	gone           []int64
}

// sendEvent sends an event in parts of about maxPart bytes: many clients that read slowly
// must not take the memory of as many queues. It returns false if the watch must end.
func (x *jobWatch) sendEvent(ctx context.Context, e *jobEvent, flush bool) bool {
	for {
		last, ok := x.encodeInTurn(ctx, e)
		if !ok || !x.stream.Write(x.buf.Bytes, last && flush) {
			return false
		}
		if last {
			return true
		}
	}
}

// encodeInTurn encodes the next part of an event while the caller holds the seat of a
// query. ok is false if the caller gets none.
func (x *jobWatch) encodeInTurn(ctx context.Context, e *jobEvent) (last, ok bool) {
	release, err := x.api.limiter.AcquireSeat(ctx, x.caller, fairness.Query)
	if err != nil {
		return false, false
	}
	defer release()
	x.buf.Bytes, last = x.appendPart(x.buf.Bytes[:0], e)
	return last, true
}

// appendPart appends the next part of the event, and removes it from e. last is true if
// that was the rest.
func (x *jobWatch) appendPart(b []byte, e *jobEvent) (out []byte, last bool) {
	if e.begun {
		b = append(b, ',')
	} else {
		e.begun = true
		b = x.appendHead(b, e)
	}
	if len(e.rows) > 0 {
		var n int
		b, n = x.api.Table.AppendRows(b, e.rows, x.fields, maxPart)
		if e.rows = e.rows[n:]; len(e.rows) > 0 {
			return b, false
		}
		b = append(b, ']')
	}
	for i, id := range e.gone {
		separator := `,`
		if i == 0 {
			separator = `,"gone":[`
		}
		b = append(b, separator...)
		b = strconv.AppendInt(b, id, 10)
	}
	if len(e.gone) > 0 {
		b = append(b, ']')
	}
	return append(b, '}', '\n'), true
}

// appendHead appends the event up to its first row.
func (x *jobWatch) appendHead(b []byte, e *jobEvent) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, e.kind...)
	b = append(b, `","revision":"`...)
	b = append(b, e.revision...)
	b = append(b, `","time":`...)
	b = strconv.AppendInt(b, x.api.Now().Unix(), 10)
	if len(e.rows) > 0 {
		b = append(b, `,"items":[`...)
	}
	return b
}
