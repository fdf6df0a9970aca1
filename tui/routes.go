package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/tui/help"
	"github.com/berth-hpc/berth/tui/history"
	"github.com/berth-hpc/berth/tui/job"
	"github.com/berth-hpc/berth/tui/nodes"
	"github.com/berth-hpc/berth/tui/output"
	"github.com/berth-hpc/berth/tui/timeline"
	"github.com/berth-hpc/berth/tui/ui"
)

// mostVisits bounds how many pages there are to go back to.
const mostVisits = 50

// make makes a page.
func (m *Model) make(page ui.Action, id string) ui.Page {
	switch page {
	case ui.PageNodes:
		return nodes.New(m.env, id)
	case ui.PageHistory:
		return history.New(m.env, m.screen.Filter.Users)
	case ui.PageJob:
		return job.New(m.env, id)
	case ui.PageOutput:
		return output.New(m.env, id)
	case ui.PageTimeline:
		return timeline.New(m.env, m.screen.Filter)
	case ui.PageHelp, ui.Help:
		return help.New(m.env, m.keys)
	}
	return m.queue
}

// open goes to a page and remembers the one before.
func (m *Model) open(g ui.Go) tea.Cmd {
	if g.Page == ui.PageQueue {
		if g.ID != "" {
			if err := m.queue.SetFilter("node:" + g.ID); err != nil {
				return m.env.Complain(err)
			}
		}
		return m.home()
	}
	if g.Page == m.here.page && g.ID == m.here.id {
		return nil
	}
	m.back = append(m.back, m.here)
	m.back = m.back[max(0, len(m.back)-mostVisits):]
	return m.show(visit{g.Page, g.ID, m.make(g.Page, g.ID)})
}

// show puts a page onto the screen.
func (m *Model) show(v visit) tea.Cmd {
	gone := m.page.Update(ui.Hidden{})
	m.here, m.page = v, v.view
	return tea.Batch(gone, m.page.Update(ui.Shown{}))
}

func (m *Model) goBack() tea.Cmd {
	v := m.back[len(m.back)-1]
	m.back = m.back[:len(m.back)-1]
	return m.show(v)
}

// home goes to the queue, from where there is nothing to go back to.
func (m *Model) home() tea.Cmd {
	m.back = nil
	if m.page == ui.Page(m.queue) {
		return nil
	}
	return m.show(visit{page: ui.PageQueue, view: m.queue})
}

// turnTo goes to a page by its key; those about a job take the one that is
// looked at.
func (m *Model) turnTo(page ui.Action) tea.Cmd {
	id := ""
	switch page {
	case ui.PageJob, ui.PageOutput:
		if id = m.current(); id == "" {
			return m.env.Say("There is no job under the cursor.")
		}
	case ui.PageNodes:
		if p, ok := m.page.(interface{ Nodes() string }); ok {
			id = p.Nodes()
		}
	case ui.Help:
		page = ui.PageHelp
	}
	return m.open(ui.Go{Page: page, ID: id})
}

// current is the id of the job that is looked at.
func (m *Model) current() string {
	switch m.here.page {
	case ui.PageJob:
		return m.here.id
	case ui.PageOutput:
		return strings.TrimPrefix(m.here.id, "e")
	case ui.PageHistory, ui.PageTimeline:
		if p, ok := m.page.(interface{ Current() string }); ok {
			return p.Current()
		}
	}
	return m.queue.Current()
}

