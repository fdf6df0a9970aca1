package backfill

// Preempt chooses whom to end so that j can start at Now: running jobs out of
// candidates, which come in the order in which they are to go. nil: even
// without all of them it could not, or it needs nobody to go. The fewest of the
// order that will do are taken, and of them those that turn out not to be
// needed stay.
func (s *Snapshot) Preempt(j *Job, candidates []int64) []int64 {
	if len(candidates) == 0 || s.fitsWithout(j, nil) {
		return nil
	}
	gone := func(n int) map[int64]bool {
		m := make(map[int64]bool, n)
		for _, id := range candidates[:n] {
			m[id] = true
		}
		return m
	}
	if !s.fitsWithout(j, gone(len(candidates))) {
		return nil
	}
	few, enough := 0, len(candidates) // few are too few
	for few+1 < enough {
		if mid := (few + enough) / 2; s.fitsWithout(j, gone(mid)) {
			enough = mid
		} else {
			few = mid
		}
	}
	victims := gone(enough)
	// The most important is spared first.
	for i := enough - 1; i >= max(0, enough-mostSpared); i-- {
		delete(victims, candidates[i])
		if !s.fitsWithout(j, victims) {
			victims[candidates[i]] = true
		}
	}
	out := make([]int64, 0, len(victims))
	for _, id := range candidates[:enough] {
		if victims[id] {
			out = append(out, id)
		}
	}
	return out
}

// mostSpared bounds how many victims are looked at once more.
const mostSpared = 64

// fitsWithout tells whether j would start now if these running jobs were gone.
func (s *Snapshot) fitsWithout(j *Job, gone map[int64]bool) bool {
	one := *s
	one.Running = make([]Running, 0, len(s.Running))
	for i := range s.Running {
		if !gone[s.Running[i].ID] {
			one.Running = append(one.Running, s.Running[i])
		}
	}
	alone := *j
	alone.Copies = 0
	one.Pending = []Job{alone}
	for _, d := range one.Plan().Decisions {
		if d.StartNow {
			return true
		}
	}
	return false
}
