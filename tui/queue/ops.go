package queue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
)

// manyJobs are so many that a single key does not confirm.
const manyJobs = 20

// verb is something that can be done with jobs.
type verb struct {
	op         string
	name, past string // "cancel", "cancelled"
	command    string // the Slurm command that does the same
}

var verbs = map[ui.Action]verb{
	ui.Cancel:  {status.OpCancel, "cancel", "cancelled", "scancel"},
	ui.Hold:    {status.OpHold, "hold", "held", "scontrol hold"},
	ui.Release: {status.OpRelease, "release", "released", "scontrol release"},
	ui.Requeue: {status.OpRequeue, "requeue", "requeued", "scontrol requeue"},
	ui.Suspend: {status.OpSuspend, "suspend", "suspended", "scontrol suspend"},
	ui.Resume:  {status.OpResume, "resume", "resumed", "scontrol resume"},
}

// undo is what takes the last operation back.
type undo struct {
	verb verb
	jobs []string
}

// target is one entry of an operation.
type target struct {
	id    string // as commands take it
	owner string
	count map[string]int // tasks by state
}

func (p *Page) isMarked(i int) bool {
	if len(p.marks) == 0 {
		return false
	}
	if p.marks[p.rows.key(i)] {
		return true
	}
	id, _ := p.rows.groupOf(p.rows.list[i].slot)
	return id != 0 && p.marks[-id]
}

func (p *Page) toggleMark() {
	key := p.rows.key(p.list.Cursor)
	if key == 0 {
		return
	}
	p.anchor = key
	if p.marks[key] {
		delete(p.marks, key)
	} else {
		p.marks[key] = true
	}
	p.list.Move(1)
	p.moved()
}

func (p *Page) markRange() {
	from := p.rows.find(p.anchor)
	if from < 0 {
		from = p.list.Cursor
	}
	for i := min(from, p.list.Cursor); i <= max(from, p.list.Cursor); i++ {
		if key := p.rows.key(i); key != 0 {
			p.marks[key] = true
		}
	}
	p.anchor = p.rows.key(p.list.Cursor)
}

// markAll marks what the filter shows, or nothing if all of it is marked.
func (p *Page) markAll() {
	all := len(p.rows.list) > 0
	for i := range p.rows.list {
		all = all && p.isMarked(i)
	}
	clear(p.marks)
	if !all {
		for i := range p.rows.list {
			p.marks[p.rows.key(i)] = true
		}
	}
}

// Unmark takes all marks off; it tells whether there were any.
func (p *Page) Unmark() bool {
	had := len(p.marks) > 0
	clear(p.marks)
	return had
}

// targets are the marked jobs, else what the cursor is on.
func (p *Page) targets() []target {
	keys := slices.Sorted(maps.Keys(p.marks))
	if len(keys) == 0 {
		if key := p.rows.key(p.list.Cursor); key != 0 {
			keys = []int64{key}
		}
	}
	members := map[int64][]int32{}
	if len(keys) > 0 && keys[0] < 0 {
		for _, slot := range p.rows.store.Slots(nil) {
			if id, _ := p.rows.groupOf(slot); id != 0 && p.marked(keys, -id) {
				members[id] = append(members[id], slot)
			}
		}
	}
	var out []target
	for _, key := range keys {
		if key < 0 {
			if t, ok := p.whole(-key, members[-key]); ok {
				out = append(out, t)
			}
			continue
		}
		slot, ok := p.rows.store.Slot(key)
		if id, _ := p.rows.groupOf(slot); !ok || id != 0 && p.marked(keys, -id) {
			continue // its group is meant as a whole
		}
		j := p.rows.store.Job(slot)
		out = append(out, target{id: operand(&j), owner: j.User, count: map[string]int{j.State: p.rows.tasks(slot)}})
	}
	return out
}

func (p *Page) marked(sorted []int64, key int64) bool {
	_, ok := slices.BinarySearch(sorted, key)
	return ok
}

// whole is a group as one target.
func (p *Page) whole(id int64, slots []int32) (target, bool) {
	t := target{id: strconv.FormatInt(id, 10), count: map[string]int{}}
	for _, s := range slots {
		t.owner = p.rows.store.Text(s, "user")
		t.count[p.rows.store.Text(s, "state")] += p.rows.tasks(s)
	}
	return t, len(slots) > 0
}

