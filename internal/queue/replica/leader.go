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
	// patience bounds how long a reader waits for the leader, and for its own
	// stores to come as far.
	patience = 3 * time.Second
	// fresh is how old what is known of the plan may be when it is asked for.
	fresh = 500 * time.Millisecond
	// shunned is how long a leader that stood still is not asked again. One that
	// refuses at once is asked every time: the next may have taken its place.
	shunned = 10 * time.Second
)

// Leader is the leader as a process sees it that only reads. Safe for
// concurrent use.
type Leader struct {
	Cluster *control.Cluster
	Link    *Link
	Now     func() time.Time

	plan atomic.Pointer[known]

	mu     sync.Mutex
	flight *flight // asking now
	next   *flight // who came after that one began
	down   time.Time
	floor  versions // waited for in vain: not waited for again
}

// known is the plan as far as the leader has told it.
type known struct {
	epoch  string
	serial uint64
	at     time.Time
	jobs   map[int64]control.Planned
}

// flight is one question to the leader, shared by all who asked before it
// began.
type flight struct {
	done chan struct{}
	got  versions
	ok   bool
}

// Planned is what the leader's plan says about a pending job.
func (l *Leader) Planned(id int64) (p control.Planned, ok bool) {
	if k := l.plan.Load(); k != nil {
		p, ok = k.jobs[id]
	}
	return p, ok
}

// CatchUp asks the leader how far it is and waits until this process is as
// far: a caller finds what it wrote a moment ago through the leader. Where the
// leader does not answer in time, what is known here has to do.
func (l *Leader) CatchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	f := l.board()
	if f == nil {
		return
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return
	}
	if f.ok && l.await(ctx, f.got) != nil {
		l.giveUp(f.got)
	}
}

// Run keeps the plan fresh for those who follow the queue, until ctx ends.
func (l *Leader) Run(ctx context.Context) {
	tick := time.NewTicker(2 * fresh)
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

// board joins the next question to the leader; nil: it is not asked now.
func (l *Leader) board() *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.Now().Before(l.down):
		return nil
	case l.flight == nil:
		l.flight = &flight{done: make(chan struct{})}
		go l.fly(l.flight)
		return l.flight
	case l.next == nil:
		l.next = &flight{done: make(chan struct{})}
	}
	return l.next
}

// fly asks, and then again for those who came meanwhile.
func (l *Leader) fly(f *flight) {
	for f != nil {
		got, err := l.ask()
		f.got, f.ok = got, err == nil
		l.mu.Lock()
		if errors.Is(err, context.DeadlineExceeded) {
			l.down = l.Now().Add(shunned)
		}
		close(f.done)
		f, l.next = l.next, nil
		l.flight = f
		l.mu.Unlock()
	}
}

// ask asks the leader once, for the plan as well when it is due.
func (l *Leader) ask() (versions, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	q := url.Values{}
	k := l.plan.Load()
	if k == nil {
		k = &known{}
	}
	now := l.Now()
	if now.Sub(k.at) >= fresh {
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
	defer resp.Body.Close() //nolint:errcheck // read to its end, or given up
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the leader at %s answers %s", base, resp.Status)
	}
	s := &state{}
	return s, json.NewDecoder(resp.Body).Decode(s)
}

// with is the plan after the leader's answer.
func (k *known) with(s *state, now time.Time) *known {
	n := &known{epoch: s.Epoch, serial: s.Serial, at: now, jobs: k.jobs}
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

// await waits for every store.
func (l *Leader) await(ctx context.Context, v versions) error {
	l.mu.Lock()
	floor := l.floor
	l.mu.Unlock()
	c := l.Cluster
	for _, s := range []struct {
		await    func(context.Context, uint64) error
		to, vain uint64
	}{
		{c.Jobs.Await, v.Jobs, floor.Jobs},
		{c.Nodes.Await, v.Nodes, floor.Nodes},
		{c.Partitions.Await, v.Partitions, floor.Partitions},
		{c.Reservations.Await, v.Reservations, floor.Reservations},
		{c.Users.Await, v.Users, floor.Users},
		{c.Accounts.Await, v.Accounts, floor.Accounts},
		{c.QOS.Await, v.QOS, floor.QOS},
		{c.Settings.Await, v.Settings, floor.Settings},
	} {
		if s.to <= s.vain {
			continue
		}
		if err := s.await(ctx, s.to); err != nil {
			return err
		}
	}
	return nil
}

// giveUp remembers versions that did not come: a watch that was broken off and
// begun anew leaves out what was deleted meanwhile.
func (l *Leader) giveUp(v versions) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.floor = v
}
