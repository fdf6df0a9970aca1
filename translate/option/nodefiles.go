package option

import (
	"errors"
	"io/fs"
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

// nodesIn returns the names in one file; the error is in Slurm's words.
func nodesIn(read func(string) ([]byte, error), path string) (list []string, err error) {
	var data []byte
	if err = fs.ErrNotExist; read != nil {
		data, err = read(path)
	}
	if err == nil {
		list, err = hostlist.Expand(strings.Join(strings.Fields(string(data)), ","))
	}
	if err == nil {
		return list, nil
	}
	reason := err.Error()
	if errors.Is(err, fs.ErrNotExist) {
		reason = "No such file or directory"
	}
	return nil, errors.New("slurm_allocate_resources error opening file " + path + ", " + reason)
}
