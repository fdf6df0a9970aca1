package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/tui/help"
	"github.com/berth-hpc/berth/tui/history"
	"github.com/berth-hpc/berth/tui/job"
	"github.com/berth-hpc/berth/tui/nodes"
	"github.com/berth-hpc/berth/tui/output"
	"github.com/berth-hpc/berth/tui/timeline"
	"github.com/berth-hpc/berth/tui/ui"
)

// maxVisits bounds the back stack.
const maxVisits = 50

// newPage returns the page that a request names; the queue has only one page.
func (m *Model) newPage(request ui.OpenPage) ui.Page {
	switch request.Page {
	case ui.PageNodes:
		return nodes.New(m.env, request.ID)
	case ui.PageHistory:
		return history.New(m.env, m.screen.Filter.Users)
	case ui.PageJob:
		return job.New(m.env, request.ID)
	case ui.PageOutput:
		return output.New(m.env, request.ID, request.Stream)
	case ui.PageTimeline:
		return timeline.New(m.env, m.screen.Filter)
	case ui.PageHelp, ui.Help:
		return help.New(m.env, m.keys)
	}
	return m.queue
}

// openPage shows another page and pushes the present one onto the back stack.
func (m *Model) openPage(request ui.OpenPage) tea.Cmd {
	if request.Page == ui.PageQueue {
		if request.ID != "" {
			if err := m.queue.SetFilter("node:" + request.ID); err != nil {
				return m.env.NotifyError(err)
			}
		}
		return m.showQueue()
	}
	if request == m.current.request {
		return nil
	}
	m.backStack = append(m.backStack, m.current)
	m.backStack = m.backStack[max(0, len(m.backStack)-maxVisits):]
	return m.showPage(visit{request, m.newPage(request)})
}

// showPage puts a page onto the screen.
func (m *Model) showPage(v visit) tea.Cmd {
	hidden := m.page.Update(ui.Hidden{})
	m.current, m.page = v, v.view
	return tea.Batch(hidden, m.page.Update(ui.Shown{}))
}

// goBack shows the page on top of the back stack, which must not be empty.
func (m *Model) goBack() tea.Cmd {
	v := m.backStack[len(m.backStack)-1]
	m.backStack = m.backStack[:len(m.backStack)-1]
	return m.showPage(v)
}

// showQueue shows the queue and empties the back stack.
func (m *Model) showQueue() tea.Cmd {
	m.backStack = nil
	if m.page == ui.Page(m.queue) {
		return nil
	}
	return m.showPage(visit{ui.OpenPage{Page: ui.PageQueue}, m.queue})
}

// openByKey opens the page that a key names. Pages of one job or of a job's
// nodes open for the current job.
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

// currentJob returns the id of the job that the page shows or that its cursor
// is on, empty if there is none.
func (m *Model) currentJob() string {
	switch m.current.request.Page {
	case ui.PageJob, ui.PageOutput:
		return m.current.request.ID
	case ui.PageHistory, ui.PageTimeline:
		if p, ok := m.page.(interface{ Current() string }); ok {
			return p.Current()
		}
	}
	return m.queue.Current()
}

// commands are the functions of the commands that can be typed after a colon,
// by name. arg is the text after the name.
var commands = map[string]func(m *Model, arg string) (tea.Cmd, error){
	"queue":    func(m *Model, _ string) (tea.Cmd, error) { return m.showQueue(), nil },
	"nodes":    pageCommand(ui.PageNodes),
	"history":  pageCommand(ui.PageHistory),
	"timeline": pageCommand(ui.PageTimeline),
	"help":     pageCommand(ui.PageHelp),
	"job":      jobCommand(ui.OpenPage{Page: ui.PageJob}),
	"output":   jobCommand(ui.OpenPage{Page: ui.PageOutput}),
	"errors":   jobCommand(ui.OpenPage{Page: ui.PageOutput, Stream: ui.Stderr}),
	"quit":     func(*Model, string) (tea.Cmd, error) { return tea.Quit, nil },
	"filter":   func(m *Model, arg string) (tea.Cmd, error) { return m.showQueue(), m.queue.SetFilter(arg) },
	"save":     func(m *Model, arg string) (tea.Cmd, error) { return m.saveFilter(arg), nil },
	"load":     (*Model).loadFilter,
	"sort":     func(m *Model, arg string) (tea.Cmd, error) { return m.queue.SetOrder(arg) },
	"columns":  func(m *Model, arg string) (tea.Cmd, error) { return m.queue.SetColumns(splitNames(arg)) },
	"format":   func(m *Model, arg string) (tea.Cmd, error) { return m.queue.SetFormat(strings.Trim(arg, `"'`)) },
	"all":      func(m *Model, _ string) (tea.Cmd, error) { return m.queue.SetAll(true), nil },
	"active":   func(m *Model, _ string) (tea.Cmd, error) { return m.queue.SetAll(false), nil },
	"me":       func(m *Model, _ string) (tea.Cmd, error) { return m.filterUser(m.env.User) },
	"user":     (*Model).filterUser,
	"theme":    (*Model).setTheme,
	"mouse":    func(m *Model, _ string) (tea.Cmd, error) { m.mouse = !m.mouse; return nil, nil },
	"command": func(m *Model, _ string) (tea.Cmd, error) {
		return m.env.Post(ui.SetClipboard{Text: m.page.Command(), What: m.page.Command()}), nil
	},
}