// operand is a job's id as operations take it.
func operand(j *status.Job) string {
	if j.ArrayJobID != 0 {
		spec, _, _ := strings.Cut(j.ArrayTaskID, "%")
		if _, err := strconv.Atoi(spec); err == nil || spec == "" {
			return format.JobID(j)
		}
		return fmt.Sprintf("%d_[%s]", j.ArrayJobID, spec)
	}
	return format.JobID(j)
}

// act is what changes jobs, or leads elsewhere.
func (p *Page) act(a ui.Action) tea.Cmd {
	if v, ok := verbs[a]; ok {
		return p.confirm(v)
	}
	switch a {
	case ui.Update:
		return p.askUpdate()
	case ui.Undo:
		return p.undone()
	case ui.Bell:
		return p.ringFor()
	case ui.ShowLine:
		return p.showLine()
	case ui.Shell:
		return p.shell()
	case ui.Output, ui.Errors:
		if id := p.Current(); id != "" {
			if a == ui.Errors {
				id = "e" + id
			}
			return p.env.Send(ui.Go{Page: ui.PageOutput, ID: id})
		}
	}
	return nil
}

// refused says why nothing may be changed, if so.
func (p *Page) refused() bool {
	switch {
	case p.env.ReadOnly:
		p.env.Complain(errors.New("started with --read-only: nothing is changed"))
	case p.busy:
		p.env.Complain(errors.New("the last request is still under way"))
	default:
		return false
	}
	return true
}

func (p *Page) confirm(v verb) tea.Cmd {
	if p.refused() {
		return nil
	}
	targets := p.targets()
	if len(targets) == 0 {
		return p.env.Say("There is no job to " + v.name + ".")
	}
	c := ui.Confirm{Lines: p.describe(targets), Do: func() tea.Cmd { return p.operate(v, targets) }}
	n, foreign := total(targets), p.foreign(targets)
	c.Title = fmt.Sprintf("%s %s?", strings.ToUpper(v.name[:1])+v.name[1:], counted(n))
	if n > manyJobs || foreign {
		c.Word = strconv.Itoa(n)
	}
	return p.env.Send(c)
}

func counted(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

func total(targets []target) (n int) {
	for _, t := range targets {
		for _, c := range t.count {
			n += c
		}
	}
	return n
}

// foreign tells whether jobs of others are among them.
func (p *Page) foreign(targets []target) bool {
	return p.env.User != "" && slices.ContainsFunc(targets, func(t target) bool { return t.owner != p.env.User })
}

// describe says exactly what is meant: ids, owners, states.
func (p *Page) describe(targets []target) []string {
	owners, states := map[string]int{}, map[string]int{}
	ids := make([]string, len(targets))
	for i, t := range targets {
		ids[i] = t.id
		for s, n := range t.count {
			owners[t.owner] += n
			states[s] += n
		}
	}
	return []string{
		"jobs:   " + ui.Safe(strings.Join(ids, " ")),
		"of:     " + ui.Safe(tally(owners)),
		"states: " + ui.Safe(tally(states)),
	}
}

func tally(m map[string]int) string {
	keys := slices.Collect(maps.Keys(m))
	sort.Slice(keys, func(i, j int) bool { return m[keys[i]] > m[keys[j]] || m[keys[i]] == m[keys[j]] && keys[i] < keys[j] })
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s %d", k, m[k])
	}
	return strings.Join(keys, ", ")
}

// done is the outcome of an operation.
type done struct {
	verb   verb
	jobs   []string
	result *status.OperationResult
	err    error
}

func (p *Page) operate(v verb, targets []target) tea.Cmd {
	ids := make([]string, len(targets))
	for i, t := range targets {
		ids[i] = t.id
	}
	return p.send(v, status.Operation{Verb: v.op, Jobs: ids})
}

func (p *Page) send(v verb, op status.Operation) tea.Cmd {
	p.busy = true
	env := p.env
	return func() tea.Msg {
		ctx, cancel := env.Timeout()
		defer cancel()
		result, err := env.Cluster.Operate(ctx, op)
		return done{v, op.Jobs, result, err}
	}
}

