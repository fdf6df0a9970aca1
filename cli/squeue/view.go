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
	"github.com/berth-hpc/berth/internal/sibling"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
)

// program is the file name of the terminal UI's program. It is one of its own
// because what it links takes milliseconds to get ready, which no other command
// should wait for.
const program = "berth-tui"

// WithScreen has the terminal UI run by show; nil: by the program that has it.
func (o *Options) WithScreen(show func(ctx context.Context, s jobs.Screen) error) *Options {
	o.screen = show
	return o
}

// AsView makes it sview: the terminal UI is meant without being asked for.
func (o *Options) AsView() *Options {
	o.view = true
	return o
}

// asksView tells whether --tui is among the arguments.
func asksView(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--tui")
}

// terminal tells whether there is a terminal to show and to type at; without
// one the list is printed, as squeue does.
func (o *Options) terminal() bool {
	_, _, typed := o.p.WindowSize()
	return typed && o.p.Width() > 0
}

// open shows the terminal UI.
func (o *Options) open(ctx context.Context, v *option.Values, rest, args []string) error {
	for _, name := range []string{"steps", "iterate", "json", "yaml"} {
		if v.Has(name) {
			return slurmerr.Newf(slurmerr.Refused, "--%s and --tui exclude each other", name)
		}
	}
	if err := o.complete(v, &rest); err != nil {
		return err
	}
	if len(rest) > 0 {
		return slurmerr.New(slurmerr.Refused, "Unrecognized option: "+format.Escape(rest[0]))
	}
	if o.screen == nil {
		return o.handOver(args)
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
		Filter: o.filter.Filter, Settings: o.settings, Flat: o.array, Order: v.Get("sort"), CommandLine: commandLine(args),
		View: v.Get("view"), Theme: v.Get("theme"), ReadOnly: v.Has("read-only"), Plain: v.Has("plain"), ASCII: v.Has("ascii"), NoMouse: v.Has("no-mouse"),
	}
	s.Filter.Fields = nil
	if v.Has("format") || v.Has("Format") {
		s.Layout = o.layout
	}
	return o.screen(ctx, s)
}

// handOver runs the terminal UI's program in this one's place.
func (o *Options) handOver(args []string) error {
	path, err := sibling.Path(program)
	if err != nil {
		return err
	}
	err = syscall.Exec(path, append([]string{program}, args...), o.p.Environ())
	if errors.Is(err, fs.ErrNotExist) {
		return slurmerr.Newf(slurmerr.Refused, "%s does not exist", path).
			Hint("the terminal UI is a program of its own; `make build` makes it beside squeue")
	}
	return fmt.Errorf("%s: %w", path, err)
}

// ours are the options that squeue alone has not.
var ours = []string{"--tui", "--read-only", "--plain", "--ascii", "--no-mouse"}

// commandLine is the arguments that squeue knows, as a shell would read them.
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

// quoted is a word as a shell reads it back.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=,.:/+@%^", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
