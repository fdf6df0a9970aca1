package option

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/translate/hostlist"
)

// ReadNodes reads the files that --nodefile names, and --nodelist and --exclude if
// they have a path in place of names. Names in a file are separated by blanks,
// commas or newlines. read is nil if there is no access to files.
func (p *Parsed) ReadNodes(read func(path string) ([]byte, error)) error {
	if p.Has("nodefile") {
		list, err := nodesIn(read, p.Client.NodeFile)
		if err != nil {
			for _, check := range []func(*Parsed) error{checkCPUBind, dropHint, checkHint} { // earlier ones
				if err := check(p); err != nil {
					return err
				}
			}
			e := slurmerr.Wrap(slurmerr.BadValue, err, "Invalid --nodefile node file")
			if p.Client.NodeFile != "" {
				e.Message = err.Error() + "\n" + e.Message
			}
			return e
		}
		p.Job.Placement.NodeList = list
	}
	for _, option := range []struct {
		name  string
		field *[]string
	}{
		{"nodelist", &p.Job.Placement.NodeList},
		{"exclude", &p.Job.Placement.Exclude},
	} {
		path := p.Given[option.name].Value
		if !strings.Contains(path, "/") {
			continue
		}
		list, err := nodesIn(read, path)
		if err != nil {
			return slurmerr.Wrap(slurmerr.Refused, err, err.Error())
		}
		*option.field = list
	}
	return nil
}

// ReadHostFile reads the file at path, which SLURM_HOSTFILE names, if the job has no
// list of nodes: a node for each task in turn. That implies an arbitrary distribution.
func (p *Parsed) ReadHostFile(read func(path string) ([]byte, error), path string) error {
	pl := &p.Job.Placement
	if path == "" || len(pl.NodeList) > 0 || p.Has("nodelist") || p.Has("nodefile") {
		return nil
	}
	if !strings.Contains(path, "/") {
		path = "./" + path
	}
	list, err := nodesIn(read, path)
	tasks := int(p.Job.Shape.Tasks)
	switch {
	case err == nil && p.Command != Salloc && len(list) < tasks:
		err = errors.New("Too few NodeNames in Slurm Hostfile") //nolint:staticcheck // the text is Slurm's
	case err == nil && p.Command != Salloc && tasks > 0:
		list = list[:tasks]
	}
	if err != nil {
		return slurmerr.Wrap(slurmerr.Refused, err, err.Error()+"\nFailure getting NodeNames from hostfile")
	}
	pl.NodeList, pl.Distribution = list, "arbitrary"
	if p.Command == Srun { // a node for each of its tasks
		return nil
	}
	pl.NodeList = slices.Compact(slices.SortedFunc(slices.Values(list), hostlist.Compare))
	return p.checkAllocationTasks()
}

// checkAllocationTasks returns an error if the number of tasks of salloc differs from the
// number of nodes in its host file.
func (p *Parsed) checkAllocationTasks() error {
	nodes, tasks := int32(len(p.Job.Placement.NodeList)), p.Job.Shape.Tasks
	if tasks == 0 {
		tasks = p.Job.Shape.MinNodes
	}
	if p.Command != Salloc || tasks == 0 || tasks == nodes {
		return nil
	}
	return slurmerr.Newf(slurmerr.Refused, "Asked for %d tasks have %d in the nodelist.  "+
		"Check your nodelist, or set the -n option to be %d", tasks, nodes, nodes)
}

// nodesIn returns the names in one file; the error is in Slurm's words.
func nodesIn(read func(string) ([]byte, error), path string) (list []string, err error) {
	var data []byte
	if err = fs.ErrNotExist; read != nil {
		data, err = read(path)
	}
	if err == nil {
		list, err = hostlist.ExpandLenient(strings.Join(strings.Fields(string(data)), ","))
	}
	switch {
	case err == nil && len(list) == 0:
		return nil, errors.New("Hostlist is empty!") //nolint:staticcheck,revive // the text is Slurm's
	case err == nil:
		return list, nil
	}
	reason := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		reason = "No such file or directory"
	}
	return nil, errors.New("slurm_allocate_resources error opening file " + path + ", " + reason)
}
