package queue

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/ui"
)

// maxSingleKey is the number of jobs up to which a single key confirms an
// operation. For more, the number has to be typed.
const maxSingleKey = 20

// verb is an operation on jobs.
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

// undo is the operation that reverts the last one.
type undo struct {
	verb verb
	jobs []string
}

// runAction runs an action that changes jobs or opens something else.
func (p *Page) runAction(a ui.Action) tea.Cmd {
	if v, ok := verbs[a]; ok {
		return p.confirm(v)
	}
	switch a {
	case ui.Update:
		return p.promptUpdate()
	case ui.Undo:
		return p.undoLast()
	case ui.Bell:
		return p.toggleBell()
	case ui.ShowCommand:
		return p.showCommands()
	case ui.Shell:
		return p.shell()
	case ui.Output:
		return p.openOutput(ui.Stdout)
	case ui.Errors:
		return p.openOutput(ui.Stderr)
	}
	return nil
}

// openOutput requests the page of the current job's output.
func (p *Page) openOutput(stream ui.Stream) tea.Cmd {
	id := p.Current()
	if id == "" {
		return nil
	}
	return p.env.Post(ui.OpenPage{Page: ui.PageOutput, ID: id, Stream: stream})
}

// rejectChange reports whether nothing may be changed now, and tells the user why.
func (p *Page) rejectChange() bool {
	switch {
	case p.env.ReadOnly:
		p.env.NotifyError(errors.New("started with --read-only: nothing is changed"))
	case p.busy:
		p.env.NotifyError(errors.New("the last request has not been answered yet"))
	default:
		return false
	}
	return true
}

// confirm asks the user to confirm an operation on the targets.
func (p *Page) confirm(v verb) tea.Cmd {
	if p.rejectChange() {
		return nil
	}
	targets := p.targets()
	if len(targets) == 0 {
		return p.env.Notify("There is no job to " + v.name + ".")
	}
	c := ui.Confirm{Lines: p.describe(targets), OnConfirm: func() tea.Cmd { return p.operate(v, targets) }}
	n, foreign := countJobs(targets), p.includesOthers(targets)
	c.Title = fmt.Sprintf("%s %s?", strings.ToUpper(v.name[:1])+v.name[1:], jobCount(n))
	if n > maxSingleKey || foreign {
		c.Answer = strconv.Itoa(n)
	}
	return p.env.Post(c)
}

func jobCount(n int) string {
	if n == 1 {
		return "1 job"
	}
	return fmt.Sprintf("%d jobs", n)
}

// countJobs returns the number of jobs and array tasks that targets stand for.
func countJobs(targets []target) (n int) {
	for _, t := range targets {
		for _, c := range t.count {
			n += c
		}
	}
	return n
}

// includesOthers reports whether targets include jobs of other users.
func (p *Page) includesOthers(targets []target) bool {
	return p.env.User != "" && slices.ContainsFunc(targets, func(t target) bool { return t.owner != p.env.User })
}

// describe returns the ids, owners and states of targets in lines of text.
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
		"jobs:   " + printable.Escape(strings.Join(ids, " ")),
		"of:     " + printable.Escape(tally(owners)),
		"states: " + printable.Escape(tally(states)),
	}
}

// tally returns counts as text, the largest first.
func tally(m map[string]int) string {
	keys := slices.Collect(maps.Keys(m))
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b))
	})
	for i, k := range keys {
		keys[i] = fmt.Sprintf("%s %d", k, m[k])
	}
	return strings.Join(keys, ", ")
}

// operationDone is the outcome of an operation.
type operationDone struct {
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
	return p.startOperation(v, status.Operation{Verb: v.op, Jobs: ids})
}

// startOperation returns a command that sends an operation.
func (p *Page) startOperation(v verb, op status.Operation) tea.Cmd {
	p.busy = true
	env := p.env
	return func() tea.Msg {
		ctx, cancel := env.RequestContext()
		defer cancel()
		result, err := env.Cluster.Operate(ctx, op)
		return operationDone{v, op.Jobs, result, err}
	}
}

