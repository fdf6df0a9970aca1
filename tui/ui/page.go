package ui

import (
	tea "charm.land/bubbletea/v2"
)

// Page is one view of the program. Its methods are called by one goroutine;
// what takes time it returns as a command.
type Page interface {
	// Update takes a message in: a Press, a Click, or a result of a command.
	Update(msg tea.Msg) tea.Cmd
	// View draws at most height lines of at most width cells.
	View(width, height int) []string
	// Title is what the page shows, for the line at the top.
	Title() string
	// Hints are actions worth showing in the line at the bottom.
	Hints() []Action
	// Line is the command line that tells the same as the page does.
	Command() string
}

// Press is a key that means something.
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

// Shown tells a page that it is on the screen now.
type Shown struct{}

// Hidden tells a page that it is on the screen no longer.
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

// Say makes a command that shows a notice.
func NotifyCmd(text string) tea.Cmd { return func() tea.Msg { return Notice{Text: text} } }

// Ask has a line of text typed at the bottom of the screen.
type Prompt struct {
	Label    string
	Initial  string
	History  string                    // what the lines are remembered as; empty: they are not
	OnChange func(text string)         // told every change; may be nil
	OnSubmit func(text string) tea.Cmd // told the line
	OnCancel func()                    // told that there is none; may be nil
}

// Confirm has something confirmed: by y, or by typing Word where there is one.
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

// Choose shows a list to choose from, or, with Toggle, to switch on and off
// and to put into another order.
type Choose struct {
	Title  string
	Items  []Choice
	Toggle bool
	// Done is told the items: with Toggle as they are now, else the one chosen.
	OnSubmit func([]Choice) tea.Cmd
}

// Choice is one item of a list.
type Choice struct {
	Name, Text string
	On         bool
}

// Clip puts text onto the terminal's clipboard.
type SetClipboard struct{ Text, What string }

// Exec runs a program in the terminal until it ends.
type Exec struct{ Args []string }

// Looks are the theme and the characters in use. Pages share one value, which
// the program changes.
type Appearance struct {
	*Theme
	Glyphs
}
