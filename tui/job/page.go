// Package job is the page of one job: why it is pending, its properties, its steps
// and what they use. It follows the job by a watch of its own.
package job

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/ui"
	"github.com/berth-hpc/berth/tui/why"
)

// Page shows one job.
type Page struct {
	env      *data.Env
	id       string
	store    *data.Store
	feed     data.Feed[*status.JobEvent]
	job      *status.Job
	record   *status.Record // from accounting, if the job is not in the queue
	facts    *why.Facts
	factsKey string // the properties of the job for which facts were requested
	steps    []status.Step
	err      error
	loaded   bool

	samples   []sample
	measuring bool

	pods *status.PodList // nil: not known

	scroll ui.Viewport
	fields []string
}

// New returns the page of the job with this id. It sends no request before it is
// shown.
func New(env *data.Env, id string) *Page {
	p := &Page{env: env, id: id, feed: data.JobFeed(env, jobs.Filter{IDs: []string{id}, States: jobs.AllStates})}
	for _, f := range status.Fields {
		p.fields = append(p.fields, f.Name)
	}
	return p
}

// recordFound carries the accounting record of the job.
type recordFound struct {
	page *Page
	job  *status.Record
	err  error
}

// factsGathered carries the facts of a pending job, or the steps of another one.
type factsGathered struct {
	page  *Page
	facts *why.Facts
	steps []status.Step
	err   error
}

// Update implements ui.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	if events, next, mine := p.feed.Handle(msg); mine {
		return tea.Batch(p.apply(events), next)
	}
	switch msg := msg.(type) {
	case ui.Shown:
		p.store, p.factsKey = data.NewStore(p.fields), ""
		return p.feed.Start()
	case ui.Hidden:
		p.feed.Stop()
	case recordFound:
		if msg.page == p {
			p.record, p.err, p.loaded = msg.job, msg.err, true
		}
	case factsGathered:
		if msg.page == p {
			p.facts, p.steps, p.err = msg.facts, msg.steps, msg.err
		}
	case measured:
		if msg.page == p {
			return p.addSample(msg)
		}
	case remeasure:
		if msg.page == p {
			return p.measure()
		}
	case podsLoaded:
		if msg.page == p {
			return p.setPods(msg)
		}
	case podsPoll:
		if msg.page == p {
			return p.requestPods()
		}
	case ui.Click:
		p.scroll.ScrollBy(msg.Wheel)
	case ui.Press:
		return p.handleKey(msg)
	}
	return nil
}

// apply applies events of the job, and requests what depends on its state.
func (p *Page) apply(events []*status.JobEvent) tea.Cmd {
	for _, ev := range events {
		p.store.Apply(ev)
	}
	if p.err = p.feed.Err; p.err != nil {
		return nil
	}
	p.job = nil
	if j, ok := p.store.Find(p.id); ok {
		p.job, p.loaded = &j, true
		if key := fmt.Sprint(j.State, j.Reason, j.Start, j.PlannedNodes, j.NodeList, j.Message); key != p.factsKey {
			p.factsKey = key
			return tea.Batch(p.requestFacts(j), p.measure(), p.requestPods())
		}
	} else if p.store.Complete && p.record == nil {
		return p.requestRecord()
	}
	return nil
}

// requestRecord requests the accounting record of the job.
func (p *Page) requestRecord() tea.Cmd {
	env, id := p.env, p.id
	return func() tea.Msg {
		ctx, cancel := env.RequestContext()
		defer cancel()
		list, err := env.Cluster.Records(ctx, &status.RecordQuery{Jobs: []string{id}})
		if err == nil && len(list.Items) == 0 {
			err = fmt.Errorf("job %s does not exist", printable.Escape(id))
		}
		if err != nil {
			return recordFound{p, nil, err}
		}
		return recordFound{p, &list.Items[len(list.Items)-1], nil}
	}
}

// requestFacts requests what explains a pending job, or the steps of another one.
func (p *Page) requestFacts(j status.Job) tea.Cmd {
	env := p.env
	return func() tea.Msg {
		ctx, cancel := env.RequestContext()
		defer cancel()
		if j.State == "PENDING" {
			f, err := Gather(ctx, env, j)
			return factsGathered{page: p, facts: f, err: err}
		}
		steps, err := env.Cluster.Steps(ctx, jobs.StepFilter{Jobs: []string{strconv.FormatInt(j.ID, 10)}})
		out := factsGathered{page: p, err: err}
		if err == nil {
			out.steps = steps.Items
		}
		return out
	}
}

