// Package tui is the terminal UI of the queue: squeue --tui. Its model routes
// messages to one page at a time. Each page is a package below this one; ui and
// data hold what the pages share. Messages carry results, commands do the I/O,
// Update decides and View draws.
package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/tui/data"
)

// Run runs the terminal UI until the user quits. p.In and p.Out must be a
// terminal, unless s.Plain is set.
func Run(ctx context.Context, p *stdio.Process, c *jobs.Client, s jobs.Screen) error {
	// The commands collect garbage rarely because they end soon; this program stays.
	debug.SetGCPercent(100)
	m, err := New(ctx, p, c, s)
	if err != nil {
		return err
	}
	if s.Plain || p.Env("ACCESSIBLE") == "1" || p.Env("TERM") == "dumb" {
		return m.runPlain(ctx, p)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watchHangup(p.In, cancel)
	prog := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(p.In), tea.WithOutput(p.Out),
		tea.WithEnvironment(p.Environ()), tea.WithFilter(forceSynchronizedOutput(p)))
	_, err = prog.Run()
	m.saveState()
	if errors.Is(err, tea.ErrInterrupted) || ctx.Err() != nil {
		return nil //nolint:nilerr // the user has quit
	}
	return err
}

// forceSynchronizedOutput returns a filter that makes Bubble Tea send each frame as
// one synchronized update over SSH too, where it does not query the terminal for
// support. Terminals without support ignore the two sequences. BERTH_TUI_SYNC=0
// turns it off.
func forceSynchronizedOutput(p *stdio.Process) func(tea.Model, tea.Msg) tea.Msg {
	asked := p.Env("SSH_TTY") == "" || p.Env("BERTH_TUI_SYNC") == "0"
	return func(_ tea.Model, msg tea.Msg) tea.Msg {
		if _, ok := msg.(tea.EnvMsg); ok && !asked {
			asked = true
			return tea.ModeReportMsg{Mode: ansi.ModeSynchronizedOutput, Value: ansi.ModeReset}
		}
		return msg
	}
}

// file is an open file of this machine; it implements data.File.
type file struct {
	*os.File
	path string
}

// openFile opens a regular file for reading.
func openFile(path string) (data.File, error) {
	// Without O_NONBLOCK opening a named pipe waits for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err == nil && !st.Mode().IsRegular() {
		_ = f.Close()
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return &file{f, path}, nil
}

func (f *file) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f *file) Modified() time.Time {
	st, err := f.Stat()
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

func (f *file) Replaced() bool {
	now, err := os.Stat(f.path)
	if err != nil {
		return false
	}
	was, err := f.Stat()
	return err == nil && !os.SameFile(was, now)
}

// siblingCommand returns a command that runs the program args[0] from the directory
// of this program if it is there, else from PATH.
func siblingCommand(env []string, args []string) *exec.Cmd {
	name := args[0]
	if exe, err := os.Executable(); err == nil {
		if beside := exe[:strings.LastIndexByte(exe, '/')+1] + name; isExecutable(beside) {
			name = beside
		}
	}
	cmd := exec.Command(name, args[1:]...)
	cmd.Env = env
	return cmd
}

func isExecutable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}
