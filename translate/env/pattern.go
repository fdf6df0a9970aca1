package env

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Place is what the file names of --output, --error and --input may name
// (sbatch(1) and srun(1), FILENAME PATTERN).
type Place struct {
	JobID int64
	// ArrayJobID and ArrayTask of a task of an array; ArrayJobID 0: none.
	ArrayJobID int64
	ArrayTask  int32
	JobName    string
	User       string
	Node       string // short name
	NodeIndex  int32  // relative to the job, or to the step
	Task       int32  // global number
	Step       int32  // meaningful for a task of a step
	Batch      bool   // the batch script, which is no step
}

const (
	// DefaultOutput is where the output of a batch script goes without
	// --output.
	DefaultOutput = "slurm-%j.out"
	// DefaultArrayOutput is the same for a task of an array.
	DefaultArrayOutput = "slurm-%A_%a.out"

	noArrayTask = 4294967294 // what Slurm writes for %a outside of arrays
	maxWidth    = 10
)

// Output gives the file names of a batch script's standard output and error:
// the patterns of a job, expanded, in workDir unless they are absolute. An
// empty errorPattern is the file of the output.
func (p Place) Output(outputPattern, errorPattern, workDir string) (out, err string) {
	if outputPattern == "" {
		outputPattern = DefaultOutput
		if p.ArrayJobID != 0 {
			outputPattern = DefaultArrayOutput
		}
	}
	out = p.Path(workDir, outputPattern)
	if errorPattern == "" {
		return out, out
	}
	return out, p.Path(workDir, errorPattern)
}

// Path is the expanded pattern, in dir unless it is absolute.
func (p Place) Path(dir, pattern string) string {
	name := p.Expand(pattern)
	if path.IsAbs(name) {
		return name
	}
	return path.Join(dir, name)
}

// Shown is a pattern as scontrol shows it, in dir unless it is absolute: what it
// says of the job is written out, what only a node or a task can tell stays, as
// do numbers with a width.
func (p Place) Shown(dir, pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '%' && i+1 < len(pattern) && strings.IndexByte("Aajux", pattern[i+1]) >= 0 {
			b.WriteString(p.field(pattern[i+1], ""))
			i++
			continue
		}
		b.WriteByte(pattern[i])
	}
	if path.IsAbs(b.String()) {
		return b.String()
	}
	return path.Join(dir, b.String())
}

// Expand writes out a pattern: %A %a %J %j %N %n %s %t %u %x and %%, numbers
// with an optional width, zero-padded. A backslash anywhere turns all of that
// off. Backslashes disappear: of a step's file all, of a batch script's those
// that stand for the character behind them.
func (p Place) Expand(pattern string) string {
	switch {
	case !strings.Contains(pattern, `\`):
		return scan(pattern, p.field)
	case p.Batch:
		return unescape(pattern)
	}
	return strings.ReplaceAll(pattern, `\`, "")
}

// PerTask tells whether a pattern gives each task or node a file of its own.
func PerTask(pattern string) bool { return names(pattern, "tnN") }

// PerStep tells whether a pattern names the step.
func PerStep(pattern string) bool { return names(pattern, "sJ") }

// names tells whether a pattern has one of the specifiers.
func names(pattern, specs string) bool {
	found := false
	scan(pattern, func(spec byte, _ string) string {
		found = found || strings.IndexByte(specs, spec) >= 0
		return ""
	})
	return found
}

// scan puts field's answer in the place of every specifier.
func scan(pattern string, field func(spec byte, width string) string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			b.WriteByte(pattern[i])
			continue
		}
		end := i + 1
		for end < len(pattern) && pattern[end] >= '0' && pattern[end] <= '9' {
			end++
		}
		if end == len(pattern) {
			b.WriteString(unfinished(pattern[i:]))
			break
		}
		if pattern[end] == '%' && end > i+1 { // the width is text, and the next specifier begins
			b.WriteString(pattern[i+1 : end])
			end--
		} else {
			b.WriteString(field(pattern[end], pattern[i+1:end]))
		}
		i = end
	}
	return b.String()
}

// unfinished is what Slurm makes of a pattern that ends within a specifier: a
// lone % stays, one with a width goes.
func unfinished(text string) string {
	if len(text) > 1 {
		return text[1:]
	}
	return text
}

func unescape(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' {
			i++
		}
		if i < len(pattern) {
			b.WriteByte(pattern[i])
		}
	}
	return b.String()
}

// field is the text of one specifier.
func (p Place) field(spec byte, width string) string {
	padded := func(n int64) string {
		w, _ := strconv.Atoi(width)
		if len(width) > 2 {
			w = maxWidth
		}
		return fmt.Sprintf("%0*d", min(w, maxWidth), n)
	}
	switch spec {
	case '%':
		return "%"
	case 'A':
		if p.ArrayJobID != 0 {
			return padded(p.ArrayJobID)
		}
		return padded(p.JobID)
	case 'a':
		if p.ArrayJobID != 0 {
			return padded(int64(p.ArrayTask))
		}
		return padded(noArrayTask)
	case 'j':
		return padded(p.JobID)
	case 'J':
		if p.Batch {
			return padded(p.JobID)
		}
		return padded(p.JobID) + "." + strconv.Itoa(int(p.Step))
	case 's':
		if p.Batch {
			return "batch"
		}
		return padded(int64(p.Step))
	case 'n':
		return padded(int64(p.NodeIndex))
	case 't':
		return padded(int64(p.Task))
	case 'N':
		return p.Node
	case 'u':
		return p.User
	case 'x':
		return p.JobName
	}
	return "%" + width + string(spec)
}
