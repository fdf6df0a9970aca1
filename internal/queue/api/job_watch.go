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
// history and the event that is being sent.
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
	// maxRowsPerEvent bounds one event.
	maxRowsPerEvent = 2000
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
		if !x.encodeInTurn(ctx, kind, revision, part, gone) || !x.stream.Write(x.buf.Bytes, last) {
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

// encodeInTurn encodes an event while the caller holds the seat of a query. It
// returns false if the caller gets none.
func (x *jobWatch) encodeInTurn(ctx context.Context, kind, revision string, rows []*table.Row, gone []int64) bool {
	release, err := x.api.limiter.AcquireSeat(ctx, x.caller, fairness.Query)
	if err != nil {
		return false
	}
	defer release()
	x.encode(kind, revision, rows, gone)
	return true
}

func (x *jobWatch) encode(kind, revision string, rows []*table.Row, gone []int64) {
	b := append(x.buf.Bytes[:0], `{"type":"`...)
	b = append(b, kind...)
	b = append(b, `","revision":"`...)
	b = append(b, revision...)
	b = append(b, `","time":`...)
	b = strconv.AppendInt(b, x.api.Now().Unix(), 10)
	if len(rows) > 0 {
		b = append(b, `,"items":`...)
		b = x.api.Table.AppendJSON(b, rows, x.fields)
	}
	for i, id := range gone {
		separator := `,`
		if i == 0 {
			separator = `,"gone":[`
		}
		b = append(b, separator...)
		b = strconv.AppendInt(b, id, 10)
	}
	if len(gone) > 0 {
		b = append(b, ']')
	}
	x.buf.Bytes = append(b, '}', '\n')
}
