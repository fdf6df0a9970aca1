package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// example is a call of a cause with both answers.
type example struct {
	call         *call
	difference   difference
	slurm, berth []line
}

// group is what differences of one cause share: the row of the page of differences on
// purpose, "" if there is none, and the signature.
type group struct{ row, signature string }

// groupOf returns the group of an example.
func groupOf(e *example) group {
	signature := e.difference.signature(e.call)
	row := cmp.Or(intendedRow(signature, e.call.String()), updateRow(e), limitRow(e), orderRow(e), typedRow(e))
	return group{row, signature}
}

// cause is a group of differences.
type cause struct {
	group
	count   int
	shrunk  int
	best    *example
	options map[string]int // how many examples had an option
}

// run compares calls and collects the causes of differences. It is safe for concurrent use.
type run struct {
	both     *pair
	parallel int

	mu                                sync.Mutex
	causes                            map[group]*cause
	calls, equal, unstable, differing map[string]int // by command
	refused                           map[string]int // by only one of the systems
}

func newRun(both *pair, parallel int) *run {
	return &run{both: both, parallel: max(1, parallel), causes: map[group]*cause{}, calls: map[string]int{},
		equal: map[string]int{}, unstable: map[string]int{}, differing: map[string]int{},
		refused: map[string]int{}}
}

// compareAll compares the calls: those that change nothing first, so that both systems
// list the same queue.
func (r *run) compareAll(ctx context.Context, calls []*call) {
	var queries, others []*call
	for _, c := range calls {
		if c.kind == query {
			queries = append(queries, c)
		} else {
			others = append(others, c)
		}
	}
	var done atomic.Int64
	for _, phase := range [][]*call{queries, others} {
		work := make(chan *call)
		var wg sync.WaitGroup
		for range r.parallel {
			wg.Go(func() {
				for c := range work {
					r.compare(c)
					if n := done.Add(1); n%100 == 0 {
						fmt.Fprintf(os.Stderr, "%d of %d calls\n", n, len(calls))
					}
				}
			})
		}
		for _, c := range phase {
			if ctx.Err() != nil {
				break
			}
			work <- c
		}
		close(work)
		wg.Wait()
	}
}

// differences runs the call on both systems at the same time. It returns the answers, and
// where they differ.
func (r *run) differences(c *call) (example, []difference) {
	var slurm, berth answer
	var wg sync.WaitGroup
	wg.Go(func() { slurm = r.both.answer(r.both.slurm, c) })
	wg.Go(func() { berth = r.both.answer(r.both.berth, c) })
	wg.Wait()
	alignTimes(slurm.lines, berth.lines)
	return example{call: c, slurm: slurm.lines, berth: berth.lines}, differences(slurm.lines, berth.lines)
}

// compare compares c. A difference counts only if it shows twice, as both systems change
// while they are asked.
func (r *run) compare(c *call) {
	_, first := r.differences(c)
	e, found := example{}, []difference(nil)
	if len(first) > 0 {
		e, found = r.differences(c)
		found = slices.DeleteFunc(found, func(d difference) bool {
			return !slices.ContainsFunc(first, func(o difference) bool { return o.signature(c) == d.signature(c) })
		})
	}
	if len(found) > 0 && c.kind == query && r.slurmVaries(&e) {
		found = nil
	}
	r.count(c, len(first), len(found))
	if len(found) > 0 && refuses(e.slurm) != refuses(e.berth) {
		r.mu.Lock()
		r.refused[c.command]++
		r.mu.Unlock()
	}
	if c.kind == query && len(found) > 1 {
		found = found[:1]
	}
	seen := map[string]bool{}
	for _, d := range found {
		if s := d.signature(c); !seen[s] {
			seen[s] = true
			e.difference = d
			r.record(e)
		}
	}
}

// Slurm is asked so many times more whether it gives Berth's answer too.
const moreAnswers = 4

// slurmVaries reports whether Slurm, asked again, gives Berth's answer: the order of some
// lists is that in which its threads end.
func (r *run) slurmVaries(e *example) bool {
	for range moreAnswers {
		again := r.both.answer(r.both.slurm, e.call)
		berth := slices.Clone(e.berth)
		alignTimes(again.lines, berth)
		if len(differences(again.lines, berth)) == 0 {
			return true
		}
	}
	return false
}

// refuses reports whether the command of an answer failed.
func refuses(lines []line) bool {
	return slices.ContainsFunc(lines, func(l line) bool { return l.where == "exit" && l.text != "exit 0" })
}

// count counts a call by its result.
func (r *run) count(c *call, first, found int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[c.command]++
	switch {
	case first == 0:
		r.equal[c.command]++
	case found == 0:
		r.unstable[c.command]++
	default:
		r.differing[c.command]++
	}
}

// Each cause is shrunk from this many calls, each with this many comparisons.
const (
	shrinksPerCause = 2
	stepsOfShrink   = 16
)

// record adds a difference to its cause, and shrinks its call unless the cause has good
// examples already.
func (r *run) record(e example) {
	if r.known(groupOf(&e)) {
		return
	}
	e = r.shrunk(e)
	g := groupOf(&e)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.causes[g]
	if c == nil {
		c = &cause{group: g, options: map[string]int{}}
		r.causes[g] = c
	}
	c.count++
	c.shrunk++
	for _, o := range e.call.optionNames() {
		c.options[o]++
	}
	if c.best == nil || len(e.call.String()) < len(c.best.call.String()) {
		c.best = &e
	}
}

// known counts a difference whose cause needs no more examples.
func (r *run) known(g group) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.causes[g]
	if c == nil || c.shrunk < shrinksPerCause {
		return false
	}
	c.count++
	return true
}

// shrunk returns the example of the shortest call with a difference of the same kind.
func (r *run) shrunk(e example) example {
	shrink(e.call, stepsOfShrink, func(c *call) bool {
		smaller, found := r.differences(c)
		for _, d := range found {
			if sameKind(&d, c, &e) {
				smaller.difference = d
				e = smaller
				return true
			}
		}
		return false
	})
	return e
}

// sameKind reports whether difference d of call c is of the kind of example e.
func sameKind(d *difference, c *call, e *example) bool {
	if d.where != e.difference.where {
		return false
	}
	if c.kind == query && d.where == "out" && c.command != "scontrol" {
		return true
	}
	return d.signature(c) == e.difference.signature(e.call)
}
