// Package job is the page of one job: why it waits, what it is and has, its
// steps and what they use. It follows the job by a watch of its own.
package job

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
	"github.com/berth-hpc/berth/tui/why"
)

// Page shows one job.
type Page struct {
	env    *data.Env
	id     string
	store  *data.Store
	feed   data.Feed[*status.JobEvent]
	job    *status.Job
	over   *status.Record // from accounting, when the queue has it no longer
	facts  *why.Facts
	asked  string // what the facts were asked for
	steps  []status.Step
	err    error
	loaded bool

	samples   []sample
	measuring bool

	pods *status.PodList // nil: not known

	list   ui.List // over lines: the cursor is the top one
	lines  []string
	across int
	fields []string
}

// New makes the page of the job with this id; nothing is asked for before it
// is shown.
func New(env *data.Env, id string) *Page {
	p := &Page{env: env, id: id, feed: data.JobFeed(env, jobs.Filter{IDs: []string{id}, States: jobs.AllStates})}
	for _, f := range status.Fields {
		p.fields = append(p.fields, f.Name)
	}
	return p
}

type found struct {
	page *Page
	job  *status.Record
	err  error
}

type facts struct {
	page  *Page
	facts *why.Facts
	steps []status.Step
	err   error
}

// Update takes a message in.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	if events, next, mine := p.feed.Take(msg); mine {
		return tea.Batch(p.take(events), next)
	}
	switch msg := msg.(type) {
	case ui.Shown:
		p.store, p.asked = data.NewStore(p.fields), ""
		return p.feed.Start()
	case ui.Hidden:
		p.feed.Stop()
	case found:
		if msg.page == p {
			p.over, p.err, p.loaded = msg.job, msg.err, true
		}
	case facts:
		if msg.page == p {
			p.facts, p.steps, p.err = msg.facts, msg.steps, msg.err
		}
	case measured:
		if msg.page == p {
			return p.taken(msg)
		}
	case measureAgain:
		if msg.page == p {
			return p.measure()
		}
	case podsTold:
		if msg.page == p {
			return p.tellPods(msg)
		}
	case podsAgain:
		if msg.page == p {
			return p.askPods()
		}
	case ui.Click:
		p.list.Scroll(msg.Wheel)
		p.list.Cursor = p.list.Top
	case ui.Press:
		return p.press(msg)
	}
	return nil
}

func (p *Page) take(events []*status.JobEvent) tea.Cmd {
	for _, ev := range events {
		p.store.Apply(ev)
	}
	if p.err = p.feed.Err; p.err != nil {
		return nil
	}
	p.job = nil
	if j, ok := p.store.Meant(p.id); ok {
		p.job, p.loaded = &j, true
		if key := fmt.Sprint(j.State, j.Reason, j.Start, j.PlannedNodes, j.NodeList, j.Message); key != p.asked {
			p.asked = key
			return tea.Batch(p.ask(j), p.measure(), p.askPods())
		}
	} else if p.store.Complete && p.over == nil {
		return p.askOver()
	}
	return nil
}

// askOver looks for the job in accounting.
func (p *Page) askOver() tea.Cmd {
	env, id := p.env, p.id
	return func() tea.Msg {
		ctx, cancel := env.Timeout()
		defer cancel()
		list, err := env.Cluster.Records(ctx, &status.RecordQuery{Jobs: []string{id}})
		if err == nil && len(list.Items) == 0 {
			err = fmt.Errorf("no job %s is known", ui.Safe(id))
		}
		if err != nil {
			return found{p, nil, err}
		}
		return found{p, &list.Items[len(list.Items)-1], nil}
	}
}

// ask gathers what explains and measures the job.
func (p *Page) ask(j status.Job) tea.Cmd {
	env := p.env
	return func() tea.Msg {
		ctx, cancel := env.Timeout()
		defer cancel()
		if j.State == "PENDING" {
			f, err := Gather(ctx, env, j)
			return facts{page: p, facts: f, err: err}
		}
		steps, err := env.Cluster.Steps(ctx, jobs.StepFilter{Jobs: []string{strconv.FormatInt(j.ID, 10)}})
		out := facts{page: p, err: err}
		if err == nil {
			out.steps = steps.Items
		}
		return out
	}
}

// holderFields are what is read of jobs that hold nodes or wait.
var holderFields = []string{"id", "user", "state", "partition", "priority", "end", "timeLimit", "nodeList", "arrayJobID", "arrayTaskID", "hetJobID", "hetOffset", "start", "name"}