// finished tells how an operation went, job by job.
func (p *Page) finished(d done) tea.Cmd {
	p.busy = false
	if d.err != nil {
		return p.env.Complain(fmt.Errorf("%s: %w", d.verb.name, d.err))
	}
	var good []string
	var lines []string
	failed := 0
	for _, item := range d.result.Items {
		if item.Error != "" {
			failed++
			lines = append(lines, fmt.Sprintf("%-16s %s", ui.Safe(item.Job), ui.Safe(item.Error)))
			continue
		}
		good = append(good, item.Job)
		lines = append(lines, fmt.Sprintf("%-16s %s", ui.Safe(item.Job), d.verb.past))
	}
	p.remember(d.verb, good)
	if failed == 0 {
		clear(p.marks)
	}
	text := fmt.Sprintf("%s %s.", counted(len(good)), d.verb.past)
	if p.undo != nil && len(good) > 0 && (d.verb.op == status.OpHold || d.verb.op == status.OpRelease) {
		text += " U takes it back."
	}
	switch {
	case len(lines) == 1 && failed == 1:
		return p.env.Complain(fmt.Errorf("%s", strings.Join(strings.Fields(lines[0]), " ")))
	case len(lines) > 1:
		title := fmt.Sprintf("%s %s, %d refused", counted(len(good)), d.verb.past, failed)
		return tea.Batch(p.env.Say(text), p.env.Send(ui.Panel{Title: title, Lines: lines}))
	}
	return p.env.Say(text)
}

// remember keeps what takes the operation back, where that is possible.
func (p *Page) remember(v verb, ids []string) {
	p.undo = nil
	switch {
	case len(ids) == 0:
	case v.op == status.OpHold:
		p.undo = &undo{verbs[ui.Release], ids}
	case v.op == status.OpRelease:
		p.undo = &undo{verbs[ui.Hold], ids}
	}
}

func (p *Page) undone() tea.Cmd {
	if p.refused() {
		return nil
	}
	if p.undo == nil {
		return p.env.Say("There is nothing to undo: only hold and release can be.")
	}
	u := p.undo
	p.undo = nil
	return p.send(u.verb, status.Operation{Verb: u.verb.op, Jobs: u.jobs})
}

// askUpdate has changes typed as scontrol update takes them.
func (p *Page) askUpdate() tea.Cmd {
	if p.refused() {
		return nil
	}
	targets := p.targets()
	if len(targets) == 0 {
		return p.env.Say("There is no job to change.")
	}
	v := verb{status.OpUpdate, "change", "changed", "scontrol update"}
	return p.env.Send(ui.Ask{Label: fmt.Sprintf("change %s: ", counted(total(targets))), History: "update", Done: func(text string) tea.Cmd {
		set := map[string]string{}
		for _, word := range strings.Fields(text) {
			key, value, ok := strings.Cut(word, "=")
			if !ok || key == "" {
				return p.env.Complain(fmt.Errorf("%q: write KEY=VALUE as for scontrol update, such as TimeLimit=2:00:00", format.Escape(word)))
			}
			set[key] = value
		}
		if len(set) == 0 {
			return nil
		}
		ids := make([]string, len(targets))
		for i, t := range targets {
			ids[i] = t.id
		}
		c := ui.Confirm{Title: "Change " + counted(total(targets)) + "?", Lines: append(p.describe(targets), "to:     "+ui.Safe(text)),
			Do: func() tea.Cmd {
				return p.send(v, status.Operation{Verb: v.op, Entity: status.EntityJob, Jobs: ids, Set: set})
			}}
		if n := total(targets); n > manyJobs || p.foreign(targets) {
			c.Word = strconv.Itoa(n)
		}
		return p.env.Send(c)
	}})
}

// ringFor has the bell rung when the marked jobs are over.
func (p *Page) ringFor() tea.Cmd {
	n := 0
	for key := range p.marks {
		p.bells[key] = true
		n++
	}
	if n == 0 {
		key := p.rows.key(p.list.Cursor)
		if key == 0 {
			return nil
		}
		if p.bells[key] {
			delete(p.bells, key)
			return p.env.Say("No bell for it any more.")
		}
		p.bells[key] = true
		n = 1
	}
	if n == 1 {
		return p.env.Say("The bell rings when it is over.")
	}
	return p.env.Say(fmt.Sprintf("The bell rings as each of the %d marked is over.", n))
}