// names are the commands that can be typed, each with what it does; the
// argument is what comes behind the name.
var names = map[string]func(m *Model, arg string) (tea.Cmd, error){
	"queue":    func(m *Model, _ string) (tea.Cmd, error) { return m.home(), nil },
	"nodes":    to(ui.PageNodes),
	"history":  to(ui.PageHistory),
	"timeline": to(ui.PageTimeline),
	"help":     to(ui.PageHelp),
	"job":      about(ui.PageJob),
	"output":   about(ui.PageOutput),
	"errors": func(m *Model, arg string) (tea.Cmd, error) {
		if arg == "" {
			arg = m.current()
		}
		return about(ui.PageOutput)(m, "e"+arg)
	},
	"quit":    func(*Model, string) (tea.Cmd, error) { return tea.Quit, nil },
	"filter":  func(m *Model, arg string) (tea.Cmd, error) { return m.home(), m.queue.SetFilter(arg) },
	"save":    func(m *Model, arg string) (tea.Cmd, error) { return m.saveFilter(needed(arg, "default")), nil },
	"load":    (*Model).load,
	"sort":    func(m *Model, arg string) (tea.Cmd, error) { return m.queue.SetOrder(arg) },
	"columns": func(m *Model, arg string) (tea.Cmd, error) { return m.queue.SetColumns(list(arg)) },
	"format":  func(m *Model, arg string) (tea.Cmd, error) { return m.queue.SetFormat(strings.Trim(arg, `"'`)) },
	"all":     func(m *Model, _ string) (tea.Cmd, error) { return m.queue.SetAll(true), nil },
	"active":  func(m *Model, _ string) (tea.Cmd, error) { return m.queue.SetAll(false), nil },
	"me":      func(m *Model, _ string) (tea.Cmd, error) { return m.home(), m.queue.SetFilter("user:" + m.env.User) },
	"user":    func(m *Model, arg string) (tea.Cmd, error) { return m.home(), m.queue.SetFilter("user:" + arg) },
	"theme":   (*Model).wear,
	"mouse":   func(m *Model, _ string) (tea.Cmd, error) { m.mouse = !m.mouse; return nil, nil },
	"command": func(m *Model, _ string) (tea.Cmd, error) {
		return m.env.Send(ui.Clip{Text: m.page.Line(), What: m.page.Line()}), nil
	},
}

func needed(arg, usual string) string {
	if arg == "" {
		return usual
	}
	return arg
}

func list(arg string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == ' ' }), func(s string) bool { return s == "" })
}

func to(page ui.Action) func(*Model, string) (tea.Cmd, error) {
	return func(m *Model, arg string) (tea.Cmd, error) { return m.open(ui.Go{Page: page, ID: arg}), nil }
}

func about(page ui.Action) func(*Model, string) (tea.Cmd, error) {
	return func(m *Model, arg string) (tea.Cmd, error) {
		if arg == "" {
			arg = m.current()
		}
		if id := strings.TrimPrefix(arg, "e"); id == "" || strings.Trim(id, "0123456789_+") != "" {
			return nil, fmt.Errorf("invalid job id: %s", format.Escape(arg))
		}
		return m.open(ui.Go{Page: page, ID: arg}), nil
	}
}

func (m *Model) load(name string) (tea.Cmd, error) {
	text, ok := m.saved.Filters[name]
	if !ok {
		text, ok = m.config.Filters[name]
	}
	if !ok {
		return nil, fmt.Errorf("no filter is saved as %s", format.Escape(name))
	}
	return m.home(), m.queue.SetFilter(text)
}

func (m *Model) wear(name string) (tea.Cmd, error) {
	t, err := ui.NewTheme(name, m.config.Themes)
	if err != nil {
		return nil, err
	}
	m.looks.Theme, m.saved.Theme = t, name
	return nil, nil
}

// askCommand has a command typed.
func (m *Model) askCommand() ui.Ask {
	return ui.Ask{Label: ":", History: "command", Done: m.run}
}

// run runs a typed command.
func (m *Model) run(line string) tea.Cmd {
	name, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	arg = strings.TrimSpace(arg)
	switch {
	case name == "":
		return nil
	case name == "q":
		name = "quit"
	case strings.Trim(name, "0123456789_+") == "":
		name, arg = "job", name
	}
	do, err := lookup(name)
	if err != nil {
		return m.env.Complain(err)
	}
	cmd, err := do(m, arg)
	if err != nil {
		return m.env.Complain(err)
	}
	return cmd
}

// lookup finds a command by its name or the beginning of it.
func lookup(name string) (func(*Model, string) (tea.Cmd, error), error) {
	if do, ok := names[name]; ok {
		return do, nil
	}
	fit := fitting(name)
	switch len(fit) {
	case 0:
		return nil, fmt.Errorf("there is no command :%s; try :help", format.Escape(name))
	case 1:
		return names[fit[0]], nil
	}
	return nil, fmt.Errorf(":%s may be %s", format.Escape(name), strings.Join(fit, ", "))
}

// fitting are the commands that begin with text.
func fitting(text string) []string {
	var out []string
	for name := range names {
		if strings.HasPrefix(name, text) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// completed is a command line with its name completed as far as it is clear.
func completed(line string) string {
	if strings.Contains(line, " ") {
		return line
	}
	fit := fitting(line)
	if len(fit) == 0 {
		return line
	}
	common := fit[0]
	for _, name := range fit[1:] {
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	if len(fit) == 1 {
		common += " "
	}
	return common
}
