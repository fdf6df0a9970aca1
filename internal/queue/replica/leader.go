package replica

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-hpc/berth/internal/control"
)

const (
	// leaderTimeout bounds how long a reader waits for the leader, and for its own
	// stores to come as far.
	leaderTimeout = 3 * time.Second
	// maxPlanAge is how old the known plan may be before it is requested again.
	maxPlanAge = 500 * time.Millisecond
	// leaderRetry is how long no request is sent after one timed out. After a request
	// that failed at once, the next one is sent without a pause: another process may
	// have become the leader.
	leaderRetry = 10 * time.Second
)

// Leader is the leader as a reader sees it. Cluster, Link and Now must be set. Safe for
// concurrent use.
type Leader struct {
	Cluster *control.Cluster
	Link    *Link
	Now     func() time.Time

	plan atomic.Pointer[knownPlan]

	mu      sync.Mutex
	current *catchUpCall // in progress
	next    *catchUpCall // for callers that came after current had started
	retryAt time.Time
	skipped versions // versions that did not arrive in time; nobody waits for them again
}

// knownPlan is the newest plan that the leader has sent.
type knownPlan struct {
	epoch  string
	serial uint64
	at     time.Time
	jobs   map[int64]control.Planned
}

// catchUpCall is one request to the leader, shared by all callers that came before
// it was sent.
type catchUpCall struct {
	done chan struct{}
	got  versions
	ok   bool
}

// Planned returns the part of the leader's plan about a pending job; ok is false if the
// plan does not have the job, or no plan has arrived yet.
func (l *Leader) Planned(id int64) (p control.Planned, ok bool) {
	if k := l.plan.Load(); k != nil {
		p, ok = k.jobs[id]
	}
	return p, ok
}

// CatchUp waits until this process's stores have reached the versions of the leader's, so
// that a caller finds what it wrote a moment ago through the leader. If the leader does
// not respond in time, CatchUp returns nevertheless, and callers get the state of this
// process.
func (l *Leader) CatchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	f := l.join()
	if f == nil {
		return
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return
	}
	if f.ok && l.await(ctx, f.got) != nil {
		l.skipVersions(f.got)
	}
}

// Run keeps the plan up to date for watchers of the queue, until ctx ends.
func (l *Leader) Run(ctx context.Context) {
	tick := time.NewTicker(2 * maxPlanAge)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.CatchUp(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// join returns the request to the leader for which the caller has to wait: one that is
// sent after the call of join. It returns nil if no request is to be sent now.
func (l *Leader) join() *catchUpCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.Now().Before(l.retryAt):
		return nil
	case l.current == nil:
		l.current = &catchUpCall{done: make(chan struct{})}
		go l.run(l.current)
		return l.current
	case l.next == nil:
		l.next = &catchUpCall{done: make(chan struct{})}
	}
	return l.next
}

// run sends the request, and then the next one if callers wait for it.
func (l *Leader) run(f *catchUpCall) {
	for f != nil {
		got, err := l.query()
		f.got, f.ok = got, err == nil
		l.mu.Lock()
		if errors.Is(err, context.DeadlineExceeded) {
			l.retryAt = l.Now().Add(leaderRetry)
		}
		close(f.done)
		f, l.next = l.next, nil
		l.current = f
		l.mu.Unlock()
	}
}

// query sends one request to the leader. It includes the plan if the known one is old.
func (l *Leader) query() (versions, error) {
	ctx, cancel := context.WithTimeout(context.Background(), leaderTimeout)
	defer cancel()
	q := url.Values{}
	k := l.plan.Load()
	if k == nil {
		k = &knownPlan{}
	}
	now := l.Now()
	if now.Sub(k.at) >= maxPlanAge {
		q.Set("plan", "yes")
		q.Set("epoch", k.epoch)
		q.Set("serial", strconv.FormatUint(k.serial, 10))
	}
	s, err := l.fetch(ctx, q)
	if err != nil {
		return versions{}, err
	}
	if s.Epoch != "" {
		l.plan.Store(k.with(s, now))
	}
	return s.Versions, nil
}

// fetch sends the request and decodes the response.
func (l *Leader) fetch(ctx context.Context, q url.Values) (*state, error) {
	c, base, err := l.Link.client(ctx)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath(Path).String()+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: c}).Do(r)
	if err != nil {
		l.Link.forget()
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // the body has been read, or the request failed
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the leader at %s responded with %s", base, resp.Status)
	}
	s := &state{}
	return s, json.NewDecoder(resp.Body).Decode(s)
}

// with returns the plan after the leader's response s was applied to k.
func (k *knownPlan) with(s *state, now time.Time) *knownPlan {
	n := &knownPlan{epoch: s.Epoch, serial: s.Serial, at: now, jobs: k.jobs}
	if !s.Whole && len(s.Plan)+len(s.Gone) == 0 {
		return n
	}
	n.jobs = make(map[int64]control.Planned, len(k.jobs)+len(s.Plan))
	if !s.Whole {
		for id, p := range k.jobs {
			n.jobs[id] = p
		}
	}
	for i := range s.Plan {
		n.jobs[s.Plan[i].ID] = s.Plan[i].planned()
	}
	for _, id := range s.Gone {
		delete(n.jobs, id)
	}
	return n
}

// await waits until every store has its version.
func (l *Leader) await(ctx context.Context, v versions) error {
	l.mu.Lock()
	skipped := l.skipped
	l.mu.Unlock()
	c := l.Cluster
	for _, s := range []struct {
		await    func(context.Context, uint64) error
		to, skip uint64
	}{
		{c.Jobs.Await, v.Jobs, skipped.Jobs},
		{c.Nodes.Await, v.Nodes, skipped.Nodes},
		{c.Partitions.Await, v.Partitions, skipped.Partitions},
		{c.Reservations.Await, v.Reservations, skipped.Reservations},
		{c.Users.Await, v.Users, skipped.Users},
		{c.Accounts.Await, v.Accounts, skipped.Accounts},
		{c.QOS.Await, v.QOS, skipped.QOS},
		{c.Settings.Await, v.Settings, skipped.Settings},
	} {
		if s.to <= s.skip {
			continue
		}
		if err := s.await(ctx, s.to); err != nil {
			return err
		}
	}
	return nil
}

// skipVersions records versions that did not arrive in time. They may never arrive: a
// watch that was interrupted misses the versions of objects that were deleted meanwhile.
func (l *Leader) skipVersions(v versions) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skipped = v
}
