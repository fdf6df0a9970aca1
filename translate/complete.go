package translate

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/option"
)

// complete reads the file that --nodefile names and checks options against each
// other, as sbatch does before it asks the controller.
func complete(in *Input, p *option.Parsed) error {
	if err := runAs(in, p); err != nil {
		return err
	}
	if err := nodeFile(in, p); err != nil {
		return err
	}
	return p.Verify()
}

// runAs looks at --uid and --gid, which are root's. Who the user is, the
// cluster knows; the group is the submitting host's.
func runAs(in *Input, p *option.Parsed) error {
	c := &p.Client
	for _, o := range []struct{ name, value string }{{"uid", c.AsUser}, {"gid", c.AsGroup}} {
		if o.value != "" && in.UID != 0 {
			return slurmerr.Newf(slurmerr.BadValue, "--%s only permitted by root user", o.name)
		}
	}
	if c.AsGroup == "" {
		return nil
	}
	if in.Group != nil {
		if name, gid, ok := in.Group(c.AsGroup); ok {
			c.GID, p.Job.Batch.Group = &gid, &job.Group{Name: name, GID: gid}
			return nil
		}
	}
	return slurmerr.New(slurmerr.BadValue, "Invalid --gid specification")
}

// nodeFile reads --nodefile: names parted by blanks, commas or lines.
func nodeFile(in *Input, p *option.Parsed) error {
	name := p.Client.NodeFile
	if name == "" {
		return nil
	}
	if in.ReadFile == nil {
		return slurmerr.New(slurmerr.BadValue, "Invalid --nodefile node file")
	}
	data, err := in.ReadFile(name)
	if err == nil {
		p.Job.Placement.NodeList, err = hostlist.Expand(strings.Join(strings.Fields(string(data)), ","))
	}
	if err != nil {
		reason := err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			reason = "No such file or directory"
		}
		return slurmerr.Wrap(slurmerr.BadValue, err,
			"slurm_allocate_resources error opening file "+name+", "+reason+"\nInvalid --nodefile node file")
	}
	return nil
}
