package backfill

// What frees nothing changes nothing for those who wait: between two plans of easy
// in which nobody ended, only who came since can start. That is known of one node,
// of which no job finds other parts than before.

// settled is what easy found out about a queue of which nobody can start.
type settled struct {
	is     bool
	until  int64   // when a reservation begins
	behind int     // so many of the queue are before the last one with a reservation, with it
	begins int64   // when the last of all jobs that were submitted may begin
	fresh  *waiter // came since
}

// settle notes that easy has looked at the whole queue, and how many of its
// reservations are left.
func (q *Scheduler) settle(left int) {
	e, s := q.e, &q.settled
	s.is, s.fresh, s.until = e.exact && len(e.nodes) == 1 && left == 0 && len(e.s.AdvanceReservations) == 0 && s.begins <= e.now, nil, Forever
	if !s.is {
		return
	}
	for _, w := range q.held {
		if w.told.Nodes != nil {
			s.until = min(s.until, w.told.Start)
		}
	}
	s.behind = 0
	for held := 0; held < len(q.held); s.behind++ {
		if q.queue[s.behind].held {
			held++
		}
	}
}

// came tells what is settled of w, which is the ith now.
func (q *Scheduler) came(w *waiter, i int) {
	s := &q.settled
	s.begins = max(s.begins, w.job.Begin)
	s.is = s.is && s.fresh == nil && i >= s.behind && s.begins <= q.e.now
	s.fresh = w
}
