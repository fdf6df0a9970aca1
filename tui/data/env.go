package data

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/tui/ui"
)

// Env holds what every page needs. The program makes it once; pages do not change
// it.
type Env struct {
	*ui.Appearance
	Context context.Context //nolint:containedctx // ends with the program
	Cluster Cluster
	Now     func() time.Time
	// Format holds the settings of squeue (time zone, units); pages set Now.
	Format   format.Settings
	User     string // the caller's, empty if not known
	ReadOnly bool
	// Restricted reports whether the command line selects some of the jobs.
	Restricted bool
	// OpenFile opens a file of this machine.
	OpenFile func(path string) (File, error)

	posted []tea.Msg // used by the event loop only
}

// Post posts a message to the program, which handles it before the next message
// of the terminal: a prompt that a key opens receives the very next key, however
// fast the user types. Post returns nil, so that a page can end with
// "return env.Post(msg)".
func (e *Env) Post(msg tea.Msg) tea.Cmd {
	e.posted = append(e.posted, msg)
	return nil
}

// Notify posts a notice.
func (e *Env) Notify(text string) tea.Cmd { return e.Post(ui.Notice{Text: text}) }

// NotifyError posts an error as a notice.
func (e *Env) NotifyError(err error) tea.Cmd { return e.Post(ui.Notice{Text: err.Error(), Bad: true}) }

// NextPosted removes and returns the oldest posted message.
func (e *Env) NextPosted() (msg tea.Msg, ok bool) {
	if len(e.posted) == 0 {
		return nil, false
	}
	msg, e.posted = e.posted[0], e.posted[1:]
	return msg, true
}

// File is an open file of this machine.
type File interface {
	ReadAt(b []byte, off int64) (int, error)
	// Size returns the file's present size.
	Size() (int64, error)
	// Modified returns the time of the last write.
	Modified() time.Time
	// Replaced reports whether the path now names another file.
	Replaced() bool
	Close() error
}

// requestTimeout bounds one request.
const requestTimeout = 30 * time.Second

// RequestContext returns a context for one request.
func (e *Env) RequestContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.Context, requestTimeout)
}
