package tui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/tui/data"
	"github.com/berth-hpc/berth/tui/query"
	"github.com/berth-hpc/berth/tui/queue"
	"github.com/berth-hpc/berth/tui/ui"

	"github.com/berth-hpc/berth/internal/jobs"
)

// Model is the model of the program. Only Bubble Tea's event loop may use it.
type Model struct {
	process    *stdio.Process
	env        *data.Env
	appearance *ui.Appearance
	keys       *ui.Keymap
	config     Config
	state      State
	screen     jobs.Screen

	queue     *queue.Page
	page      ui.Page
	current   visit
	backStack []visit

	overlay    ui.Overlay
	prompt     *prompt
	notice     ui.Notice
	noticeKeys int // the notice is shown until this many more keys
	mouse      bool
	ticking    bool

	width, height int
}

// visit is a page that was opened, and the request that opened it.
type visit struct {
	request ui.OpenPage
	view    ui.Page
}

// New returns the model of the program. It sends no request; Init does.
func New(ctx context.Context, p *stdio.Process, c data.Cluster, s jobs.Screen) (*Model, error) {
	m := &Model{process: p, screen: s, appearance: &ui.Appearance{}}
	var wrong []error
	m.config, m.state, wrong = loadConfig(p)
	var err error
	if m.keys, err = ui.NewKeymap(m.config.Keys); err != nil {
		wrong = append(wrong, err)
	}
	if err := m.applyTheme(); err != nil {
		if s.Theme != "" {
			return nil, err
		}
		wrong = append(wrong, err)
	}
	m.appearance.Glyphs = ui.Unicode
	if s.ASCII || m.config.ASCII || !ui.UTF8(p.Env) || p.Env("TERM") == "dumb" || p.Env("TERM") == "linux" {
		m.appearance.Glyphs = ui.ASCII
	}
	m.mouse = !s.NoMouse && (m.config.Mouse == nil || *m.config.Mouse)
	m.env = &data.Env{
		Appearance: m.appearance, Context: ctx, Cluster: c, Now: p.Now, Format: s.Settings, User: c.User(),
		ReadOnly: s.ReadOnly, Restricted: s.CommandLine != "", OpenFile: openFile,
	}
	if err := m.newQueuePage(); err != nil {
		wrong = append(wrong, err)
	}
	m.page, m.current = m.queue, visit{ui.OpenPage{Page: ui.PageQueue}, m.queue}
	if len(wrong) > 0 {
		m.showNotice(ui.Notice{Text: errors.Join(wrong...).Error(), Bad: true})
	}
	return m, nil
}

