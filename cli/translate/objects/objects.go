// Package objects prints the PodGroup and the JobSet for a batch script. It needs no cluster:
// user, partition and nodes are examples, with the defaults of a new cluster.
package objects

import (
	"encoding/json"
	"fmt"
	"io"
	"path"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/translate"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/kube"
)

// Run prints the objects of one call of sbatch.
func Run(p *stdio.Process, args []string) error {
	in, err := input(p, args)
	if err != nil {
		return err
	}
	s, err := translate.Sbatch(*in)
	if err != nil {
		return err
	}
	for _, w := range s.Warnings {
		fmt.Fprintln(p.Err, "berth: "+w)
	}
	for i := range 1 + len(s.Components) {
		if err := show(p, s, i); err != nil {
			return err
		}
	}
	return nil
}

// show prints the objects of one component of the job.
func show(p *stdio.Process, s *translate.Submission, component int) error {
	in := exampleInput(p, s, component)
	for _, n := range notes(&in.Job.Spec.Job) {
		fmt.Fprintln(p.Err, "berth: "+n)
	}
	group, set, err := kube.Objects(in)
	if err != nil {
		return slurmerr.Wrap(slurmerr.Refused, err, "")
	}
	for i, object := range []any{group, set} {
		data, err := encode(object)
		if err != nil {
			return slurmerr.Wrap(slurmerr.Internal, err, "")
		}
		if i+component > 0 {
			fmt.Fprintln(p.Out, "---")
		}
		if _, err := p.Out.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// notes prints what the objects do not contain because it depends on the cluster.
func notes(j *job.Job) []string {
	var out []string
	if a := j.Array; a != nil && len(a.Indexes) > 1 {
		out = append(
			out,
			fmt.Sprintf(
				"these are the objects of task %d; those of the other %d tasks are similar",
				a.Indexes[0],
				len(a.Indexes)-1,
			),
		)
	}
	if j.Placement.Exclusive == "node" {
		out = append(out, "--exclusive: the job gets all CPUs of its nodes, whose number depends on the cluster")
	}
	if m := j.Shape.MemPerNode; m != nil && *m == 0 {
		out = append(out, "--mem=0: the job gets all memory of its nodes, whose size depends on the cluster")
	}
	return out
}

// encode writes an object as YAML without its status.
func encode(object any) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	return yaml.Marshal(fields)
}

func input(p *stdio.Process, args []string) (*translate.Input, error) {
	in := &translate.Input{
		Args:     args,
		Env:      p.Environ(),
		Now:      p.Now(),
		Umask:    -1,
		ReadFile: p.ReadFile,
		UID:      p.UID,
		Group:    p.Group,
	}
	call, err := translate.Command(*in)
	if err != nil {
		return nil, err
	}
	name := call.Script
	in.ScriptName = name
	if in.Dir, err = p.Dir(); err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "")
	}
	switch {
	case call.Wrapped, call.Client.OnlyPrints():
	case name == "":
		in.Script, err = io.ReadAll(p.In)
	case path.IsAbs(name):
		in.Script, err = p.ReadFile(name)
	default:
		in.Script, err = p.ReadFile(path.Join(in.Dir, name))
	}
	if err != nil {
		return nil, slurmerr.Wrap(slurmerr.Refused, err, "Unable to open file "+name)
	}
	return in, nil
}
