// Package history is the page of jobs that have ended: the rows of sacct.
package history

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/listing"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/ui"
)

// periods are the periods that can be chosen, in hours before now.
var periods = []int64{1, 6, 24, 72, 168, 720, 8760}

// maxRecords bounds the records of one answer.
const maxRecords = 20_000

// Page shows records.
type Page struct {
	env      *data.Env
	users    []string
	mine     bool
	period   int
	list     *listing.List[status.Record]
	all      int // records of the last answer
	err      error
	warning  string
	loaded   bool
	requests int
}

// New returns the page of the jobs of these users, or of the caller's if there are
// none.
func New(env *data.Env, users []string) *Page {
	p := &Page{env: env, users: users, mine: len(users) == 0, period: 2}
	kind := listing.Kind[status.Record]{
		History: "history",
		Name:    jobID,
		Row:     p.row,
		State:   stateOf,
		Matches: matches,
		Compare: compare,
		Tie:     func(a, b *status.Record) int { return cmp.Compare(b.ID, a.ID) },
		Open:    func(string) tea.Cmd { return p.openPage(ui.OpenPage{Page: ui.PageJob}) },
		Command: p.Command,
	}
	p.list = listing.New(env, kind, ui.Table{
		Headers: []string{
			"JOBID", "STATE", "EXIT", "USER", "NAME", "END", "ELAPSED", "NODES", "CPUS", "PARTITION", "NODELIST",
		},
		Right: []bool{false, false, true, false, false, false, true, true, true},
		Ranks: []int{0, 1, 2, 4, 3, 5, 6, 8, 9, 10, 7},
	})
	p.list.Order, p.list.Descending = columnEnd, true
	return p
}

// columnEnd is the index of the column END.
const columnEnd = 5

// recordsLoaded carries the answer to a request for records.
type recordsLoaded struct {
	page   *Page
	number int
	list   *status.RecordList
	err    error
}

// requestRecords requests the records of the period.
func (p *Page) requestRecords() tea.Cmd {
	p.requests++
	env, number := p.env, p.requests
	q := &status.RecordQuery{
		Users: p.users, Me: p.mine, Start: env.Now().Unix() - periods[p.period]*3600, NoSteps: true, Limit: maxRecords,
	}
	return func() tea.Msg {
		ctx, cancel := env.RequestContext()
		defer cancel()
		list, err := env.Cluster.Records(ctx, q)
		return recordsLoaded{p, number, list, err}
	}
}

// Update implements ui.Page.
func (p *Page) Update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case ui.Shown:
		return p.requestRecords()
	case recordsLoaded:
		if msg.page != p || msg.number != p.requests {
			return nil
		}
		if p.err = msg.err; msg.err == nil {
			p.all, p.loaded, p.warning = len(msg.list.Items), true, msg.list.Warning
			p.list.Set(msg.list.Items)
		}
	case ui.Click:
		return p.list.Click(msg)
	case ui.Press:
		return p.handleKey(msg)
	}
	return nil
}

// openPage requests the page for the job under the cursor.
func (p *Page) openPage(page ui.OpenPage) tea.Cmd {
	if p.list.Current == "" {
		return nil
	}
	page.ID = p.list.Current
	return p.env.Post(page)
}

// handleKey runs the action of a key.
func (p *Page) handleKey(k ui.Press) tea.Cmd {
	switch k.Action {
	case ui.Output:
		return p.openPage(ui.OpenPage{Page: ui.PageOutput})
	case ui.Errors:
		return p.openPage(ui.OpenPage{Page: ui.PageOutput, Stream: ui.Stderr})
	case ui.ZoomIn:
		p.period = max(0, p.period-1)
	case ui.ZoomOut:
		p.period = min(len(periods)-1, p.period+1)
	case ui.All:
		p.mine = !p.mine && len(p.users) == 0
	default:
		return p.list.Press(k.Action)
	}
	return p.requestRecords()
}

// row returns the texts of a record's row.
func (p *Page) row(r *status.Record) []string {
	set := p.env.Format
	return []string{
		jobID(r),
		stateOf(r),
		fmt.Sprintf("%d:%d", r.ExitCode, r.Signal),
		r.User,
		ui.Truncate(r.Name, 24, p.env.Ellipsis),
		string(format.AppendInstant(nil, r.End, "", &set)),
		string(format.AppendDuration(nil, elapsed(r))),
		strconv.Itoa(int(r.Nodes)),
		strconv.Itoa(int(r.CPUs)),
		r.Partition,
		r.NodeList,
	}
}

