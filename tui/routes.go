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
const maxVisits = 50

// make makes a page.
func (m *Model) newPage(page ui.Action, id string) ui.Page {
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
func (m *Model) openPage(g ui.OpenPage) tea.Cmd {
	if g.Page == ui.PageQueue {
		if g.ID != "" {
			if err := m.queue.SetFilter("node:" + g.ID); err != nil {
				return m.env.NotifyError(err)
			}
		}
		return m.showQueue()
	}
	if g.Page == m.current.page && g.ID == m.current.id {
		return nil
	}
	m.backStack = append(m.backStack, m.current)
	m.backStack = m.backStack[max(0, len(m.backStack)-maxVisits):]
	return m.showPage(visit{g.Page, g.ID, m.newPage(g.Page, g.ID)})
}

// show puts a page onto the screen.
func (m *Model) showPage(v visit) tea.Cmd {
	gone := m.page.Update(ui.Hidden{})
	m.current, m.page = v, v.view
	return tea.Batch(gone, m.page.Update(ui.Shown{}))
}

func (m *Model) goBack() tea.Cmd {
	v := m.backStack[len(m.backStack)-1]
	m.backStack = m.backStack[:len(m.backStack)-1]
	return m.showPage(v)
}

// home goes to the queue, from where there is nothing to go back to.
func (m *Model) showQueue() tea.Cmd {
	m.backStack = nil
	if m.page == ui.Page(m.queue) {
		return nil
	}
	return m.showPage(visit{page: ui.PageQueue, view: m.queue})
}

// turnTo goes to a page by its key; those about a job take the one that is
// looked at.
func (m *Model) openByKey(page ui.Action) tea.Cmd {
	id := ""
	switch page {
	case ui.PageJob, ui.PageOutput:
		if id = m.currentJob(); id == "" {
			return m.env.Notify("There is no job under the cursor.")
		}
	case ui.PageNodes:
		if p, ok := m.page.(interface{ Nodes() string }); ok {
			id = p.Nodes()
		}
	case ui.Help:
		page = ui.PageHelp
	}
	return m.openPage(ui.OpenPage{Page: page, ID: id})
}

// current is the id of the job that is looked at.
func (m *Model) currentJob() string {
	switch m.current.page {
	case ui.PageJob:
		return m.current.id
	case ui.PageOutput:
		return strings.TrimPrefix(m.current.id, "e")
	case ui.PageHistory, ui.PageTimeline:
		if p, ok := m.page.(interface{ Current() string }); ok {
			return p.Current()
		}
	}
	return m.queue.Current()
}

// names are the commands that can be typed, each with what it does; the
// argument is what comes behind the name.
var commands = map[string]func(m *Model, arg string) (tea.Cmd, error){
	"queue":    func(m *Model, _ string) (tea.Cmd, error) { return m.showQueue(), nil },
	"nodes":    pageCommand(ui.PageNodes),
	"history":  pageCommand(ui.PageHistory),
	"timeline": pageCommand(ui.PageTimeline),
	"help":     pageCommand(ui.PageHelp),
	"job":      jobCommand(ui.PageJob),
	"output":   jobCommand(ui.PageOutput),
	"errors": func(m *Model, arg string) (tea.Cmd, error) {
		if arg == "" {
			arg = m.currentJob()
		}
		return jobCommand(ui.PageOutput)(m, "e"+arg)
	},
	"quit":    func(*Model, string) (tea.Cmd, error) { return tea.Quit, nil },
	"filter":  func(m *Model, arg string) (tea.Cmd, error) { return m.showQueue(), m.queue.SetFilter(arg) },
	"save":    func(m *Model, arg string) (tea.Cmd, error) { return m.saveFilter(orDefault(arg, "default")), nil },
	"load":    (*Model).loadFilter,
	"sort":    func(m *Model, arg string) (tea.Cmd, error) { return m.queue.SetOrder(arg) },
	"columns": func(m *Model, arg string) (tea.Cmd, error) { return m.queue.SetColumns(splitNames(arg)) },
	"format":  func(m *Model, arg string) (tea.Cmd, error) { return m.queue.SetFormat(strings.Trim(arg, `"'`)) },
	"all":     func(m *Model, _ string) (tea.Cmd, error) { return m.queue.SetAll(true), nil },
	"active":  func(m *Model, _ string) (tea.Cmd, error) { return m.queue.SetAll(false), nil },
	"me": func(m *Model, _ string) (tea.Cmd, error) {
		return m.showQueue(), m.queue.SetFilter("user:" + m.env.User)
	},
	"user":  func(m *Model, arg string) (tea.Cmd, error) { return m.showQueue(), m.queue.SetFilter("user:" + arg) },
	"theme": (*Model).setTheme,
	"mouse": func(m *Model, _ string) (tea.Cmd, error) { m.mouse = !m.mouse; return nil, nil },
	"command": func(m *Model, _ string) (tea.Cmd, error) {
		return m.env.Post(ui.SetClipboard{Text: m.page.Command(), What: m.page.Command()}), nil
	},
}

func orDefault(arg, usual string) string {
	if arg == "" {
		return usual
	}
	return arg
}

func splitNames(arg string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == ' ' }), func(s string) bool { return s == "" })
}