// Gather asks the cluster for what explains a pending job.
func Gather(ctx context.Context, env *data.Env, j status.Job) (*why.Facts, error) {
	f := &why.Facts{Job: j, Now: env.Now().Unix(), Location: env.Format.Location}
	parts := strings.Split(j.Partition, ",")
	err := data.Each(ctx, env.Cluster, jobs.Filter{Partitions: parts, States: []string{"PENDING"}, Fields: []string{"id", "user", "priority", "partition", "arrayJobID", "arrayTaskID", "hetJobID", "hetOffset"}}, func(o *status.Job) {
		if o.ID == j.ID || o.Priority <= j.Priority {
			return
		}
		f.Ahead++
		if o.Priority > f.First.Priority {
			f.First = *o
		}
	})
	if err != nil {
		return f, err
	}
	err = data.Each(ctx, env.Cluster, jobs.Filter{States: []string{"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED"}, Fields: holderFields}, func(o *status.Job) {
		f.Running = append(f.Running, *o)
	})
	if err != nil {
		return f, err
	}
	if nodes, err := env.Cluster.Nodes(ctx); err == nil {
		f.Nodes = nodes.Items
	}
	if ids := dependsOn(j.Dependency); len(ids) > 0 {
		if list, err := env.Cluster.Jobs(ctx, jobs.Filter{IDs: ids, States: jobs.AllStates, Fields: holderFields}); err == nil {
			f.Others = list.Items
		}
	}
	return f, nil
}

// dependsOn are the ids of the jobs that a dependency names.
func dependsOn(text string) []string {
	var out []string
	for term := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '?' }) {
		_, id, ok := strings.Cut(term, ":")
		id = strings.TrimRight(strings.TrimLeft(id, " "), " ")
		if end := strings.IndexFunc(id, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			id = id[:end]
		}
		if ok && id != "" && len(out) < 100 {
			out = append(out, id)
		}
	}
	return out
}

func (p *Page) press(k ui.Press) tea.Cmd {
	switch k.Action {
	case ui.Up, ui.Down, ui.PageUp, ui.PageDown, ui.HalfUp, ui.HalfDown, ui.Top, ui.Bottom:
		if k.Action == ui.Bottom {
			p.list.Top = max(0, p.list.Len-p.list.Height)
		} else {
			p.scroll(k.Action)
		}
	case ui.Left:
		p.across = max(0, p.across-8)
	case ui.Right:
		p.across += 8
	case ui.Output, ui.Open:
		return p.env.Send(ui.Go{Page: ui.PageOutput, ID: p.id})
	case ui.Errors:
		return p.env.Send(ui.Go{Page: ui.PageOutput, ID: "e" + p.id})
	case ui.Copy:
		return p.env.Send(ui.Clip{Text: p.id, What: p.id})
	case ui.ShowLine:
		return tea.Batch(p.env.Send(ui.Clip{Text: p.Line(), What: p.Line()}))
	}
	return nil
}

func (p *Page) scroll(a ui.Action) {
	page := max(1, p.list.Height-1)
	n := map[ui.Action]int{ui.Up: -1, ui.Down: 1, ui.PageUp: -page, ui.PageDown: page, ui.HalfUp: -page / 2, ui.HalfDown: page / 2, ui.Top: -p.list.Len}[a]
	p.list.Top = max(0, min(p.list.Top+n, p.list.Len-p.list.Height))
}

// Tick moves the clock on.
func (p *Page) Tick(time.Time) bool { return p.job != nil && p.job.State == "RUNNING" }

// View draws the page.
func (p *Page) View(width, height int) []string {
	p.lines = p.text(width)
	p.list.Resize(len(p.lines), height)
	p.list.Top = max(0, min(p.list.Top, len(p.lines)-height))
	return p.lines[p.list.Top:min(len(p.lines), p.list.Top+height)]
}

// Title names the job.
func (p *Page) Title() string {
	switch {
	case p.job != nil:
		return ui.Safe(fmt.Sprintf("%s %s of %s, %s", format.JobID(p.job), p.job.Name, p.job.User, p.job.State))
	case p.over != nil:
		return ui.Safe(fmt.Sprintf("%s %s of %s, %s", p.id, p.over.Name, p.over.User, p.over.State))
	}
	return ui.Safe(p.id)
}

// Hints are the most useful actions.
func (p *Page) Hints() []ui.Action {
	return []ui.Action{ui.Back, ui.Output, ui.Errors, ui.PageTimeline, ui.ShowLine, ui.Copy, ui.Help}
}

// Line is the command that shows the same.
func (p *Page) Line() string {
	if p.over != nil && p.job == nil {
		return "sacct -j " + p.id + " --format=ALL"
	}
	return "scontrol show job " + p.id
}

// Nodes are the job's nodes, folded: those it has, or is to have.
func (p *Page) Nodes() string {
	switch {
	case p.job != nil && p.job.NodeList != "":
		return p.job.NodeList
	case p.job != nil:
		return p.job.PlannedNodes
	case p.over != nil:
		return p.over.NodeList
	}
	return ""
}
