package squeue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/sibling"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/option"
)

// program is the file name of the terminal UI. It is a separate program because the
// packages that it links need milliseconds to initialize.
const program = "berth-tui"

// WithScreen sets the function that shows the terminal UI; nil: the separate program.
func (o *Options) WithScreen(show func(ctx context.Context, s jobs.Screen) error) *Options {
	o.screen = show
	return o
}

// AsView makes o the command sview, which shows the terminal UI without --tui.
func (o *Options) AsView() *Options {
	o.view = true
	return o
}

// hasTUI reports whether --tui is among the arguments.
func hasTUI(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--tui")
}

// terminal reports whether both output and input are a terminal. Otherwise the list is
// printed.
func (o *Options) terminal() bool {
	_, _, typed := o.p.WindowSize()
	return typed && o.p.Width() > 0
}

// open shows the terminal UI.
func (o *Options) open(ctx context.Context, v *option.Values, rest, args []string) error {
	for _, name := range []string{"steps", "iterate", "json", "yaml"} {
		if v.Has(name) {
			return slurmerr.Newf(slurmerr.Refused, "--%s and --tui are mutually exclusive", name)
		}
	}
	if err := o.complete(v, &rest); err != nil {
		return err
	}
	if len(rest) > 0 {
		return slurmerr.New(slurmerr.Refused, "Unrecognized option: "+printable.Escape(rest[0]))
	}
	if o.screen == nil {
		return o.execProgram(args)
	}
	queue, err := o.connect()
	if err != nil {
		return err
	}
	o.filter.me(queue.User(), o.p)
	if err := o.checkNodes(ctx, queue); err != nil {
		return err
	}
	s := jobs.Screen{
		Filter: o.filter.Filter, Settings: o.settings, Flat: o.array, Order: v.Get("sort"),
		CommandLine: commandLine(args),
		View:        v.Get("view"), Theme: v.Get("theme"), ReadOnly: v.Has("read-only"), Plain: v.Has("plain"),
		ASCII: v.Has("ascii"), NoMouse: v.Has("no-mouse"),
	}
	s.Filter.Fields = nil
	if v.Has("format") || v.Has("Format") {
		s.Layout = o.layout
	}
	return o.screen(ctx, s)
}

// execProgram replaces this process by the program of the terminal UI.
func (o *Options) execProgram(args []string) error {
	path, err := sibling.Path(program)
	if err != nil {
		return err
	}
	err = syscall.Exec(path, append([]string{program}, args...), o.p.Environ())
	if errors.Is(err, fs.ErrNotExist) {
		return slurmerr.Newf(slurmerr.Refused, "%s does not exist", path).
			Hint("the terminal UI is a separate program; `make build` builds it next to squeue")
	}
	return fmt.Errorf("%s: %w", path, err)
}

// ours are the options of the terminal UI.
var ours = []string{"--tui", "--read-only", "--plain", "--ascii", "--no-mouse"}

// commandLine returns the arguments that squeue has too, quoted for a shell.
func commandLine(args []string) string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case slices.Contains(ours, a) || strings.HasPrefix(a, "--theme=") || strings.HasPrefix(a, "--view="):
		case a == "--theme" || a == "--view":
			i++
		default:
			out = append(out, quoted(a))
		}
	}
	return strings.Join(out, " ")
}

// quoted returns a word quoted for a shell.
func quoted(s string) string {
	plain := func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return letter || r >= '0' && r <= '9' || strings.ContainsRune("-_=,.:/+@%^", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
