package history

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// KillWait is how long after its limit a job may still run without a fault: the cluster's
// KillWait, and a margin for a busy machine.
const KillWait = 15 * time.Second

// change is that a run begins or ends to use something.
type change struct {
	at time.Time
	by int64
}

// peak calls report once if the runs that were certainly alive at one time used more than
// limit. Where a run ends as another starts, the end counts first.
func peak(runs []*run, use func(*run) int64, limit int64, report func(int64, time.Time)) {
	var changes []change
	for _, r := range runs {
		n := use(r)
		if n == 0 {
			continue
		}
		for _, s := range r.spans() {
			if s.to.After(s.from) {
				changes = append(changes, change{s.from, n}, change{s.to, -n})
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.by, b.by)) })
	var now, most int64
	var when time.Time
	for _, c := range changes {
		if now += c.by; now > most {
			most, when = now, c.at
		}
	}
	if most > limit {
		report(most, when)
	}
}

// held is one resource that a run had.
type held struct {
	node  string
	index int64
}

// noneShared reports two runs that had the same resource at the same time.
func (h *History) noneShared(of func(Share) []int64, report func(a, b *run, what held)) {
	attempts := h.attempts()
	users := map[held][]*run{}
	seen := map[[2]int64]bool{}
	for _, p := range h.Placements {
		// One attempt may have been seen several times.
		k := [2]int64{p.Job, p.Restart}
		if seen[k] {
			continue
		}
		seen[k] = true
		for _, a := range attempts[p.Job] {
			if a.Restart != p.Restart {
				continue
			}
			for _, n := range p.Nodes {
				for _, i := range of(n) {
					users[held{n.Node, i}] = append(users[held{n.Node, i}], a)
				}
			}
		}
	}
	for what, list := range users {
		for i, a := range list {
			for _, b := range list[i+1:] {
				if a.Job != b.Job && a.overlaps(b) {
					report(a, b, what)
				}
			}
		}
	}
}

func noCPUShared(h *History, report func(string, ...any)) {
	exclusive := func(s Share) []int64 {
		if s.Shared {
			return nil
		}
		return s.CPUs
	}
	h.noneShared(exclusive, func(a, b *run, what held) {
		report("jobs %d and %d both had CPU %d of %s between %v and %v", a.Job, b.Job, what.index, what.node,
			stamp(later(a.first, b.first)), stamp(earlier(a.last, b.last)))
	})
}

// noGPUShared checks the allocations, and what the jobs' environments said.
func noGPUShared(h *History, report func(string, ...any)) {
	h.noneShared(func(s Share) []int64 { return s.GPUs }, func(a, b *run, what held) {
		report("jobs %d and %d both had GPU %d of %s", a.Job, b.Job, what.index, what.node)
	})
	users := map[held][]*run{}
	for _, runs := range h.runs() {
		for _, r := range runs {
			if r.Step != "batch" {
				continue
			}
			for text := range strings.SplitSeq(r.GPUs, ",") {
				if i, err := strconv.ParseInt(text, 10, 64); err == nil {
					users[held{r.Node, i}] = append(users[held{r.Node, i}], r)
				}
			}
		}
	}
	for what, list := range users {
		for i, a := range list {
			for _, b := range list[i+1:] {
				if a.Job != b.Job && a.overlaps(b) {
					report("jobs %d and %d both had SLURM_JOB_GPUS=%d on %s", a.Job, b.Job, what.index, what.node)
				}
			}
		}
	}
}

// noNodeOvercommitted counts CPUs on the batch hosts by what was requested, for which no
// allocation has to have been seen.
func noNodeOvercommitted(h *History, report func(string, ...any)) {
	of := h.submissionOf()
	byNode := map[string][]*run{}
	for _, list := range h.attempts() {
		for _, a := range list {
			byNode[a.Node] = append(byNode[a.Node], a)
		}
	}
	for node, runs := range byNode {
		has, ok := h.Nodes[node]
		if !ok {
			report("jobs ran on %q, which is not a node", node)
			continue
		}
		peak(runs, func(r *run) int64 {
			if s := of(r.Job, r.Array); s != nil {
				return s.Job.CPUs
			}
			return 0
		}, has.CPUs, func(n int64, at time.Time) {
			report("jobs with %d CPUs ran on %s at %v, which has %d", n, node, stamp(at), has.CPUs)
		})
	}
}

func licensesSuffice(h *History, report func(string, ...any)) {
	of := h.submissionOf()
	var all []*run
	for _, list := range h.attempts() {
		all = append(all, list...)
	}
	for name, total := range h.Licenses {
		peak(all, func(r *run) int64 {
			if s := of(r.Job, r.Array); s != nil && s.Job.License == name {
				return 1
			}
			return 0
		}, total, func(n int64, at time.Time) {
			report("%d jobs with the license %s ran at %v, of %d that may", n, name, stamp(at), total)
		})
	}
}

// limitsHold allows for the time of faults during the job.
func limitsHold(h *History, report func(string, ...any)) {
	of := h.submissionOf()
	for id, list := range h.attempts() {
		for _, a := range list {
			s := of(id, a.Array)
			if s == nil || s.Job.Limit == 0 || h.requested("suspend", id, a.Array, a.last) {
				continue
			}
			allowed := s.Job.Limit + KillWait + h.faulty(a.first, a.last)
			if ran := a.last.Sub(a.first); ran > allowed {
				report("job %d ran %v, with a limit of %v", id, ran.Round(time.Millisecond), s.Job.Limit)
			}
		}
	}
}

// faulty returns for how long faults were active between the two times, at most.
func (h *History) faulty(from, to time.Time) time.Duration {
	var sum time.Duration
	for _, f := range h.Faults {
		if d := earlier(f.End, to).Sub(later(f.Begin, from)); d > 0 {
			sum += d
		}
	}
	return sum
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
