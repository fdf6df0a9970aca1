package sacctmgr

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/status"
)

// archive takes old records out of the database, or brings archived ones back.
func (o *Options) archive(ctx context.Context, words []string) error {
	if o.readonly {
		fmt.Fprintln(o.p.Err, "Can't run this command in readonly mode.")
		return failed()
	}
	switch {
	case len(words) > 0 && oneOf(words[0], "dump", 1):
		return o.archiveDump(ctx, words[1:])
	case len(words) > 0 && oneOf(words[0], "load", 1):
		return o.archiveLoad(ctx, words[1:])
	}
	fmt.Fprintln(o.p.Err, "No valid entity in archive command\nInput line must include, \"Dump\", or \"load\"")
	return failed()
}

const lossWarning = `This may result in loss of accounting database records (if Purge* options enabled).
Are you sure you want to continue? (You have 30 seconds to decide)
(N/y): `

// archiveDump writes jobs with their steps that ended so long ago to the
// scheduler's archive folder, and deletes them.
func (o *Options) archiveDump(ctx context.Context, words []string) error {
	r := &status.ArchiveRequest{}
	for _, x := range pairs(words) {
		switch {
		case oneOf(x.key, "PurgeJobAfter", 10):
			before, err := agoOf(x.value, o.p.Now())
			if err != nil {
				return o.explain(err)
			}
			r.Before = before.Unix()
		case x.key == "" && (oneOf(x.value, "Jobs", 1) || oneOf(x.value, "Steps", 2)):
			// records are archived with their steps, if they are archived at all
		case x.key == "" && (oneOf(x.value, "Events", 1) || oneOf(x.value, "Suspend", 2)), oneOf(x.key, "PurgeEventAfter", 10),
			oneOf(x.key, "PurgeStepAfter", 10), oneOf(x.key, "PurgeSuspendAfter", 10), oneOf(x.key, "Directory", 2), oneOf(x.key, "Script", 2):
			return slurmerr.Newf(slurmerr.Refused, "%s is not possible here: jobs are archived with their steps, into the scheduler's --accounting-archive; events are kept", x.text)
		default:
			return o.explain(refusal(" Unknown condition: " + x.text))
		}
	}
	if !o.yes {
		ok, err := o.askWith(lossWarning)
		if err != nil || !ok {
			return err
		}
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	if err := server.Archive(ctx, r); err != nil {
		return slurmerr.Newf(slurmerr.Refused, " Problem dumping archive: %v", err)
	}
	return nil
}

// agoOf is the instant so many months, or "12hours", "3days", ago.
func agoOf(text string, now time.Time) (time.Time, error) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	n, err := strconv.Atoi(digits)
	unit := text[len(digits):]
	switch {
	case err != nil || n <= 0:
	case unit == "" || oneOf(unit, "months", 1):
		return now.AddDate(0, -n, 0), nil
	case oneOf(unit, "days", 1):
		return now.AddDate(0, 0, -n), nil
	case oneOf(unit, "hours", 1):
		return now.Add(-time.Duration(n) * time.Hour), nil
	}
	return now, refusal(fmt.Sprintf(" Bad job purge value: %s", text))
}

// archiveLoad brings the records of one archive back.
func (o *Options) archiveLoad(ctx context.Context, words []string) error {
	r := &status.ArchiveRequest{}
	for _, x := range pairs(words) {
		switch {
		case x.key == "", oneOf(x.key, "File", 1):
			r.Load = x.value
		case oneOf(x.key, "Insert", 1):
			return slurmerr.New(slurmerr.Refused, "Insert is not possible here: nobody writes SQL into the database from a command")
		default:
			return o.explain(refusal(" Unknown condition: " + x.text))
		}
	}
	if r.Load == "" {
		return o.explain(refusal("sacctmgr: error: Error with request.\n Problem loading archive file: Unspecified error"))
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	if err := server.Archive(ctx, r); err != nil {
		fmt.Fprintf(o.p.Err, " Problem loading archive file: %v\n Note: For archive load, the file must be in the scheduler's --accounting-archive.\n", err)
		return failed()
	}
	return nil
}
