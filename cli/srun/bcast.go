package srun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
)

// broadcast copies the program to the nodes of the job, if --bcast asks for
// it, and has the tasks run the copies, which stay there.
func (r *run) broadcast(ctx context.Context, dial dial) error {
	if r.parsed.Step.Bcast == nil {
		return nil
	}
	name := r.parsed.Args[0]
	path := r.lookFor(name)
	if path == "" {
		return slurmerr.Newf(slurmerr.Fatal, "Could not find executable %s", name)
	}
	failed := slurmerr.Newf(slurmerr.Fatal, "Failed to broadcast '%s'. Step launch aborted.", path)
	file, err := os.Open(path)
	if err != nil {
		r.o.say("error: Can't open `%s`: %s", path, reason(err))
		return failed
	}
	defer file.Close()
	d, err := step.Describe(file)
	if err != nil {
		r.o.say("error: Can't read `%s`: %s", path, reason(err))
		return failed
	}
	d.Path, d.Pattern, d.Force, d.Compressed = r.copyName(*r.parsed.Step.Bcast), true, true, r.parsed.Step.Compress
	conn, err := dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	id, bad, err := step.SendFile(conn, r.req.JobID, file, d, func(line string) { r.o.say("error: %s", line) })
	var no *step.Impossible
	switch {
	case errors.As(err, &no):
		return slurmerr.New(slurmerr.Refused, no.Line[0])
	case err != nil:
		return r.lost(err)
	case bad:
		return failed
	}
	r.req.Command.Program = strings.ReplaceAll(d.Path, "%s", fmt.Sprint(id))
	return nil
}

// copyName is the pattern of the copies' paths. Where only a folder is known
// they have names that tell jobs, copies and nodes apart (srun(1), --bcast).
func (r *run) copyName(given string) string {
	plain := func(path string) string { return strings.ReplaceAll(path, "%", "%%") }
	if given != "" && !strings.HasSuffix(given, "/") {
		return plain(r.known(given))
	}
	dir := r.dir + "/"
	if given != "" {
		dir = r.known(given)
	}
	return plain(dir) + fmt.Sprintf("slurm_bcast_%d.%%s_%%N", r.req.JobID)
}