// reportOperation shows the outcome of an operation for each job.
func (p *Page) reportOperation(d operationDone) tea.Cmd {
	p.busy = false
	if d.err != nil {
		return p.env.NotifyError(fmt.Errorf("%s: %w", d.verb.name, d.err))
	}
	var good []string
	var lines []string
	failed := 0
	for _, item := range d.result.Items {
		if item.Error != "" {
			failed++
			lines = append(lines, fmt.Sprintf("%-16s %s", printable.Escape(item.Job), printable.Escape(item.Error)))
			continue
		}
		good = append(good, item.Job)
		lines = append(lines, fmt.Sprintf("%-16s %s", printable.Escape(item.Job), d.verb.past))
	}
	p.setUndo(d.verb, good)
	if failed == 0 {
		clear(p.marks)
	}
	text := fmt.Sprintf("%s %s.", jobCount(len(good)), d.verb.past)
	if p.undo != nil && len(good) > 0 && (d.verb.op == status.OpHold || d.verb.op == status.OpRelease) {
		text += " U undoes this."
	}
	switch {
	case len(lines) == 1 && failed == 1:
		return p.env.NotifyError(fmt.Errorf("%s", strings.Join(strings.Fields(lines[0]), " ")))
	case len(lines) > 1:
		title := fmt.Sprintf("%s %s, %d refused", jobCount(len(good)), d.verb.past, failed)
		p.env.Notify(text)
		return p.env.Post(ui.Panel{Title: title, Lines: lines})
	}
	return p.env.Notify(text)
}

// setUndo sets the operation that reverts the one on these jobs, if there is one.
func (p *Page) setUndo(v verb, ids []string) {
	p.undo = nil
	switch {
	case len(ids) == 0:
	case v.op == status.OpHold:
		p.undo = &undo{verbs[ui.Release], ids}
	case v.op == status.OpRelease:
		p.undo = &undo{verbs[ui.Hold], ids}
	}
}

// undoLast reverts the last operation.
func (p *Page) undoLast() tea.Cmd {
	if p.rejectChange() {
		return nil
	}
	if p.undo == nil {
		return p.env.Notify("There is nothing to undo: only hold and release can be undone.")
	}
	u := p.undo
	p.undo = nil
	return p.startOperation(u.verb, status.Operation{Verb: u.verb.op, Jobs: u.jobs})
}

// copyID copies the ids of the targets to the clipboard.
func (p *Page) copyID() tea.Cmd {
	var ids []string
	for _, t := range p.targets() {
		ids = append(ids, t.id)
	}
	if len(ids) == 0 {
		return nil
	}
	return p.env.Post(ui.SetClipboard{Text: strings.Join(ids, " "), What: strings.Join(ids, " ")})
}

// showCommands shows the command lines that do the same as the page.
func (p *Page) showCommands() tea.Cmd {
	lines := []string{p.Command()}
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
		lines[i] = printable.Escape(lines[i])
	}
	p.env.Post(ui.Panel{Title: "The commands that do the same", Lines: lines})
	return p.env.Post(ui.SetClipboard{Text: p.Command(), What: "the first of these"})
}

// shell opens a shell on the first node of the current job.
func (p *Page) shell() tea.Cmd {
	if p.rejectChange() {
		return nil
	}
	j, ok := p.rows.job(p.list.Cursor)
	switch {
	case !ok:
		return nil
	case j.State != "RUNNING":
		return p.env.NotifyError(fmt.Errorf("job %s is not running", format.JobID(&j)))
	}
	return p.env.Post(ui.Exec{Args: []string{
		"srun",
		"--overlap",
		"--jobid=" + strconv.FormatInt(j.ID, 10),
		"--nodes=1",
		"--ntasks=1",
		"--pty",
		"/bin/bash",
		"-i",
	}})
}
