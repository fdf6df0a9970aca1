package sacct

import (
	"context"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
)

// part is what -B or --env-vars shows of each job.
type part struct {
	head, tail string // around the job's id
	of         func(context.Context, Accounting, string) ([]byte, error)
}

var (
	scriptPart = &part{
		"Batch Script for ",
		"",
		func(ctx context.Context, c Accounting, id string) ([]byte, error) { return c.Script(ctx, id) },
	}
	environmentPart = &part{"Environment used for ", " (must be batch to display)", environment}
)

// completePart reads -B and --env-vars.
func (o *Options) completePart(v *option.Values) error {
	script, env := v.Has("batch-script"), v.Has("env-vars")
	switch {
	case script && env:
		return slurmerr.New(slurmerr.Fatal, "Options --batch-script and --env-vars are mutually exclusive")
	case script && !v.Has("jobs"):
		return slurmerr.New(
			slurmerr.Fatal,
			"When requesting job scripts you must also request specific jobs with the '-j' option.",
		)
	case env && !v.Has("jobs"):
		return slurmerr.New(
			slurmerr.Fatal,
			"When requesting job environment you must also request specific jobs with the '-j' option.",
		)
	case script:
		o.part = scriptPart
	case env:
		o.part = environmentPart
	}
	return nil
}

const dashes = "--------------------------------------------------------------------------------\n"

// showParts prints scripts or environments. They are in the job's object: for a job
// that has left the queue, or belongs to another user, NONE is printed, as in Slurm for
// a job without a stored script.
func (o *Options) showParts(ctx context.Context, c Accounting, items []status.Record) error {
	var b strings.Builder
	for i := range items {
		r := &items[i]
		text, err := o.part.of(ctx, c, scriptID(r))
		if err != nil || len(text) == 0 {
			text = []byte("NONE")
		}
		b.WriteString(o.part.head + format.AcctID(r) + o.part.tail + "\n" + dashes + string(text) + "\n")
	}
	return o.p.Print(b.String())
}

// scriptID returns the id of the job that has the script: for an array the id of the
// array.
func scriptID(r *status.Record) string {
	if r.ArrayJobID != 0 {
		return strconv.FormatInt(r.ArrayJobID, 10)
	}
	return strconv.FormatInt(r.ID, 10)
}

// environment is the job's, one variable in each line.
func environment(ctx context.Context, c Accounting, id string) ([]byte, error) {
	list, err := c.Environment(ctx, id)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return []byte(strings.Join(list, "\n") + "\n"), nil
}
