package env

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// PatternValues holds the values of the specifiers in the file names of --output, --error and
// --input (sbatch(1) and srun(1), FILENAME PATTERN).
type PatternValues struct {
	JobID int64
	// ArrayJobID and ArrayTask are those of an array task; ArrayJobID 0: none.
	ArrayJobID int64
	ArrayTask  int32
	JobName    string
	User       string
	Node       string // short name
	NodeIndex  int32  // relative to the job, or to the step
	Task       int32  // global number
	Step       int32  // only of a task of a step
	Batch      bool   // the batch script
}

const (
	// DefaultOutput is the output file of a batch script without --output.
	DefaultOutput = "slurm-%j.out"
	// DefaultArrayOutput is that of an array task.
	DefaultArrayOutput = "slurm-%A_%a.out"

	noArrayTask = 4294967294 // %a outside of arrays
	maxWidth    = 10
)

// Output returns the files of a batch script's standard output and error: the
// expanded patterns, relative to workDir. With an empty errorPattern the files are
// the same.
func (p PatternValues) Output(outputPattern, errorPattern, workDir string) (out, err string) {
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

// Path returns the expanded pattern, relative to dir.
func (p PatternValues) Path(dir, pattern string) string {
	return inDir(dir, p.Expand(pattern))
}

// inDir returns the path of name relative to dir. As in Slurm it is not cleaned.
func inDir(dir, name string) string {
	if path.IsAbs(name) {
		return name
	}
	return dir + "/" + name
}

// Shown returns a pattern as scontrol shows it, relative to dir: it expands the
// specifiers about the job, but not those about nodes and tasks nor those with a
// width.
func (p PatternValues) Shown(dir, pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '%' && i+1 < len(pattern) && strings.IndexByte("Aajux", pattern[i+1]) >= 0 {
			b.WriteString(p.field(pattern[i+1], ""))
			i++
			continue
		}
		b.WriteByte(pattern[i])
	}
	return inDir(dir, b.String())
}

// Expand expands a pattern: %A %a %J %j %N %n %s %t %u %x and %%. Numbers may have a
// width, to which they are padded with zeros. A pattern with a backslash is not
// expanded; its backslashes are removed: all of them in a step's file, and those that
// quote a character in a batch script's file.
func (p PatternValues) Expand(pattern string) string {
	switch {
	case !strings.Contains(pattern, `\`):
		return scan(pattern, p.field)
	case p.Batch:
		return unescape(pattern)
	}
	return strings.ReplaceAll(pattern, `\`, "")
}

// PerTask reports whether a pattern is different for each task or node.
func PerTask(pattern string) bool { return hasSpecifier(pattern, "tnN") }

// PerStep reports whether a pattern is different for each step.
func PerStep(pattern string) bool { return hasSpecifier(pattern, "sJ") }

// hasSpecifier reports whether a pattern contains one of the specifiers.
func hasSpecifier(pattern, specs string) bool {
	found := false
	scan(pattern, func(spec byte, _ string) string {
		found = found || strings.IndexByte(specs, spec) >= 0
		return ""
	})
	return found
}

// scan replaces every specifier by the result of field.
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
		if pattern[end] == '%' && end > i+1 { // the width is text, and the next specifier starts
			b.WriteString(pattern[i+1 : end])
			end--
		} else {
			b.WriteString(field(pattern[end], pattern[i+1:end]))
		}
		i = end
	}
	return b.String()
}

// unfinished returns the expansion of a specifier without a letter at the end of a
// pattern: as in Slurm, a lone % stays, and one with a width is removed.
func unfinished(text string) string {
	if len(text) > 1 {
		return text[1:]
	}
	return text
}

// unescape removes backslashes that quote a character.
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

// field returns the value of one specifier.
func (p PatternValues) field(spec byte, width string) string {
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
