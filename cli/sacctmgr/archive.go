package sacctmgr

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/keyvalue"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

// archive moves old records from the database to the archive, or loads archived
// ones into it.
func (o *Options) archive(ctx context.Context, words []string) error {
	if err := o.refuseReadonly(); err != nil {
		return err
	}
	switch {
	case len(words) > 0 && keyvalue.Abbreviates(words[0], "dump", 1):
		return o.archiveDump(ctx, words[1:])
	case len(words) > 0 && keyvalue.Abbreviates(words[0], "load", 1):
		return o.archiveLoad(ctx, words[1:])
	}
	fmt.Fprintln(o.p.Err, "No valid entity in archive command\nInput line must include, \"Dump\", or \"load\"")
	return failed()
}

const lossWarning = `This may result in loss of accounting database records (if Purge* options enabled).
Are you sure you want to continue? (You have 30 seconds to decide)
(N/y): `

// refuseArchiveOption returns the setter of an option that has no meaning here.
func refuseArchiveOption(_ *archiveDump, p keyvalue.Pair) error {
	return slurmerr.Newf(slurmerr.Refused, "%s is not possible here: jobs are archived with their steps, "+
		"into the scheduler's --accounting-archive; events are not archived", p.Text)
}

// archiveDump has the arguments of archive dump.
type archiveDump struct {
	now     time.Time
	request status.ArchiveRequest
}

// archiveDumpWords are in Slurm's order. Steps are archived with their jobs.
var archiveDumpWords = keyvalue.Table[*archiveDump]{
	{Name: "PurgeJobAfter", Least: 10, Set: func(d *archiveDump, p keyvalue.Pair) error {
		before, err := parseAgo(p.Value, d.now)
		d.request.Before = before.Unix()
		return err
	}},
	{Name: "Jobs", Least: 1, Form: keyvalue.Word, Set: keyvalue.Ignored[*archiveDump]},
	{Name: "Steps", Least: 2, Form: keyvalue.Word, Set: keyvalue.Ignored[*archiveDump]},
	{Name: "Events", Least: 1, Form: keyvalue.Word, Set: refuseArchiveOption},
	{Name: "Suspend", Least: 2, Form: keyvalue.Word, Set: refuseArchiveOption},
	{Name: "PurgeEventAfter", Least: 10, Set: refuseArchiveOption},
	{Name: "PurgeStepAfter", Least: 10, Set: refuseArchiveOption},
	{Name: "PurgeSuspendAfter", Least: 10, Set: refuseArchiveOption},
	{Name: "Directory", Least: 2, Set: refuseArchiveOption},
	{Name: "Script", Least: 2, Set: refuseArchiveOption},
}

// archiveDump writes the records of jobs that ended before a time, with their
// steps, to the scheduler's archive directory, and deletes them from the database.
func (o *Options) archiveDump(ctx context.Context, words []string) error {
	d := &archiveDump{now: o.p.Now()}
	for _, p := range keyvalue.ParseAll(words) {
		if known, err := archiveDumpWords.Set(d, p); err != nil || !known {
			return o.explain(cmp.Or(err, refusef(" Unknown condition: %s", p.Text)))
		}
	}
	if !o.yes {
		ok, err := o.confirm(lossWarning)
		if err != nil || !ok {
			return err
		}
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	if err := server.Archive(ctx, &d.request); err != nil {
		return slurmerr.Newf(slurmerr.Refused, " Problem dumping archive: %v", err)
	}
	return nil
}

// parseAgo returns the time that lies a number of months, or "12hours" or
// "3days", before now.
func parseAgo(text string, now time.Time) (time.Time, error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	n, err := strconv.Atoi(digits)
	unit := text[len(digits):]
	switch {
	case err != nil || n <= 0:
	case unit == "" || keyvalue.Abbreviates(unit, "months", 1):
		return now.AddDate(0, -n, 0), nil
	case keyvalue.Abbreviates(unit, "days", 1):
		return now.AddDate(0, 0, -n), nil
	case keyvalue.Abbreviates(unit, "hours", 1):
		return now.Add(-time.Duration(n) * time.Hour), nil
	}
	return now, refusef(" Bad job purge value: %s", text)
}

// archiveLoad loads the records of one archive into the database.
func (o *Options) archiveLoad(ctx context.Context, words []string) error {
	r := &status.ArchiveRequest{}
	for _, p := range keyvalue.ParseAll(words) {
		switch {
		case p.Key == "", keyvalue.Abbreviates(p.Key, "File", 1):
			r.Load = p.Value
		case keyvalue.Abbreviates(p.Key, "Insert", 1):
			return slurmerr.New(slurmerr.Refused,
				"Insert is not possible here: a command cannot run SQL on the database")
		default:
			return o.explain(refusef(" Unknown condition: %s", p.Text))
		}
	}
	if r.Load == "" {
		return o.explain(refusef(
			"sacctmgr: error: Error with request.\n Problem loading archive file: Unspecified error"))
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	if err := server.Archive(ctx, r); err != nil {
		fmt.Fprintf(o.p.Err, " Problem loading archive file: %v\n"+
			" Note: For archive load, the file must be in the scheduler's --accounting-archive.\n", err)
		return failed()
	}
	return nil
}
