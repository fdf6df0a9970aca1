package squeue

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/internal/jobs"
	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/format"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// stepID matches the id of a step: 12.0, 12_3.0, 12+1.0, 12.batch.
var stepID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]+([_+][0-9]+)?\.([0-9]+|batch|extern|interactive)$`)
})

// completeSteps parses -s, whose value may be the next word.
func (o *Options) completeSteps(v *option.Values, rest *[]string) error {
	if o.steps = v.Has("steps"); !o.steps {
		return nil
	}
	if v.Has("jobs") && len(o.filter.IDs) == 0 {
		return slurmerr.New(slurmerr.Refused, "Incompatible options --jobs and --steps")
	}
	o.filter.nothing = slices.ContainsFunc([]string{"partition", "user", "nodelist"}, // the others are for jobs
		func(name string) bool { return v.Has(name) && len(v.List(name)) == 0 })
	operand := len(*rest) > 0
	text, _ := v.ValueOrOperand("steps", rest)
	o.filter.nothing = o.filter.nothing || operand && strings.Trim(text, ",") == ""
	var err error
	o.stepIDs, err = stepIDs(text)
	return err
}

// stepIDs returns the ids of a list.
func stepIDs(text string) (out []string, err error) {
	for _, id := range value.SplitJobs(text) {
		if job, name, _ := strings.Cut(id, "."); stepID().MatchString(job+".0") && name != "" &&
			(name[0] < '0' || name[0] > '9') {
			id = job + ".0" // as Slurm reads a name, also that of the batch step
		}
		if !stepID().MatchString(id) {
			return nil, slurmerr.Newf(slurmerr.Refused, "Invalid job_step id: %s.??", printable.Escape(id))
		}
		out = append(out, id)
	}
	return out, nil
}

// completeStepLayout sets the columns of -s.
func (o *Options) completeStepLayout(v *option.Values) {
	switch {
	case v.Last("Format") != "": // the variables are for jobs
		o.stepLayout, o.badStepColumns = format.ParseNames(format.StepColumns(), v.Get("Format"))
	case v.Last("format") != "":
		o.stepLayout, o.badStepColumns = format.ParseLetters(format.StepColumns(), v.Get("format"))
	default:
		o.stepLayout, _ = format.ParseLetters(format.StepColumns(), format.StepDefault)
	}
}

// reportStepColumns prints the errors about columns of -s that do not exist.
func (o *Options) reportStepColumns() {
	for _, b := range o.badStepColumns {
		fmt.Fprintf(o.p.Err, "squeue: error: Invalid job step format specification: %s\n", b)
	}
}

func listSteps(ctx context.Context, o *Options, queue Lister) error {
	f := &o.filter
	got, err := &status.StepList{}, error(nil)
	if !f.nothing {
		got, err = queue.Steps(ctx, jobs.StepFilter{
			IDs: o.stepIDs, Jobs: f.IDs, Users: f.Users, Partitions: f.Partitions, Nodes: f.Nodes,
		})
	}
	if err != nil {
		return err
	}
	o.warnUnknown(got.UnknownUsers)
	s := o.settings
	if s.Now = got.Time; s.Now == 0 {
		s.Now = o.p.Now().Unix()
	}
	out, err := o.head(
		o.p.Now(), o.stepLayout.AppendHeader, badOrder(o.order, jobLetterOfStep), s.Now, len(got.Items))
	if err != nil {
		return err
	}
	rows := got.Items
	format.SortSteps(rows, o.order, &s)
	for i := range rows {
		out = o.stepLayout.AppendRow(out, &rows[i], &s)
	}
	_, err = o.p.Out.Write(out)
	return err
}

// jobLetterOfStep reports true, as -S with -s accepts any letter and ignores unknown
// ones.
func jobLetterOfStep(byte) bool { return true }
