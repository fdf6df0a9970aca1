package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/job"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/why"
)

// runPlain is the program for screen readers and terminals without cursor
// movement: it prints changes of the queue as lines, and reads commands as lines.
func (m *Model) runPlain(ctx context.Context, p *stdio.Process) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := m.screen.Filter
	f.Fields = append(query.Fields(), "plannedNodes")
	events := make(chan *status.JobEvent)
	failed := make(chan error, 1)
	go func() {
		failed <- m.env.Cluster.Watch(ctx, f, func(e *status.JobEvent) error {
			select {
			case events <- e:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, func(err error) { fmt.Fprintln(p.Err, printable.Escape(err.Error())+"; trying again") })
	}()
	l := &plainScreen{m: m, out: p.Out, jobs: map[int64]status.Job{}, described: map[int64]string{}}
	l.print("Changes of the queue are printed as they happen. " +
		"Commands: list, counts, job ID, cancel ID, hold ID, release ID, quit, help.")
	return l.loop(ctx, events, failed, readLines(ctx, p.In))
}

// readLines returns a channel of the lines of r, which is closed at their end.
func readLines(ctx context.Context, r io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		s := bufio.NewScanner(r)
		for s.Scan() {
			select {
			case out <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// plainScreen is the state of the program without a screen.
type plainScreen struct {
	m         *Model
	out       io.Writer
	jobs      map[int64]status.Job
	described map[int64]string // last description printed of each job
	complete  bool

	stale    map[int64]bool
	question func(answer string)
}

func (l *plainScreen) print(parts ...any) {
	fmt.Fprintln(l.out, parts...)
}

// loop handles events and typed lines until the user quits or the watch fails.
func (l *plainScreen) loop(
	ctx context.Context, events <-chan *status.JobEvent, failed <-chan error, typed <-chan string,
) error {
	for {
		select {
		case e := <-events:
			l.apply(e)
		case text, ok := <-typed:
			if !ok || strings.TrimSpace(text) == "quit" || strings.TrimSpace(text) == "q" {
				return nil
			}
			l.command(ctx, strings.Fields(text))
		case err := <-failed:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// apply applies an event and prints what it changed.
func (l *plainScreen) apply(e *status.JobEvent) {
	if e.Type == status.EventSync {
		l.stale = map[int64]bool{}
		for id := range l.jobs {
			l.stale[id] = true
		}
	}
	for i := range e.Items {
		j := e.Items[i]
		delete(l.stale, j.ID)
		l.jobs[j.ID] = j
		l.report(&j)
	}
	for _, id := range e.Gone {
		l.removed(id)
	}
	if e.Revision != "" && l.stale != nil {
		for id := range l.stale {
			l.removed(id)
		}
		l.stale = nil
		if !l.complete {
			l.complete = true
			l.printCounts()
		}
	}
}

// report prints a job's state, if its description has changed.
func (l *plainScreen) report(j *status.Job) {
	text := j.State
	switch {
	case j.State == "PENDING" && j.Reason != "" && j.Reason != "None":
		text += " (" + j.Reason + ")"
	case j.NodeList != "":
		text += " on " + j.NodeList
	}
	if l.described[j.ID] == text {
		return
	}
	l.described[j.ID] = text
	if l.complete {
		l.print(printable.Escape(fmt.Sprintf("Job %s %s of %s: %s", format.JobID(j), j.Name, j.User, text)))
	}
}

// removed prints that a job is no longer in the queue.
func (l *plainScreen) removed(id int64) {
	j, ok := l.jobs[id]
	if !ok {
		return
	}
	delete(l.jobs, id)
	delete(l.described, id)
	l.print(printable.Escape(fmt.Sprintf("Job %s %s of %s has ended.", format.JobID(&j), j.Name, j.User)))
}

// printCounts prints how many jobs are in each state.
func (l *plainScreen) printCounts() {
	states := map[string]int{}
	for id := range l.jobs {
		states[l.jobs[id].State]++
	}
	parts := []string{fmt.Sprintf("%d jobs", len(l.jobs))}
	for _, s := range slices.Sorted(maps.Keys(states)) {
		parts = append(parts, fmt.Sprintf("%d %s", states[s], s))
	}
	l.print(strings.Join(parts, ", ") + ".")
}

// maxListed bounds the length of a list, which a screen reader reads aloud.
const maxListed = 200

// command runs a typed command, or passes the line to the open question.
func (l *plainScreen) command(ctx context.Context, words []string) {
	if l.question != nil {
		answer := l.question
		l.question = nil
		answer(strings.Join(words, " "))
		return
	}
	if len(words) == 0 {
		return
	}
	verbs := map[string]string{
		"cancel": status.OpCancel, "hold": status.OpHold, "release": status.OpRelease, "requeue": status.OpRequeue,
	}
	switch op := verbs[words[0]]; {
	case words[0] == "list":
		l.list(strings.Join(words[1:], " "))
	case words[0] == "counts":
		l.printCounts()
	case words[0] == "job" && len(words) == 2:
		l.job(ctx, words[1])
	case op != "" && len(words) > 1:
		l.operate(ctx, words[0], op, words[1:])
	default:
		l.print(
			"Commands: list [FILTER], counts, job ID, cancel ID..., hold ID..., release ID..., requeue ID..., quit.",
		)
	}
}

// list prints the jobs that pass a filter.
func (l *plainScreen) list(filter string) {
	q, err := query.Parse(filter)
	if err != nil {
		l.print(printable.Escape(err.Error()))
		return
	}
	store := data.NewStore(append(query.Fields(), "plannedNodes"))
	e := &status.JobEvent{Type: status.EventSync, Revision: "1", Time: l.m.env.Now().Unix()}
	for _, id := range slices.Sorted(maps.Keys(l.jobs)) {
		e.Items = append(e.Items, l.jobs[id])
	}
	store.Apply(e)
	pass, n := q.Bind(store, e.Time), 0
	for i := range e.Items {
		j := &e.Items[i]
		slot, _ := store.Slot(j.ID)
		if !pass(slot) {
			continue
		}
		if n++; n <= maxListed {
			text := fmt.Sprintf("%d. Job %s %s of %s: %s", n, format.JobID(j), j.Name, j.User, l.described[j.ID])
			l.print(printable.Escape(text))
		}
	}
	if n > maxListed {
		l.print(fmt.Sprintf("and %d more; list FILTER shows fewer.", n-maxListed))
	} else if n == 0 {
		l.print("No job passes the filter.")
	}
}

// job prints a description of one job, and why it is pending.
func (l *plainScreen) job(ctx context.Context, id string) {
	list, err := l.m.env.Cluster.Jobs(ctx, jobs.Filter{IDs: []string{id}, States: jobs.AllStates})
	if err != nil || len(list.Items) == 0 {
		l.print("No such job: " + printable.Escape(id))
		return
	}
	j := list.Items[0]
	l.print(printable.Escape(fmt.Sprintf("Job %s %s of %s in %s: %s, %d nodes, %d CPUs.",
		format.JobID(&j), j.Name, j.User, j.Partition, j.State, j.Nodes, j.CPUs)))
	if j.State != "PENDING" {
		return
	}
	facts, err := job.Gather(ctx, l.m.env, j)
	if err != nil {
		l.print(printable.Escape(err.Error()))
		return
	}
	a := why.Explain(facts)
	for _, text := range append(append([]string{a.Summary}, a.Missing...), append(a.Release, a.Action)...) {
		if text != "" {
			l.print(text)
		}
	}
}

// operate carries out an operation on jobs once the user has typed "yes".
func (l *plainScreen) operate(ctx context.Context, name, op string, ids []string) {
	if l.m.env.ReadOnly {
		l.print("Started with --read-only: nothing is changed.")
		return
	}
	l.print(fmt.Sprintf("%s %s? Type yes.", name, printable.Escape(strings.Join(ids, " "))))
	l.question = func(answer string) {
		if answer != "yes" {
			l.print("Nothing was done.")
			return
		}
		result, err := l.m.env.Cluster.Operate(ctx, status.Operation{Verb: op, Jobs: ids})
		if err != nil {
			l.print(printable.Escape(err.Error()))
			return
		}
		for _, item := range result.Items {
			text := "done"
			if item.Error != "" {
				text = item.Error
			}
			l.print(printable.Escape(item.Job + ": " + text))
		}
	}
}