// jobFields are the fields of other jobs that explain a pending one.
var jobFields = []string{
	"id", "user", "state", "partition", "priority", "end", "timeLimit", "nodeList", "arrayJobID", "arrayTaskID",
	"hetJobID", "hetOffset", "start", "name",
}

// pendingFields are the fields of jobs that wait for the same partition.
var pendingFields = []string{
	"id", "user", "priority", "partition", "arrayJobID", "arrayTaskID", "hetJobID", "hetOffset",
}

// activeStates are the states of jobs that have nodes.
var activeStates = []string{"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED"}

// Gather requests from the cluster what explains a pending job.
func Gather(ctx context.Context, env *data.Env, j status.Job) (*why.Facts, error) {
	f := &why.Facts{Job: j, Now: env.Now().Unix(), Location: env.Format.Location}
	parts := strings.Split(j.Partition, ",")
	pending := jobs.Filter{Partitions: parts, States: []string{"PENDING"}, Fields: pendingFields}
	err := data.EachJob(ctx, env.Cluster, pending, func(o *status.Job) {
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
	active := jobs.Filter{States: activeStates, Fields: jobFields}
	err = data.EachJob(ctx, env.Cluster, active, func(o *status.Job) {
		f.Running = append(f.Running, *o)
	})
	if err != nil {
		return f, err
	}
	if nodes, err := env.Cluster.Nodes(ctx); err == nil {
		f.Nodes = nodes.Items
	}
	if ids := dependencyIDs(j.Dependency); len(ids) > 0 {
		list, err := env.Cluster.Jobs(ctx, jobs.Filter{IDs: ids, States: jobs.AllStates, Fields: jobFields})
		if err == nil {
			f.Others = list.Items
		}
	}
	return f, nil
}

// dependencyIDs returns the ids of the jobs that a dependency names, at most 100.
func dependencyIDs(text string) []string {
	var out []string
	for term := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == '?' }) {
		_, id, ok := strings.Cut(term, ":")
		id = strings.Trim(id, " ")
		if end := strings.IndexFunc(id, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			id = id[:end]
		}
		if ok && id != "" && len(out) < 100 {
			out = append(out, id)
		}
	}
	return out
}

// handleKey runs the action of a key.
func (p *Page) handleKey(k ui.Press) tea.Cmd {
	if p.scroll.Press(k.Action) {
		return nil
	}
	switch k.Action {
	case ui.Output, ui.Open:
		return p.env.Post(ui.OpenPage{Page: ui.PageOutput, ID: p.id})
	case ui.Errors:
		return p.env.Post(ui.OpenPage{Page: ui.PageOutput, ID: p.id, Stream: ui.Stderr})
	case ui.Copy:
		return p.env.Post(ui.SetClipboard{Text: p.id, What: p.id})
	case ui.ShowCommand:
		return p.env.Post(ui.SetClipboard{Text: p.Command(), What: p.Command()})
	}
	return nil
}

// Tick reports whether the page depends on the time.
func (p *Page) Tick(time.Time) bool { return p.job != nil && p.job.State == "RUNNING" }

// View implements ui.Page.
func (p *Page) View(width, height int) []string {
	return p.scroll.Window(p.render(width), height)
}

// Title implements ui.Page.
func (p *Page) Title() string {
	title := p.id
	switch {
	case p.job != nil:
		title = fmt.Sprintf("%s %s of %s, %s", format.JobID(p.job), p.job.Name, p.job.User, p.job.State)
	case p.record != nil:
		title = fmt.Sprintf("%s %s of %s, %s", p.id, p.record.Name, p.record.User, p.record.State)
	}
	return printable.Escape(title)
}

// Hints implements ui.Page.
func (p *Page) Hints() []ui.Action {
	return []ui.Action{ui.Back, ui.Output, ui.Errors, ui.PageTimeline, ui.ShowCommand, ui.Copy, ui.Help}
}

// Command implements ui.Page.
func (p *Page) Command() string {
	if p.record != nil && p.job == nil {
		return "sacct -j " + p.id + " --format=ALL"
	}
	return "scontrol show job " + p.id
}

// Nodes returns the job's nodes as a host list: those it has, or else those that are
// planned for it.
func (p *Page) Nodes() string {
	switch {
	case p.job != nil && p.job.NodeList != "":
		return p.job.NodeList
	case p.job != nil:
		return p.job.PlannedNodes
	case p.record != nil:
		return p.record.NodeList
	}
	return ""
}
