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

// copying is one call of sbcast that copies to the nodes of a job.
type copying struct {
	*Options
	id     *value.StepID
	v      *option.Values
	packed bool     // compress what is sent
	nodes  []string // of the step; nil: all
}

// copy sends the file at path, which the user calls name, to be dest. Exit codes
// are those of Slurm 22.05.8: 255 for a file that cannot be read here, and the
// number of the system's error where a node could not write it.
func (c *copying) copy(ctx context.Context, path, name, dest string) error {
	file, err := os.Open(path)
	if err != nil {
		return slurmerr.Wrap(slurmerr.BadValue, err, "Can't open `"+name+"`: "+strerror.Text(err))
	}
	defer file.Close()
	r, err := c.receive(file, name)
	if err != nil {
		return err
	}
	r.Path = dest
	r.Parents = strings.HasSuffix(filepath.Dir(dest), step.LibrariesSuffix)
	conn, err := c.dial(ctx, c.id)
	if err != nil {
		return err
	}
	defer conn.Close()
	var in io.Reader = file
	if r.Size == 0 {
		in = strings.NewReader("") // of /dev/zero, too
	}
	return c.send(conn, in, r)
}

// receive says what the nodes are to make of the bytes.
func (c *copying) receive(file *os.File, name string) (*step.FileSpec, error) {
	st, err := file.Stat()
	switch {
	case err != nil:
		return nil, slurmerr.Wrap(slurmerr.BadValue, err, "Can't stat `"+name+"`: "+strerror.Text(err))
	case st.IsDir():
		return nil, slurmerr.Newf(slurmerr.BadValue, "Can't mmap file `%s`, No such device.", name)
	case st.Size() == 0:
		c.say("error: Warning: file `%s` is empty.", name)
	}
	r := bcast.DescribeEmpty(st)
	if st.Size() > 0 {
		if r, err = bcast.Describe(file); err != nil {
			return nil, slurmerr.Wrap(slurmerr.BadValue, err, "Can't read `"+name+"`: "+strerror.Text(err))
		}
	}
	r.Force, r.Compressed = c.v.Has("force"), c.packed
	if c.v.Has("preserve") {
		r.Modified = st.ModTime().UnixNano()
	}
	return r, nil
}

// send asks for the step and gives it the file.
func (c *copying) send(conn *step.Conn, file io.Reader, r *step.FileSpec) error {
	_, code, err := bcast.Send(conn, &bcast.Destination{Nodes: c.nodes}, file, r, func(line string) { c.say("error: %s", line) })
	var no *step.RefusedError
	switch {
	case errors.As(err, &no):
		return slurmerr.New(slurmerr.Refused, no.Lines[0])
	case err != nil:
		return slurmerr.Wrap(slurmerr.Unreachable, err, "Connection to the job lost: "+err.Error())
	case code != 0:
		return &slurmerr.Error{Code: code}
	}
	return nil
}

// libraries sends the program's shared objects, if --send-libs asks for them,
// into a folder beside the copy.
func (c *copying) libraries(ctx context.Context, path, name, dest string) error {
	if !c.wantLibraries() {
		return nil
	}
	libs, err := sharedlib.Of(ctx, path)
	if err != nil {
		c.say("error: %s", strings.Replace(err.Error(), path, name, 1))
		return nil
	}
	for _, lib := range sharedlib.Without(libs, cmp.Or(c.v.Get("exclude"), sharedlib.System)) {
		err := c.copy(ctx, lib, lib, filepath.Join(dest+step.LibrariesSuffix, filepath.Base(lib)))
		if err != nil {
			return &slurmerr.Error{
				Code: slurmerr.ExitCode(err), Cause: err, Message: joined(err, fmt.Sprintf("Broadcast of '%s' failed", lib)),
			}
		}
	}
	return nil
}

// joined is what err says, and one line more.
func joined(err error, line string) string {
	if text := err.Error(); text != "" {
		return text + "\n" + line
	}
	return line
}

func (c *copying) wantLibraries() bool {
	switch given := c.v.Get("send-libs"); {
	case !c.v.Has("send-libs"), strings.EqualFold(given, "no"):
		return false
	case given == "", strings.EqualFold(given, "yes"):
		return true
	default:
		c.say("error: Ignoring unrecognized --send-libs value '%s'", given)
		return false
	}
}

// tell shows the options, as -v asks for.
func (c *copying) tell(source, dest string) {
	yes := map[bool]int{true: 1}
	const line = "-----------------------------"
	c.say(line)
	c.say("compress   = %d", yes[c.packed])
	c.say("exclude    = %s", cmp.Or(c.v.Get("exclude"), sharedlib.System))
	c.say("force      = %t", c.v.Has("force"))
	c.say("preserve   = %t", c.v.Has("preserve"))
	c.say("send_libs  = %t", c.v.Has("send-libs") && !strings.EqualFold(c.v.Get("send-libs"), "no"))
	c.say("verbose    = %d", c.v.Count("verbose"))
	c.say("source     = %s", source)
	c.say("dest       = %s", dest)
	c.say(line)
	c.say("jobid      = %s", c.id)
}