func (p *Page) copyID() tea.Cmd {
	var ids []string
	for _, t := range p.targets() {
		ids = append(ids, t.id)
	}
	if len(ids) == 0 {
		return nil
	}
	return p.env.Send(ui.Clip{Text: strings.Join(ids, " "), What: strings.Join(ids, " ")})
}

// showLine shows what the commands are called that do what the page does.
func (p *Page) showLine() tea.Cmd {
	lines := []string{p.Line()}
	if targets := p.targets(); len(targets) > 0 {
		ids := make([]string, len(targets))
		for i, t := range targets {
			ids[i] = t.id
		}
		list := strings.Join(ids, " ")
		lines = append(lines, "", "scontrol show job "+ids[0], "")
		for _, a := range []ui.Action{ui.Cancel, ui.Hold, ui.Release, ui.Requeue, ui.Suspend, ui.Resume} {
			sep := list
			if a != ui.Cancel {
				sep = strings.ReplaceAll(list, " ", ",")
			}
			lines = append(lines, verbs[a].command+" "+sep)
		}
	}
	for i := range lines {
		lines[i] = ui.Safe(lines[i])
	}
	return tea.Batch(p.env.Send(ui.Panel{Title: "The commands that do the same", Lines: lines}), p.env.Send(ui.Clip{Text: p.Line(), What: "the first of these"}))
}

// shell opens a shell in the job's first node.
func (p *Page) shell() tea.Cmd {
	if p.refused() {
		return nil
	}
	j, ok := p.rows.first(p.list.Cursor)
	switch {
	case !ok:
		return nil
	case j.State != "RUNNING":
		return p.env.Complain(fmt.Errorf("job %s does not run", format.JobID(&j)))
	}
	return p.env.Send(ui.Exec{Args: []string{"srun", "--overlap", "--jobid=" + strconv.FormatInt(j.ID, 10), "--nodes=1", "--ntasks=1", "--pty", "/bin/bash", "-i"}})
}

// over tells whether a job in this state will not run again.
func over(state string) bool {
	switch state {
	case "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY":
		return true
	}
	return false
}

// ended are the jobs that an event ends.
func (p *Page) ended(e *status.JobEvent) []int64 {
	out := slices.Clone(e.Gone)
	for i := range e.Items {
		j := &e.Items[i]
		if slot, ok := p.rows.store.Slot(j.ID); ok && over(j.State) && !over(p.rows.store.Text(slot, "state")) {
			out = append(out, j.ID)
		}
	}
	return out
}

// missing are the jobs of an old list that the new one has no longer, or that
// are over now.
func (p *Page) missing(old *data.Store) []int64 {
	var out []int64
	for _, s := range old.Slots(nil) {
		id := old.ID(s)
		slot, ok := p.rows.store.Slot(id)
		if !ok || over(p.rows.store.Text(slot, "state")) && !over(old.Text(s, "state")) {
			out = append(out, id)
		}
	}
	return out
}

// forget takes marks off jobs that are over, and rings for them.
func (p *Page) forget(ids []int64) tea.Cmd {
	var rung []string
	for _, id := range ids {
		delete(p.marks, id)
		if p.bells[id] {
			delete(p.bells, id)
			rung = append(rung, strconv.FormatInt(id, 10))
		}
	}
	if len(ids) > 0 {
		rung = append(rung, p.forgetGroups()...)
	}
	if len(rung) == 0 {
		return nil
	}
	return p.env.Send(Rung{Jobs: rung})
}

// forgetGroups does so for groups of which nothing is left.
func (p *Page) forgetGroups() (rung []string) {
	left := map[int64]bool{}
	for key := range p.marks {
		left[key] = left[key] || key > 0
	}
	for key := range p.bells {
		left[key] = left[key] || key > 0
	}
	if len(left) == 0 {
		return nil
	}
	for _, s := range p.rows.store.Slots(nil) {
		if id, _ := p.rows.groupOf(s); id != 0 && !over(p.rows.store.Text(s, "state")) {
			left[-id] = true
		}
	}
	for key, ok := range left {
		if ok {
			continue
		}
		delete(p.marks, key)
		if p.bells[key] {
			delete(p.bells, key)
			rung = append(rung, strconv.FormatInt(-key, 10))
		}
	}
	return rung
}

// Rung tells that jobs are over for which the bell was to ring.
type Rung struct{ Jobs []string }
