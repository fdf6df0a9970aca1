package sreport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/berth-hpc/berth/internal/build"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
)

// interactive reads commands until the end or "quit"; the error is that of
// some command that failed.
func (o *Options) interactive(ctx context.Context) error {
	in := bufio.NewReader(o.p.In)
	var failed error
	for {
		if err := o.p.Print("sreport: "); err != nil {
			return err
		}
		line, err := in.ReadString('\n')
		if words := strings.Fields(line); len(words) > 0 {
			if isQuit(words[0]) {
				return failed
			}
			next := *o // a command's conditions are its own
			if e := next.command(ctx, words); e != nil {
				slurmerr.Print(o.p.Err, "sreport", e)
				failed = &slurmerr.Error{Code: 1}
			}
			o.style, o.unit = next.style, next.unit
		}
		if errors.Is(err, io.EOF) {
			return failed
		}
		if err != nil {
			return err
		}
	}
}

func isQuit(word string) bool { return begins(word, "quit", 4) || begins(word, "exit", 1) }

// command runs a report, or one of the words that set how reports look.
func (o *Options) command(ctx context.Context, words []string) error {
	switch word := words[0]; {
	case begins(word, "help", 2):
		return o.p.Print(option.Sreport.Help())
	case isQuit(word), begins(word, "verbose", 4), begins(word, "quiet", 4):
		return nil
	case begins(word, "version", 4):
		return o.p.Print("slurm " + build.Slurm + "\n")
	case strings.EqualFold(word, "parsable"), strings.EqualFold(word, "parsable2"):
		o.style.Delimiter, o.style.Ending = "|", len(word) == len("parsable")
		return nil
	case begins(word, "time", 1):
		if len(words) < 2 {
			fmt.Fprintf(o.p.Err, "too few arguments for keyword:%s\n", format.Escape(word))
			return &slurmerr.Error{Code: 1}
		}
		o.setUnit(words[1])
		return nil
	}
	return o.report(ctx, words)
}

// columnNames are names of columns that are typed otherwise than they are
// shown, with the letters that are needed.
var columnNames = []struct {
	typed string
	least int
	shown string
}{{"tresname", 5, "TRES Name"}, {"trescount", 5, "TRES Count"}, {"cpucount", 2, "TRES Count"}, {"planneddown", 2, "PLND Down"}, {"reserved", 3, "Planned"}, {"overcommitted", 1, "Over Comm"}}

// shownNames puts the names that are shown for those that were typed.
func shownNames(text string) string {
	items := strings.Split(text, ",")
	for i, item := range items {
		name, width, sized := strings.Cut(item, "%")
		for _, c := range columnNames {
			if begins(name, c.typed, c.least) {
				name = c.shown
			}
		}
		if items[i] = name; sized {
			items[i] += "%" + width
		}
	}
	return strings.Join(items, ",")
}