// stateOf returns the state without the user who cancelled the job.
func stateOf(r *status.Record) string {
	state, _, _ := strings.Cut(r.State, " ")
	return state
}

// elapsed returns for how many seconds the job ran.
func elapsed(r *status.Record) int64 {
	if r.Start == 0 {
		return 0
	}
	return max(0, r.End-r.Start-r.Suspended)
}

// matches reports whether a record of a job that has ended passes a filter.
func matches(q *query.Query, r *status.Record) bool {
	field := func(name string) (string, bool) {
		switch name {
		case "user":
			return r.User, true
		case "st":
			return stateOf(r), true
		case "part":
			return r.Partition, true
		case "name":
			return r.Name, true
		case "account":
			return r.Account, true
		case "qos":
			return r.QOS, true
		case "node":
			return r.NodeList, true
		case "id":
			return jobID(r), true
		case "cpu":
			return strconv.Itoa(int(r.CPUs)), true
		case "nodes":
			return strconv.Itoa(int(r.Nodes)), true
		case "gpu":
			return r.AllocTRES, true
		case "time":
			return strconv.FormatInt(elapsed(r), 10) + "s", true
		}
		return "", false
	}
	return r.End > 0 && q.Match(field, jobID(r), r.Name, r.User, r.State, r.Partition, r.Account, r.NodeList)
}

// compare compares records by a column.
func compare(column int, a, b *status.Record) int {
	switch column {
	case 1:
		return strings.Compare(a.State, b.State)
	case 2:
		return cmp.Compare(a.ExitCode, b.ExitCode)
	case 3:
		return strings.Compare(a.User, b.User)
	case 4:
		return strings.Compare(a.Name, b.Name)
	case columnEnd:
		return cmp.Compare(a.End, b.End)
	case 6:
		return cmp.Compare(elapsed(a), elapsed(b))
	case 7:
		return cmp.Compare(a.Nodes, b.Nodes)
	case 8:
		return cmp.Compare(a.CPUs, b.CPUs)
	case 9:
		return strings.Compare(a.Partition, b.Partition)
	case 10:
		return strings.Compare(a.NodeList, b.NodeList)
	}
	return cmp.Compare(a.ID, b.ID)
}

// jobID returns the id in the form that users see, such as 12_3.
func jobID(r *status.Record) string {
	return format.JobID(&status.Job{
		ID: r.ID, ArrayJobID: r.ArrayJobID, ArrayTaskID: r.ArrayTaskID, HetJobID: r.HetJobID, HetOffset: r.HetOffset,
	})
}

// View implements ui.Page.
func (p *Page) View(width, height int) []string {
	text, bad := "", false
	switch {
	case p.err != nil && !p.loaded:
		text, bad = p.err.Error(), true
	case !p.loaded:
		text = "Loading the records ..."
	case len(p.list.Shown) == 0:
		text = "No job has ended in " + p.periodText() + "."
	}
	return p.list.View(width, height, text, bad)
}

// periodText returns the period in words.
func (p *Page) periodText() string {
	h := periods[p.period]
	if h < 48 {
		return fmt.Sprintf("the last %d h", h)
	}
	return fmt.Sprintf("the last %d days", h/24)
}

// Title implements ui.Page.
func (p *Page) Title() string {
	who := "everybody's"
	switch {
	case p.mine:
		who = "yours"
	case len(p.users) > 0:
		who = "of " + strings.Join(p.users, ",")
	}
	text := fmt.Sprintf("%d jobs, %s, %s", len(p.list.Shown), who, p.periodText())
	if p.all == maxRecords {
		text += fmt.Sprintf(" [the first %d only]", maxRecords)
	}
	text += p.list.FilterText()
	if p.err != nil {
		text += " [not up to date: " + p.err.Error() + "]"
	}
	if p.warning != "" {
		text += " [" + p.warning + "]"
	}
	return printable.Escape(text)
}

// Hints implements ui.Page.
func (p *Page) Hints() []ui.Action {
	return []ui.Action{ui.Help, ui.Back, ui.Open, ui.Filter, ui.ZoomIn, ui.All, ui.Sort}
}

// Command implements ui.Page.
func (p *Page) Command() string {
	line := fmt.Sprintf("sacct -X -S now-%dhours", periods[p.period])
	switch {
	case p.mine:
	case len(p.users) > 0:
		line += " -u " + strings.Join(p.users, ",")
	default:
		line += " -a"
	}
	return line
}

// Current returns the id of the job under the cursor.
func (p *Page) Current() string { return p.list.Current }