func pageCommand(page ui.Action) func(*Model, string) (tea.Cmd, error) {
	return func(m *Model, arg string) (tea.Cmd, error) { return m.openPage(ui.OpenPage{Page: page, ID: arg}), nil }
}

func jobCommand(page ui.Action) func(*Model, string) (tea.Cmd, error) {
	return func(m *Model, arg string) (tea.Cmd, error) {
		if arg == "" {
			arg = m.currentJob()
		}
		if id := strings.TrimPrefix(arg, "e"); id == "" || strings.Trim(id, "0123456789_+") != "" {
			return nil, fmt.Errorf("invalid job id: %s", format.Escape(arg))
		}
		return m.openPage(ui.OpenPage{Page: page, ID: arg}), nil
	}
}

func (m *Model) loadFilter(name string) (tea.Cmd, error) {
	text, ok := m.state.Filters[name]
	if !ok {
		text, ok = m.config.Filters[name]
	}
	if !ok {
		return nil, fmt.Errorf("no filter is saved as %s", format.Escape(name))
	}
	return m.showQueue(), m.queue.SetFilter(text)
}

func (m *Model) setTheme(name string) (tea.Cmd, error) {
	t, err := ui.NewTheme(name, m.config.Themes)
	if err != nil {
		return nil, err
	}
	m.appearance.Theme, m.state.Theme = t, name
	return nil, nil
}

// askCommand has a command typed.
func (m *Model) commandPrompt() ui.Prompt {
	return ui.Prompt{Label: ":", History: "command", Done: m.runCommand}
}

// run runs a typed command.
func (m *Model) runCommand(line string) tea.Cmd {
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
	do, err := findCommand(name)
	if err != nil {
		return m.env.NotifyError(err)
	}
	cmd, err := do(m, arg)
	if err != nil {
		return m.env.NotifyError(err)
	}
	return cmd
}

// lookup finds a command by its name or the beginning of it.
func findCommand(name string) (func(*Model, string) (tea.Cmd, error), error) {
	if do, ok := commands[name]; ok {
		return do, nil
	}
	fit := commandsWithPrefix(name)
	switch len(fit) {
	case 0:
		return nil, fmt.Errorf("there is no command :%s; try :help", format.Escape(name))
	case 1:
		return commands[fit[0]], nil
	}
	return nil, fmt.Errorf(":%s may be %s", format.Escape(name), strings.Join(fit, ", "))
}

// fitting are the commands that begin with text.
func commandsWithPrefix(text string) []string {
	var out []string
	for name := range commands {
		if strings.HasPrefix(name, text) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// completed is a command line with its name completed as far as it is clear.
func completeCommand(line string) string {
	if strings.Contains(line, " ") {
		return line
	}
	fit := commandsWithPrefix(line)
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
