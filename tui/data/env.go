package data

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/tui/ui"
)

// Env is what every page needs. The program makes it once; pages do not change
// it.
type Env struct {
	*ui.Appearance
	Context context.Context //nolint:containedctx // ends with the program
	Cluster Cluster
	Now     func() time.Time
	// Format are the settings of squeue (time zone, units); pages set Now.
	Format   format.Settings
	User     string // the caller's, empty if not known
	ReadOnly bool
	// Narrow tells that the command line asks for some jobs only.
	Restricted bool
	// OpenFile opens a file of this machine.
	OpenFile func(path string) (File, error)

	posted []tea.Msg // for the program's one goroutine
}

// Send posts a message to the program, which takes it in before anything else:
// a prompt that a key has asked for gets the very next key, however fast it is
// typed. It returns no command; pages call it as the last thing they do.
func (e *Env) Post(msg tea.Msg) tea.Cmd {
	e.posted = append(e.posted, msg)
	return nil
}

// Say posts a notice.
func (e *Env) Notify(text string) tea.Cmd { return e.Post(ui.Notice{Text: text}) }

// Complain posts an error.
func (e *Env) NotifyError(err error) tea.Cmd { return e.Post(ui.Notice{Text: err.Error(), Bad: true}) }

// Next takes the next posted message.
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
	// Size is the file's size now.
	Size() (int64, error)
	// Modified is when it was written to last, before it was opened.
	Modified() time.Time
	// Replaced tells that its path means another file now.
	Replaced() bool
	Close() error
}

// patience bounds one request.
const requestTimeout = 30 * time.Second

// Timeout is a context for one request.
func (e *Env) RequestContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.Context, requestTimeout)
}
