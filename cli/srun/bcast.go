package srun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs/sharedlib"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/bcast"
	"github.com/berth-hpc/berth/internal/strerror"
)

// broadcast copies the program to the nodes of the job and makes the tasks execute
// the copies, if --bcast was given. The copies are not removed.
func (r *run) broadcast(ctx context.Context, dial dial) error {
	if r.parsed.Step.Bcast == nil {
		return nil
	}
	name := r.parsed.Args[0]
	path := r.findProgram(name)
	if path == "" {
		return slurmerr.Newf(slurmerr.Fatal, "Could not find executable %s", name)
	}
	failed := slurmerr.Newf(slurmerr.Fatal, "Failed to broadcast '%s'. Step launch aborted.", path)
	dest := r.copyName(*r.parsed.Step.Bcast)
	id, err := r.sendFile(ctx, dial, path, dest, failed)
	if err != nil {
		return err
	}
	dest = strings.ReplaceAll(dest, "%s", fmt.Sprint(id))
	r.req.Command.Program = dest
	if !r.parsed.Step.SendLibs {
		return nil
	}
	libs, err := sharedlib.Dependencies(ctx, path)
	if err != nil {
		r.o.printf("error: %v", err)
		return nil
	}
	for _, lib := range sharedlib.Exclude(libs, cmp.Or(r.parsed.Step.BcastExclude, sharedlib.DefaultExclude)) {
		r.req.Command.Libraries = true
		name := strings.ReplaceAll(filepath.Base(lib), "%", "%%")
		if _, err := r.sendFile(ctx, dial, lib, dest+step.LibrariesSuffix+"/"+name, failed); err != nil {
			return err
		}
	}
	return nil
}

// sendFile copies a file to the nodes of the job and returns the number of the
// hidden step that did it. failed is the error to return if a node did not get it.
func (r *run) sendFile(ctx context.Context, dial dial, path, dest string, failed error) (id int32, err error) {
	file, err := os.Open(path)
	if err != nil {
		r.o.printf("error: Can't open `%s`: %s", path, strerror.Text(err))
		return 0, failed
	}
	defer file.Close()
	spec, err := bcast.Describe(file)
	if err != nil {
		r.o.printf("error: Can't read `%s`: %s", path, strerror.Text(err))
		return 0, failed
	}
	spec.Path, spec.Pattern, spec.Force, spec.Compressed = dest, true, true, r.parsed.Step.Compress
	spec.Parents = strings.HasSuffix(filepath.Dir(dest), step.LibrariesSuffix)
	conn, err := dial(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	report := func(line string) { r.o.printf("error: %s", line) }
	id, code, err := bcast.Send(conn, &bcast.Destination{JobID: r.req.JobID}, file, spec, report)
	var refused *step.RefusedError
	switch {
	case errors.As(err, &refused):
		return 0, slurmerr.New(slurmerr.Refused, refused.Lines[0])
	case err != nil:
		return 0, r.connError(err)
	case code != 0:
		return 0, failed
	}
	return id, nil
}

// copyName returns the pattern of the copies' paths. If only a directory is given,
// the names are unique to the job, the step and the node (srun(1), --bcast).
func (r *run) copyName(given string) string {
	plain := func(path string) string { return strings.ReplaceAll(path, "%", "%%") }
	if given != "" && !strings.HasSuffix(given, "/") {
		return plain(r.absolute(given))
	}
	dir := r.dir + "/"
	if given != "" {
		dir = r.absolute(given)
	}
	return plain(dir) + fmt.Sprintf("slurm_bcast_%d.%%s_%%N", r.req.JobID)
}
