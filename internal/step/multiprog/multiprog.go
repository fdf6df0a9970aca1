// Package multiprog parses the configuration file of srun --multi-prog, whose
// lines give each task its program, and selects the command of a task.
package multiprog

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Program is one line of the file.
type Program struct {
	Line  int         `json:"line"`
	Tasks []TaskRange `json:"tasks,omitempty"` // nil: all tasks that no other line names
	Args  []string    `json:"args"`            // %t and %o are not replaced yet
}

// TaskRange is a range of task numbers, both ends included.
type TaskRange struct {
	From uint32 `json:"from"`
	To   uint32 `json:"to"`
}

// Parse parses text, the contents of the file called name. Check does the checks that
// depend on the number of tasks. The error is Slurm's text and may have two lines.
func Parse(name, text string) ([]Program, error) {
	text = strings.ReplaceAll(text, "\\\n", "")
	var list []Program
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		words := splitWords(line)
		if len(words) < 2 {
			return nil, fmt.Errorf("%s", invalidLine(i+1, name))
		}
		p := Program{Line: i + 1, Args: words[1:]}
		if words[0] != "*" {
			tasks, err := parseTaskRanges(words[0])
			if err != nil {
				return nil, fmt.Errorf("%w\n%s", err, invalidLine(i+1, name))
			}
			p.Tasks = tasks
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s", missingRecord(name, 0))
	}
	return list, nil
}

func invalidLine(line int, name string) string {
	return fmt.Sprintf("Line %d of configuration file %s invalid", line, name)
}

func missingRecord(name string, task int) string {
	return fmt.Sprintf("Configuration file %s invalid, no record for task id %d", name, task)
}

// LastTask returns the highest task number that the programs name.
func LastTask(list []Program) uint32 {
	last := uint32(0)
	for i := range list {
		for _, r := range list[i].Tasks {
			last = max(last, r.To)
		}
	}
	return last
}

// splitWords splits a line at blanks. Single quotes and backslashes protect
// characters. Double quotes have no meaning in Slurm's file, so a splitter for
// shell words such as go-shellquote would read other commands from it.
func splitWords(line string) []string {
	var words []string
	var word strings.Builder
	inWord, quoted := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			i++
			word.WriteByte(line[i])
			inWord = true
		case c == '\'':
			quoted, inWord = !quoted, true
		case (c == ' ' || c == '\t') && !quoted:
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if inWord {
		words = append(words, word.String())
	}
	return words
}

// parseTaskRanges parses "0-1,3". The error is Slurm's text.
func parseTaskRanges(text string) ([]TaskRange, error) {
	var ranges []TaskRange
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if n, err := strconv.Atoi(part); err == nil && n < 0 {
			return nil, fmt.Errorf("Invalid task id, %d < 0", n) //nolint:revive // Slurm's words
		}
		first, err := strconv.ParseUint(from, 10, 31)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(to, 10, 31)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("Invalid task range specification (%s)", text) //nolint:revive // Slurm's words
		case last < first:
			return nil, fmt.Errorf("Invalid task range, %d-%d", first, last) //nolint:revive // Slurm's words
		}
		ranges = append(ranges, TaskRange{From: uint32(first), To: uint32(last)})
	}
	return ranges, nil
}

// offset returns the position of a task among those of the line, if it is one of
// them.
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

// Command returns the program and arguments that a task executes: those of the line that
// names the task, or else those of the line "*", followed by more. It returns nil if no
// line is for the task.
func Command(list []Program, task uint32, more []string) []string {
	for _, star := range []bool{false, true} {
		for i := range list {
			p := &list[i]
			if (p.Tasks == nil) != star {
				continue
			}
			if n, ok := p.offset(task); ok {
				return append(expand(p.Args, task, n), more...)
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

// Check checks the programs for a step with the given number of tasks. It returns the
// lines of Slurm's error, or nil if there is none.
func Check(file string, list []Program, tasks uint32) (problem []string) {
	seen := make([]bool, tasks)
	star := false
	for i := range list {
		p := &list[i]
		star = star || p.Tasks == nil
		for _, r := range p.Tasks {
			if r.To >= tasks {
				return []string{fmt.Sprintf("Invalid task id, %d >= ntasks", r.To), invalidLine(p.Line, file)}
			}
			for t := r.From; t <= r.To; t++ {
				if seen[t] {
					return []string{fmt.Sprintf("Duplicate record for task %d", t), invalidLine(p.Line, file)}
				}
				seen[t] = true
			}
		}
	}
	if task := slices.Index(seen, false); task >= 0 && !star {
		return []string{missingRecord(file, task)}
	}
	return nil
}
