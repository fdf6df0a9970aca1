package sbcast

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-hpc/berth/internal/jobs/sharedlib"
	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/internal/step/bcast"
	"github.com/berth-hpc/berth/internal/strerror"
	"github.com/berth-hpc/berth/translate/option"
	"github.com/berth-hpc/berth/translate/value"
)

// transfer copies a file to the nodes of a job.
type transfer struct {
	*Options
	id         *value.StepID
	v          *option.Values
	compressed bool     // during the transfer
	nodes      []string // of the step; nil: all of the job
}

// copy sends the file at path, which the user calls name, to dest. Exit codes are those
// of Slurm 22.05.8: 255 for a file that cannot be read here, and the system's error
// number if a node could not write it.
func (c *transfer) copy(ctx context.Context, path, name, dest string) error {
	file, err := os.Open(path)
	if err != nil {
		return slurmerr.Wrap(slurmerr.BadValue, err, "Can't open `"+name+"`: "+strerror.Text(err))
	}
	defer file.Close()
	spec, err := c.describe(file, name)
	if err != nil {
		return err
	}
	spec.Path = dest
	spec.Parents = strings.HasSuffix(filepath.Dir(dest), step.LibrariesSuffix)
	conn, err := c.dial(ctx, c.id)
	if err != nil {
		return err
	}
	defer conn.Close()
	var in io.Reader = file
	if spec.Size == 0 {
		in = strings.NewReader("") // for /dev/zero as well
	}
	return c.send(conn, in, spec)
}

// describe returns the description of the file for the nodes.
func (c *transfer) describe(file *os.File, name string) (*step.FileSpec, error) {
	st, err := file.Stat()
	switch {
	case err != nil:
		return nil, slurmerr.Wrap(slurmerr.BadValue, err, "Can't stat `"+name+"`: "+strerror.Text(err))
	case st.IsDir():
		return nil, slurmerr.Newf(slurmerr.BadValue, "Can't mmap file `%s`, No such device.", name)
	case st.Size() == 0:
		c.printf("error: Warning: file `%s` is empty.", name)
	}
	spec := bcast.DescribeEmpty(st)
	if st.Size() > 0 {
		if spec, err = bcast.Describe(file); err != nil {
			return nil, slurmerr.Wrap(slurmerr.BadValue, err, "Can't read `"+name+"`: "+strerror.Text(err))
		}
	}
	spec.Force, spec.Compressed = c.v.Has("force"), c.compressed
	if c.v.Has("preserve") {
		spec.Modified = st.ModTime().UnixNano()
	}
	return spec, nil
}

// send sends the file.
func (c *transfer) send(conn *step.Conn, file io.Reader, spec *step.FileSpec) error {
	report := func(line string) { c.printf("error: %s", line) }
	_, code, err := bcast.Send(conn, &bcast.Destination{Nodes: c.nodes}, file, spec, report)
	var refused *step.RefusedError
	switch {
	case errors.As(err, &refused):
		return slurmerr.New(slurmerr.Refused, refused.Lines[0])
	case err != nil:
		return slurmerr.Wrap(slurmerr.Unreachable, err, "Connection to the job lost: "+err.Error())
	case code != 0:
		return &slurmerr.Error{Code: code}
	}
	return nil
}

// sendLibraries sends the program's shared objects to a directory beside the copy, if
// --send-libs was given.
func (c *transfer) sendLibraries(ctx context.Context, path, name, dest string) error {
	if !c.wantLibraries() {
		return nil
	}
	libs, err := sharedlib.Dependencies(ctx, path)
	if err != nil {
		c.printf("error: %s", strings.Replace(err.Error(), path, name, 1))
		return nil
	}
	for _, lib := range sharedlib.Exclude(libs, cmp.Or(c.v.Get("exclude"), sharedlib.DefaultExclude)) {
		err := c.copy(ctx, lib, lib, filepath.Join(dest+step.LibrariesSuffix, filepath.Base(lib)))
		if err != nil {
			return &slurmerr.Error{
				Code: slurmerr.ExitCode(
					err,
				),
				Cause:   err,
				Message: withLine(err, fmt.Sprintf("Broadcast of '%s' failed", lib)),
			}
		}
	}
	return nil
}

// withLine returns the message of err with another line.
func withLine(err error, line string) string {
	if text := err.Error(); text != "" {
		return text + "\n" + line
	}
	return line
}

// wantLibraries reports whether --send-libs was given, without a value or with yes.
func (c *transfer) wantLibraries() bool {
	yes, _ := parseSendLibs(c.v.Get("send-libs"))
	return c.v.Has("send-libs") && (yes || c.v.Get("send-libs") == "")
}

// parseSendLibs parses a value of --send-libs; ok is false for one that is ignored.
func parseSendLibs(text string) (yes, ok bool) {
	switch strings.ToLower(text) {
	case "y", "yes":
		return true, true
	case "n", "no":
		return false, true
	}
	return false, false
}

// printOptions prints the options for -v.
func (c *transfer) printOptions(source, dest string) {
	yes := map[bool]int{true: 1}
	const line = "-----------------------------"
	c.printf(line)
	c.printf("compress   = %d", yes[c.compressed])
	c.printf("exclude    = %s", cmp.Or(c.v.Get("exclude"), sharedlib.DefaultExclude))
	c.printf("force      = %t", c.v.Has("force"))
	c.printf("preserve   = %t", c.v.Has("preserve"))
	c.printf("send_libs  = %t", c.wantLibraries())
	c.printf("verbose    = %d", c.v.Count("verbose"))
	c.printf("source     = %s", source)
	c.printf("dest       = %s", dest)
	c.printf(line)
	c.printf("jobid      = %s", c.id)
}