// splitNames splits a list at commas and spaces.
func splitNames(arg string) []string {
	return strings.FieldsFunc(arg, func(r rune) bool { return r == ',' || r == ' ' })
}

// pageCommand returns a command that opens a page.
func pageCommand(page ui.Action) func(*Model, string) (tea.Cmd, error) {
	return func(m *Model, arg string) (tea.Cmd, error) {
		return m.openPage(ui.OpenPage{Page: page, ID: arg}), nil
	}
}

// jobCommand returns a command that opens a page of the job whose id is its
// argument, or of the current job.
func jobCommand(request ui.OpenPage) func(*Model, string) (tea.Cmd, error) {
	return func(m *Model, arg string) (tea.Cmd, error) {
		request := request
		if request.ID = arg; arg == "" {
			request.ID = m.currentJob()
		}
		if !isJobID(request.ID) {
			return nil, fmt.Errorf("invalid job id: %s", printable.Escape(arg))
		}
		return m.openPage(request), nil
	}
}

// isJobID reports whether text has the form of a job id, an array task's or a
// component's included.
func isJobID(text string) bool { return text != "" && strings.Trim(text, "0123456789_+") == "" }

func (m *Model) filterUser(name string) (tea.Cmd, error) {
	return m.showQueue(), m.queue.SetFilter("user:" + name)
}

func (m *Model) loadFilter(name string) (tea.Cmd, error) {
	text, ok := m.state.Filters[name]
	if !ok {
		text, ok = m.config.Filters[name]
	}
	if !ok {
		return nil, fmt.Errorf("no filter is saved as %s", printable.Escape(name))
	}
	return m.showQueue(), m.queue.SetFilter(text)
}

// setTheme applies the theme of that name and remembers it.
func (m *Model) setTheme(name string) (tea.Cmd, error) {
	t, err := ui.NewTheme(name, m.config.Themes)
	if err != nil {
		return nil, err
	}
	m.appearance.Theme, m.state.Theme = t, name
	return nil, nil
}

// commandPrompt returns the prompt for a command.
func (m *Model) commandPrompt() ui.Prompt {
	return ui.Prompt{Label: ":", History: "command", OnSubmit: m.runCommand}
}

// runCommand runs a command that was typed.
func (m *Model) runCommand(line string) tea.Cmd {
	name, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
	arg = strings.TrimSpace(arg)
	switch {
	case name == "":
		return nil
	case name == "q":
		name = "quit"
	case isJobID(name):
		name, arg = "job", name
	}
	run, err := findCommand(name)
	if err != nil {
		return m.env.NotifyError(err)
	}
	cmd, err := run(m, arg)
	if err != nil {
		return m.env.NotifyError(err)
	}
	return cmd
}

// findCommand returns the command of that name, or the only one whose name
// starts with it.
func findCommand(name string) (func(*Model, string) (tea.Cmd, error), error) {
	if run, ok := commands[name]; ok {
		return run, nil
	}
	matches := commandsWithPrefix(name)
	switch len(matches) {
	case 0:
		return nil, fmt.Errorf("there is no command :%s; try :help", printable.Escape(name))
	case 1:
		return commands[matches[0]], nil
	}
	return nil, fmt.Errorf(":%s may be %s", printable.Escape(name), strings.Join(matches, ", "))
}

// commandsWithPrefix returns the names of commands that start with prefix, in
// alphabetical order.
func commandsWithPrefix(prefix string) []string {
	var out []string
	for name := range commands {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// completeCommand returns a command line with the name of its command completed
// as far as it is unambiguous.
func completeCommand(line string) string {
	if strings.Contains(line, " ") {
		return line
	}
	matches := commandsWithPrefix(line)
	if len(matches) == 0 {
		return line
	}
	common := matches[0]
	for _, name := range matches[1:] {
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	if len(matches) == 1 {
		common += " "
	}
	return common
}
