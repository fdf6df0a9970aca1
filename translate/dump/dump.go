package dump

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// Form is the form of a document.
type Form struct {
	Syntax Syntax
	// Parser is the version of the data parser, such as v0.0.40; empty or v0.0.38:
	// the form of 22.05.
	Parser  string
	Slurm   string   // release, such as 22.05.8
	Cluster string   // the cluster's name
	Command []string // of the caller
	User    string
	Now     int64 // Unix seconds
}

// legacy and parsers are the versions that ParseForm accepts.
var (
	legacy  = []string{"v0.0.37", "v0.0.38"}
	parsers = []string{"v0.0.39", "v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44"}
)

// Versions in which members changed.
const (
	v41 = "v0.0.41"
	v42 = "v0.0.42"
)

// ParseForm parses the value of --json or --yaml; ok is false for an unknown version.
func ParseForm(syntax Syntax, text string) (f Form, ok bool) {
	version, _, _ := strings.Cut(text, "+")
	version = strings.TrimPrefix(version, "data_parser/")
	known := version == "" || slices.Contains(legacy, version) || slices.Contains(parsers, version)
	return Form{Syntax: syntax, Parser: version}, known
}

// Modern reports whether f is the form of a data parser, not that of 22.05.
func (f *Form) Modern() bool { return slices.Contains(parsers, f.Parser) }

// document returns a document with the members that body writes.
func (f *Form) document(body func(*writer)) []byte {
	parser := ""
	if f.Modern() {
		parser = f.Parser
	}
	w := &writer{syntax: f.Syntax, modern: f.Modern(), parser: parser, empty: true}
	if f.Syntax == YAML {
		w.b = append(w.b, "%YAML 1.1\n---"...)
		if w.tagged() {
			w.b = append(w.b, " !!map"...)
		}
	}
	w.object("", func() {
		if w.modern {
			body(w)
			w.object("meta", func() { f.meta(w) })
			w.array("errors", func() {})
			w.array("warnings", func() {})
			return
		}
		w.object("meta", func() { f.meta(w) })
		w.array("errors", func() {})
		body(w)
	})
	if w.tagged() {
		w.b = append(w.b, "\n..."...)
	}
	return append(w.b, '\n')
}

func (f *Form) meta(w *writer) {
	version := append(strings.Split(f.Slurm, "."), "0", "0")
	if !w.modern {
		w.object("plugin", func() {
			w.text("type", "openapi/v0.0.38")
			w.text("name", "Slurm OpenAPI v0.0.38")
		})
		w.object("Slurm", func() {
			w.object("version", func() {
				for i, key := range []string{"major", "micro", "minor"} {
					n, _ := strconv.ParseInt(version[[]int{0, 2, 1}[i]], 10, 64) // of a constant
					w.integer(key, n)
				}
			})
			w.text("release", f.Slurm)
		})
		return
	}
	w.object("plugin", func() {
		w.text("type", "")
		w.text("name", "")
		w.text("data_parser", "data_parser/"+f.Parser)
		w.text("accounting_storage", "")
	})
	w.object("client", func() {
		w.text("source", "")
		w.text("user", f.User)
		w.text("group", "")
	})
	w.texts("command", f.Command...)
	w.object("slurm", func() {
		w.object("version", func() {
			for i, key := range []string{"major", "micro", "minor"} {
				w.text(key, strings.TrimLeft(version[[]int{0, 2, 1}[i]], "0"))
			}
		})
		w.text("release", f.Slurm)
		w.text("cluster", f.Cluster)
	})
}

// Jobs returns the document of squeue --json.
func Jobs(f Form, jobs []*status.Job) []byte {
	return f.document(func(w *writer) {
		w.array("jobs", func() {
			w.b = slices.Grow(w.b, 4500*len(jobs))
			for _, j := range jobs {
				w.object("", func() { f.job(w, j) })
			}
		})
		if w.modern {
			w.number("last_backfill", f.Now, true)
			w.number("last_update", f.Now, true)
		}
	})
}
