package ui

import (
	tea "charm.land/bubbletea/v2"
)

// Page is one view of the program. The event loop calls its methods; they return
// what takes time as a command.
type Page interface {
	// Update handles a message: a Press, a Click, or the result of a command.
	Update(msg tea.Msg) tea.Cmd
	// View draws at most height lines of at most width cells.
	View(width, height int) []string
	// Title returns what the page shows, for the line at the top.
	Title() string
	// Hints returns the most useful actions, for the line at the bottom.
	Hints() []Action
	// Command returns the command line that shows the same as the page.
	Command() string
}

// Press is a key that has an action.
type Press struct {
	Action Action
	Key    tea.KeyPressMsg
}

// Click is a click of the left button, or a turn of the wheel, at a cell of
// the page.
type Click struct {
	X, Y     int
	Wheel    int // lines down; 0: a click
	Expanded bool
}

// Shown informs a page that it is now visible.
type Shown struct{}

// Hidden informs a page that it is no longer visible.
type Hidden struct{}

// OpenPage requests another page. ID names the job or node that it shows; Stream
// selects which output of the job the output page shows.
type OpenPage struct {
	Page   Action
	ID     string
	Stream Stream
}

// Stream is an output stream of a job.
type Stream uint8

// The streams; the zero value is standard output.
const (
	Stdout Stream = iota
	Stderr
)

// Notice is a message for the status line.
type Notice struct {
	Text string
	Bad  bool
}

// NotifyCmd returns a command that shows a notice.
func NotifyCmd(text string) tea.Cmd { return func() tea.Msg { return Notice{Text: text} } }

// Prompt requests a line of text, which is typed at the bottom of the screen.
type Prompt struct {
	Label    string
	Initial  string
	History  string                    // name of the history of such lines; empty: none
	OnChange func(text string)         // called with the text after every change; may be nil
	OnSubmit func(text string) tea.Cmd // called with the line
	OnCancel func()                    // called if the prompt is cancelled; may be nil
}

// Confirm requests a confirmation: the key y, or the typed text Answer if that is
// not empty.
type Confirm struct {
	Title     string
	Lines     []string
	Answer    string
	OnConfirm func() tea.Cmd
}

// Panel shows lines of text over the page.
type Panel struct {
	Title string
	Lines []string
}

// Choose shows a list of choices. With Toggle, its items can be switched on and
// off and moved.
type Choose struct {
	Title  string
	Items  []Choice
	Toggle bool
	// OnSubmit receives the chosen item, or with Toggle all items as they are now.
	OnSubmit func([]Choice) tea.Cmd
}

// Choice is one item of a list.
type Choice struct {
	Name, Text string
	On         bool
}

// SetClipboard puts text onto the terminal's clipboard. What describes it in the
// notice.
type SetClipboard struct{ Text, What string }

// Exec runs a program in the terminal until it exits.
type Exec struct{ Args []string }

// Appearance is the theme and the characters in use. Pages share one value, which
// the program changes.
type Appearance struct {
	*Theme
	Glyphs
}
