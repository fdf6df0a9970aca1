package srun

import (
	"errors"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-hpc/berth/internal/slurmerr"
	"github.com/berth-hpc/berth/internal/step"
)

// programs reads the file of --multi-prog: lines of task numbers, a program
// and its arguments. Which tasks there are is the job's to know, so what needs
// it is checked there.
func (r *run) programs(name string) ([]step.Program, error) {
	path := name
	if !strings.HasPrefix(path, "/") {
		path = r.dir + "/" + path
	}
	data, err := r.o.p.ReadFile(path)
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
				return nil, slurmerr.New(slurmerr.Refused, "Invalid task range specification ("+words[0]+")\n"+bad)
			}
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, slurmerr.Newf(slurmerr.Refused, "Configuration file %s invalid, no record for task id 0", name)
	}
	return list, nil
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

var errRange = errors.New("no task range")

// taskRanges reads "0-1,3".
func taskRanges(text string) ([]step.Range, error) {
	var out []step.Range
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		a, err := strconv.ParseUint(from, 10, 31)
		b := a
		if err == nil && ranged {
			b, err = strconv.ParseUint(to, 10, 31)
		}
		if err != nil || b < a {
			return nil, errRange
		}
		out = append(out, step.Range{From: uint32(a), To: uint32(b)})
	}
	return out, nil
}