// applyTheme applies the first theme that is set and valid: that of the command
// line, the saved state, the configuration, or the default for the terminal's
// background. The error is that of the first theme that is set but invalid.
func (m *Model) applyTheme() error {
	var first error
	names := []string{
		m.screen.Theme, m.state.Theme, m.config.Theme, themeForBackground(m.process.Env("COLORFGBG")), "dark",
	}
	for _, name := range names {
		if name == "" {
			continue
		}
		theme, err := ui.NewTheme(name, m.config.Themes)
		if err == nil {
			m.appearance.Theme = theme
			return first
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// themeForBackground returns the theme for the background that some terminals
// report in COLORFGBG, as "foreground;background" in colours of the palette; ""
// if it is dark or unknown. Init also queries the terminal itself.
func themeForBackground(colours string) string {
	switch colours[strings.LastIndexByte(colours, ';')+1:] {
	case "7", "15":
		return "light"
	}
	return ""
}

// newQueuePage makes the page of the queue from the command line, the saved state
// and the configuration. The page can be used even if the error is not nil.
func (m *Model) newQueuePage() error {
	o := queue.Options{
		Filter: m.screen.Filter, Flat: m.screen.Flat, CommandLine: m.screen.CommandLine, State: m.state.Queue,
	}
	if len(o.Columns) == 0 {
		o.Columns = m.config.Columns
	}
	if names := queue.NamesOf(m.screen.Layout); len(names) > 0 {
		o.Columns, o.Widths = names, queue.WidthsOf(m.screen.Layout)
	}
	if m.screen.Order != "" {
		o.Order = m.screen.Order
	}
	filters := maps.Clone(m.config.Filters)
	if filters == nil {
		filters = map[string]string{}
	}
	maps.Copy(filters, m.state.Filters)
	var err error
	m.queue, err = queue.New(m.env, o, filters)
	return err
}

// Init starts the watch of the queue.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.queue.Start()}
	if m.screen.Theme == "" && m.state.Theme == "" && m.config.Theme == "" {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	if m.screen.View != "" {
		cmds = append(cmds, m.runCommand(m.screen.View))
	}
	return tea.Batch(cmds...)
}

// tick redraws the elapsed times on the screen.
type tick struct{}

// Update handles a message, and then the messages that its handlers posted.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmds := []tea.Cmd{m.update(msg)}
	for posted, ok := m.env.NextPosted(); ok; posted, ok = m.env.NextPosted() {
		cmds = append(cmds, m.update(posted))
	}
	return m, tea.Batch(append(cmds, m.scheduleTick())...)
}

// scheduleTick returns a command for the next tick if something on the screen
// depends on the time. Otherwise an idle screen would send bytes every second.
func (m *Model) scheduleTick() tea.Cmd {
	moves := m.queue.Tick(m.env.Now())
	if t, ok := m.page.(interface{ Tick(time.Time) bool }); ok && m.page != ui.Page(m.queue) {
		moves = t.Tick(m.env.Now())
	}
	if !moves || m.ticking || m.overlay != nil {
		return nil
	}
	m.ticking = true
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return tick{} })
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tick:
		m.ticking = false
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.BackgroundColorMsg:
		return m.setBackground(msg)
	case tea.KeyPressMsg:
		return m.handleKey(msg)
	case tea.PasteMsg:
		m.handlePaste(msg.Content)
	case tea.MouseMsg:
		return m.handleMouse(msg)
	case ui.Notice:
		m.showNotice(msg)
	case ui.Prompt:
		m.prompt = newPrompt(msg, m.state.History[msg.History])
	case ui.Confirm:
		m.overlay = ui.NewConfirm(msg)
	case ui.Panel:
		m.overlay = ui.NewPanel(msg)
	case ui.Choose:
		m.overlay = ui.NewChoose(msg)
	case ui.SetClipboard:
		m.showNotice(ui.Notice{Text: "Copied " + msg.What + "."})
		return tea.SetClipboard(msg.Text) // OSC 52
	case ui.Exec:
		cmd := siblingCommand(m.process.Environ(), msg.Args)
		return tea.ExecProcess(cmd, func(err error) tea.Msg { return execFinished{msg.Args[0], err} })
	case execFinished:
		if msg.err != nil {
			m.showNotice(ui.Notice{Text: msg.name + ": " + msg.err.Error(), Bad: true})
		}
	case ui.OpenPage:
		return m.openPage(msg)
	case queue.JobsEnded:
		return m.ringBell(msg)
	default:
		return m.broadcast(msg)
	}
	return nil
}

// execFinished reports that a program that ran in the terminal has exited.
type execFinished struct {
	name string
	err  error
}

// broadcast passes a result to the queue, the visible page and the pages on the
// back stack. Each page ignores the results of other pages.
func (m *Model) broadcast(msg tea.Msg) tea.Cmd {
	cmds := []tea.Cmd{m.queue.Update(msg)}
	for _, v := range append(m.backStack[:len(m.backStack):len(m.backStack)], m.current) {
		if v.view != ui.Page(m.queue) {
			cmds = append(cmds, v.view.Update(msg))
		}
	}
	return tea.Batch(cmds...)
}

// showNotice shows a notice until the next key; an error stays for one key more,
// so that the key that was already on its way does not hide it.
func (m *Model) showNotice(n ui.Notice) {
	n.Text = printable.Escape(strings.ReplaceAll(n.Text, "\n", "; "))
	m.notice, m.noticeKeys = n, 0
	if n.Bad {
		m.noticeKeys = 1
	}
}

// setBackground applies the theme for the background that the terminal reports.
// Init requests it only if the user has chosen no theme.
func (m *Model) setBackground(msg tea.BackgroundColorMsg) tea.Cmd {
	name := "light"
	if msg.IsDark() {
		name = "dark"
	}
	if t, err := ui.NewTheme(name, m.config.Themes); err == nil {
		m.appearance.Theme = t
	}
	return nil
}

// ringBell rings the terminal's bell and names the jobs that have ended.
func (m *Model) ringBell(r queue.JobsEnded) tea.Cmd {
	m.showNotice(ui.Notice{Text: "Over: " + strings.Join(r.Jobs, " ")})
	return tea.Raw("\a")
}

