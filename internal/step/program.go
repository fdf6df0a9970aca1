package step

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Program is one line of a --multi-prog file.
type Program struct {
	Line  int      `json:"line"`
	Tasks []Range  `json:"tasks,omitempty"` // nil: all that no other line names
	Args  []string `json:"args"`            // %t and %o are not replaced yet
}

// Range is a run of task numbers, both ends included.
type Range struct {
	From uint32 `json:"from"`
	To   uint32 `json:"to"`
}

// offset is the place of a task among those of the line.
func (p *Program) offset(task uint32) (uint32, bool) {
	if p.Tasks == nil {
		return task, true
	}
	var before uint32
	for _, r := range p.Tasks {
		if task >= r.From && task <= r.To {
			return before + task - r.From, true
		}
		before += r.To - r.From + 1
	}
	return 0, false
}

// ProgramOf is what a task runs: its own line's, else that of "*", with more
// arguments behind; nil: no line is for it.
func ProgramOf(list []Program, task uint32, more []string) []string {
	for _, star := range []bool{false, true} {
		for i := range list {
			if p := &list[i]; (p.Tasks == nil) == star {
				if n, ok := p.offset(task); ok {
					return append(expand(p.Args, task, n), more...)
				}
			}
		}
	}
	return nil
}

// expand replaces %t by the task's number and %o by its offset.
func expand(args []string, task, offset uint32) []string {
	r := strings.NewReplacer("%t", strconv.Itoa(int(task)), "%o", strconv.Itoa(int(offset)))
	out := slices.Clone(args)
	for i := range out {
		out[i] = r.Replace(out[i])
	}
	return out
}

// CheckPrograms refuses lines that do not fit a step of so many tasks. The
// error is *Impossible, with Slurm's text.
func CheckPrograms(file string, list []Program, tasks uint32) error {
	seen := make([]bool, tasks)
	star := false
	for i := range list {
		p := &list[i]
		bad := fmt.Sprintf("Line %d of configuration file %s invalid", p.Line, file)
		star = star || p.Tasks == nil
		for _, r := range p.Tasks {
			if r.To >= tasks {
				return &Impossible{Line: []string{fmt.Sprintf("Invalid task id, %d >= ntasks", r.To), bad}}
			}
			for t := r.From; t <= r.To; t++ {
				if seen[t] {
					return &Impossible{Line: []string{fmt.Sprintf("Duplicate record for task %d", t), bad}}
				}
				seen[t] = true
			}
		}
	}
	if i := slices.Index(seen, false); i >= 0 && !star {
		return &Impossible{Line: []string{fmt.Sprintf("Configuration file %s invalid, no record for task id %d", file, i)}}
	}
	return nil
}
