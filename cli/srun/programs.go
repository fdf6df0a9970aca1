package srun

import (
	"errors"
	"path/filepath"
	"syscall"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step/multiprog"
	"github.com/berth-hpc/berth/internal/step/placement"
	"github.com/berth-hpc/berth/translate/option"
)

// readPrograms reads the file of --multi-prog. The coordinator checks what
// depends on the number of tasks of the step.
func (o *Options) readPrograms(name string) ([]multiprog.Program, error) {
	path := name
	if dir, err := o.p.Dir(); err == nil && !filepath.IsAbs(path) {
		path = dir + "/" + path
	}
	data, err := o.p.ReadFile(path)
	switch {
	case errors.Is(err, syscall.EISDIR):
		return nil, slurmerr.Newf(slurmerr.Refused, "Error reading multi_prog config file %s", name)
	case err != nil:
		return nil, slurmerr.Newf(slurmerr.Refused, "Could not open multi_prog config file %s", name)
	}
	list, err := multiprog.Parse(name, string(data))
	if err != nil {
		return nil, slurmerr.New(slurmerr.Refused, err.Error())
	}
	return list, nil
}

// setTasksFromPrograms sets the number of tasks of a step with --multi-prog that
// gives none to the number that its file describes.
func (o *Options) setTasksFromPrograms(p *option.Parsed) error {
	if !p.Step.MultiProg || p.Job.Shape.Tasks > 0 || len(p.Args) == 0 {
		return nil
	}
	list, err := o.readPrograms(p.Args[0])
	if err != nil {
		return err
	}
	p.Job.Shape.Tasks = int32(min(multiprog.LastTask(list), placement.MaxTasks)) + 1
	return nil
}