// handleKey passes a key to the prompt or overlay that is open; otherwise it runs
// the key's action, in the program or on the page.
func (m *Model) handleKey(k tea.KeyPressMsg) tea.Cmd {
	a := m.keys.Action(k)
	if m.noticeKeys--; m.noticeKeys < 0 {
		m.notice = ui.Notice{}
	}
	switch {
	case m.prompt != nil:
		return m.handlePromptKey(k)
	case m.overlay != nil:
		cmd, closed := m.overlay.Press(k, a)
		if closed {
			m.overlay = nil
		}
		return cmd
	}
	switch a {
	case ui.Quit:
		if k.String() != ui.Interrupt && len(m.backStack) > 0 {
			return m.goBack()
		}
		return tea.Quit
	case ui.Back:
		return m.handleEscape()
	case ui.Command:
		m.prompt = newPrompt(m.commandPrompt(), m.state.History["command"])
	case ui.Help, ui.PageHelp, ui.PageQueue, ui.PageNodes, ui.PageHistory, ui.PageJob, ui.PageOutput,
		ui.PageTimeline:
		return m.openByKey(a)
	case ui.NextTheme:
		return m.cycleTheme()
	case ui.Mouse:
		m.mouse = !m.mouse
		text := "The mouse selects text in the terminal."
		if m.mouse {
			text = "The mouse works in this program."
		}
		m.showNotice(ui.Notice{Text: text})
	case "":
	default:
		return m.page.Update(ui.Press{Action: a, Key: k})
	}
	return nil
}

// handleEscape clears one thing: the error on the screen, or else the page (if
// there is one to return to), or else the marks, or else the filter.
func (m *Model) handleEscape() tea.Cmd {
	switch {
	case m.notice.Text != "" && m.noticeKeys >= 0 && m.notice.Bad:
		m.notice = ui.Notice{}
	case len(m.backStack) > 0:
		return m.goBack()
	case m.page == ui.Page(m.queue) && m.queue.Unmark():
	case m.page == ui.Page(m.queue):
		_ = m.queue.SetFilter("") // the empty filter is always valid
	}
	return nil
}

// cycleTheme applies the next theme in alphabetical order that is valid.
func (m *Model) cycleTheme() tea.Cmd {
	names := ui.ThemeNames(m.config.Themes)
	for range names {
		at := slices.Index(names, m.appearance.Name)
		name := names[(at+1)%len(names)]
		t, err := ui.NewTheme(name, m.config.Themes)
		if err != nil {
			names = slices.Delete(names, (at+1)%len(names), (at+1)%len(names)+1)
			continue
		}
		m.appearance.Theme, m.state.Theme = t, name
		break
	}
	return m.env.Notify("theme " + m.appearance.Name)
}

// handleMouse passes clicks and the wheel to the page, in the page's coordinates.
func (m *Model) handleMouse(msg tea.MouseMsg) tea.Cmd {
	if m.overlay != nil || m.prompt != nil {
		return nil
	}
	at := msg.Mouse()
	c := ui.Click{X: at.X, Y: at.Y - m.titleHeight()}
	switch msg.(type) {
	case tea.MouseWheelMsg:
		c.Wheel = 3
		if at.Button == tea.MouseWheelUp {
			c.Wheel = -3
		}
	case tea.MouseClickMsg:
		if at.Button != tea.MouseLeft || c.Y < 0 {
			return nil
		}
	default:
		return nil
	}
	return m.page.Update(c)
}

// handlePaste inserts pasted text into the line that is being typed. Elsewhere the
// text is ignored: as keys it would run actions.
func (m *Model) handlePaste(text string) {
	switch {
	case m.prompt != nil:
		m.prompt.line.Insert(text)
		m.prompt.changed()
	case m.overlay != nil:
		if o, ok := m.overlay.(interface{ Insert(string) }); ok {
			o.Insert(text)
		}
	default:
		text := fmt.Sprintf("%d pasted characters were ignored: pasted text is not read as keys. %s starts a filter.",
			len(text), m.keys.Key(ui.Filter))
		m.showNotice(ui.Notice{Text: text, Bad: true})
	}
}

// saveState writes the state file.
func (m *Model) saveState() {
	m.state.Queue = m.queue.State()
	if err := writeState(m.process, &m.state); err != nil {
		fmt.Fprintf(m.process.Err, "squeue: warning: cannot save the columns and filters: %v\n", err)
	}
}

// saveFilter saves the filter in use under a name, "default" if that is empty.
func (m *Model) saveFilter(name string) tea.Cmd {
	if name == "" {
		name = "default"
	}
	text := m.queue.Filter()
	if _, err := query.Parse(text); err != nil || text == "" {
		return m.env.NotifyError(errors.New("there is no filter to save"))
	}
	if m.state.Filters == nil {
		m.state.Filters = map[string]string{}
	}
	m.state.Filters[name] = text
	m.queue.SaveFilter(name, text)
	return m.env.Notify("saved as " + name)
}
