package srun

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
	"github.com/berth-hpc/berth/translate/option"
)

// programs reads the file of --multi-prog: lines of task numbers, a program
// and its arguments. Which tasks there are is the job's to know, so what needs
// it is checked there.
func (o *Options) programs(name string) ([]step.Program, error) {
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
	text := strings.ReplaceAll(string(data), "\\\n", " ")
	var list []step.Program
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		bad := "Line " + strconv.Itoa(i+1) + " of configuration file " + name + " invalid"
		words := words(line)
		if len(words) < 2 {
			return nil, slurmerr.New(slurmerr.Refused, bad)
		}
		p := step.Program{Line: i + 1, Args: words[1:]}
		if words[0] != "*" {
			if p.Tasks, err = taskRanges(words[0]); err != nil {
				return nil, slurmerr.New(slurmerr.Refused, err.Error()+"\n"+bad)
			}
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, slurmerr.Newf(slurmerr.Refused, "Configuration file %s invalid, no record for task id 0", name)
	}
	return list, nil
}

// countPrograms gives a step of --multi-prog without a number of tasks as many
// as its file has.
func (o *Options) countPrograms(p *option.Parsed) error {
	if !p.Step.MultiProg || p.Job.Shape.Tasks > 0 || len(p.Args) == 0 {
		return nil
	}
	list, err := o.programs(p.Args[0])
	if err != nil {
		return err
	}
	last := uint32(0)
	for i := range list {
		for _, r := range list[i].Tasks {
			last = max(last, r.To)
		}
	}
	p.Job.Shape.Tasks = int32(min(last, step.MaxTasks)) + 1
	return nil
}

// words splits a line at blanks. Single quotes and backslashes protect; double
// quotes mean nothing, as with Slurm.
func words(line string) []string {
	var out []string
	var b strings.Builder
	in, quoted := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			b.WriteByte(line[i])
			in = true
		case c == '\'':
			quoted, in = !quoted, true
		case (c == ' ' || c == '\t') && !quoted:
			if in {
				out = append(out, b.String())
			}
			b.Reset()
			in = false
		default:
			b.WriteByte(c)
			in = true
		}
	}
	if in {
		out = append(out, b.String())
	}
	return out
}

// taskRanges reads "0-1,3". The error is in Slurm's words.
func taskRanges(text string) ([]step.Range, error) {
	var out []step.Range
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if n, err := strconv.Atoi(part); err == nil && n < 0 {
			return nil, fmt.Errorf("Invalid task id, %d < 0", n) //nolint:revive // Slurm's words
		}
		a, err := strconv.ParseUint(from, 10, 31)
		b := a
		if err == nil && ranged {
			b, err = strconv.ParseUint(to, 10, 31)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("Invalid task range specification (%s)", text) //nolint:revive // Slurm's words
		case b < a:
			return nil, fmt.Errorf("Invalid task range, %d-%d", a, b) //nolint:revive // Slurm's words
		}
		out = append(out, step.Range{From: uint32(a), To: uint32(b)})
	}
	return out, nil
}
