package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/berth-hpc/berth/"

// layer lists what the packages below one path may import. The longest path that
// matches a package decides.
//
// A failure here means that the structure has changed. Change the structure on purpose,
// with a decision record, or change the import; do not change this table to make a
// build pass.
type layer struct {
	path string
	may  []string // paths of ours, subpackages included; "*" is everything
}

var layers = []layer{
	{"cmd", []string{"*"}},
	{"test", []string{"*"}},
	{"api", []string{"translate/job", "translate/status"}},
	{"deploy", []string{"deploy/images"}},
	{"examples", []string{"translate/hostlist"}},
	{"loginnode", []string{"internal/durable", "loginnode", "internal/sigaction", "translate/bounds"}},
	{"loginnode/limit", nil},
	{"translate", []string{"translate", "api", "internal/wire", "internal/printable", "internal/slurmerr", "internal/build"}},
	{"translate/job", nil},
	{"translate/bounds", []string{"translate/job"}},
	{"translate/bounds/objects", []string{"translate/bounds", "translate/job", "api"}},
	{"translate/status", nil},
	{"translate/hostlist", nil},
	{"cli", []string{"cli", "translate", "api", "internal/jobs", "internal/kube", "internal/printable", "internal/sibling", "internal/step", "internal/strerror", "internal/sched/backfill", "internal/sched/priority", "internal/slurmconf", "internal/keyvalue", "internal/rest", "internal/httpserver", "internal/stdio", "internal/slurmerr", "internal/wire", "internal/build", "internal/localcluster/options", "deploy", "completions"}},
	{"tui", []string{"tui", "translate", "internal/jobs", "internal/printable", "internal/step", "internal/stdio", "internal/slurmerr", "internal/wire", "internal/build"}},
	{"completions", nil},
	{"internal/gen", []string{"cli", "internal/authz", "translate", "internal/stdio", "internal/build"}},
	{"internal/wire", nil},
	{"internal/build", nil},
	{"internal/filelimit", nil},
	{"internal/keyvalue", nil},
	{"internal/httpserver", nil},
	{"internal/certfile", nil},
	{"internal/durable", nil},
	{"internal/eventually", nil},
	{"internal/exectest", nil},
	{"internal/sibling", nil},
	{"internal/sigaction", nil},
	{"internal/stdio", []string{"internal/filelimit"}},
	{"internal/slurmerr", []string{"internal/printable"}},
	{"internal/printable", nil},
	{"internal/strerror", nil},
	{"internal/archtest", nil},
	{"internal/slurmconf", []string{"api", "translate", "internal/wire"}},
	{"internal/kube", []string{"api", "internal/stdio", "internal/wire", "internal/slurmerr", "internal/build"}},
	{"internal/jobs", []string{"api", "internal/jobs", "internal/printable", "internal/stdio", "translate", "internal/kube", "internal/wire", "internal/slurmerr"}},
	{"internal/rest", []string{"translate", "internal/jobs", "internal/kube", "internal/printable", "internal/stdio", "internal/slurmerr", "internal/build"}},
	{"internal/step", []string{"translate", "internal/wire", "internal/slurmerr", "internal/step"}},
	{"internal/pmi", nil},
	{"internal/pmix", []string{"translate", "internal/step"}},
	{"internal/agent", []string{"translate", "internal/pmi", "internal/printable", "internal/wire", "internal/slurmerr", "internal/step", "internal/strerror", "internal/agent", "internal/sigaction", "internal/build"}},
	{"internal/authz", nil},
	{"internal/control", []string{"api", "translate/hostlist", "translate/status", "internal/wire", "internal/build"}},
	{"internal/queue", []string{"api", "internal/authz", "translate", "internal/queue", "internal/control", "internal/sched/limits", "internal/wire", "internal/build"}},
	{"internal/acct", []string{"api", "internal/authz", "translate", "internal/acct", "internal/queue", "internal/control", "internal/wire", "internal/build"}},
	{"internal/agentapi", []string{"api", "translate", "internal/queue/member", "internal/control", "internal/wire", "internal/build", "internal/agent/peer"}},
	{"internal/sched", []string{"api", "internal/authz", "translate", "internal/acct", "internal/sched", "internal/control", "internal/queue", "internal/agentapi", "internal/jobsets", "internal/certfile", "internal/httpserver", "internal/usersource", "internal/wire", "internal/build", "deploy"}},
	{"internal/sched/backfill", nil},
	{"internal/sched/devices", []string{"api", "internal/control", "internal/sched/gres", "internal/wire"}},
	{"internal/sched/gres", []string{"api", "internal/sched/backfill", "internal/wire"}},
	{"internal/sched/keeper/decide", []string{"api", "translate", "internal/control", "internal/sched/backfill", "internal/wire"}},
	{"internal/sched/nodeinfo", []string{"internal/wire"}},
	{"internal/sched/dependency", []string{"api", "translate"}},
	{"internal/sched/pools", []string{"api", "translate/hostlist", "internal/sched/nodeinfo", "internal/wire"}},
	{"internal/sched/snapshot", []string{"api", "translate", "internal/queue/reserve", "internal/sched/backfill", "internal/sched/dependency", "internal/sched/gres", "internal/sched/limits", "internal/sched/nodeinfo", "internal/sched/pools", "internal/sched/priority", "internal/wire"}},
	{"internal/sched/feasibility", []string{"api", "translate", "internal/sched/backfill", "internal/sched/snapshot"}},
	{"internal/sched/preemption", []string{"api", "translate/array", "internal/sched/backfill", "internal/sched/snapshot"}},
	{"internal/sched/clusterview", []string{"api", "translate", "internal/queue/reserve", "internal/sched/backfill", "internal/sched/gres", "internal/sched/nodeinfo", "internal/sched/pools", "internal/sched/snapshot", "internal/wire"}},
	{"internal/sched/schedtest", []string{"api", "translate", "internal/wire"}},
	{"internal/sched/priority", []string{"api", "translate"}},
	{"internal/sched/limits", []string{"api", "translate", "internal/sched/backfill"}},
	{"internal/jobsets", []string{"internal/httpserver"}},
	{"internal/usersource", []string{"api", "internal/usersource"}},
	{"internal/processnode", []string{"internal/processnode", "internal/httpserver", "internal/sigaction", "internal/wire", "internal/build"}},
	{"internal/processnode/identity", nil},
	{"internal/processnode/kubeletapi", []string{"internal/processnode/logfile", "internal/httpserver"}},
	{"internal/processnode/podenv", nil},
	{"internal/processnode/probe", nil},
	{"internal/processnode/registration", []string{"internal/wire"}},
	{"internal/processnode/stream", []string{"internal/processnode/logfile", "internal/processnode/task"}},
	{"internal/processnode/volume", []string{"internal/processnode/identity", "internal/processnode/podenv", "internal/processnode/shim"}},
	{"internal/loginkube", []string{"api", "internal/jobs", "internal/kube", "internal/stdio", "internal/wire", "translate"}},
	{"internal/localcluster/options", nil},
	{"internal/localcluster", []string{"api", "internal/certfile", "internal/durable", "internal/stdio", "deploy", "translate", "internal/localcluster", "internal/processnode", "internal/jobsets", "internal/sched", "internal/control", "internal/queue/shares", "internal/slurmconf", "internal/kube", "internal/wire", "internal/build"}},
}

// pure packages import nothing that does I/O.
var pure = []string{"translate", "internal/sched/backfill", "internal/sched/keeper/decide", "internal/wire", "internal/slurmerr", "internal/printable", "test/chaos/history"}

// impure are the packages that pure packages must not import.
var impure = []string{"os", "os/exec", "net", "net/http", "syscall", "golang.org/x/sys/unix", "math/rand", "math/rand/v2", "crypto/rand", "context", "io/ioutil"}

// heavy lists expensive dependencies and the packages that may link them.
var heavy = map[string][]string{
	"k8s.io/kubernetes/":             {"internal/sched/plugin", "internal/sched/app", "internal/localcluster", "cmd/scheduler", "cmd/berth-local"},
	"sigs.k8s.io/controller-runtime": {"internal/acct/server", "internal/control", "internal/sched", "internal/queue", "internal/agentapi", "internal/jobsets", "internal/localcluster", "test"},
	"k8s.io/client-go/kubernetes":    {"internal/control", "internal/sched", "internal/queue", "internal/agentapi", "internal/jobsets", "internal/localcluster", "internal/processnode", "test"},
	"k8s.io/client-go":               {"internal/kube", "internal/control", "internal/sched", "internal/queue", "internal/agentapi", "internal/jobsets", "internal/localcluster", "internal/processnode", "test", "cmd/scheduler", "cmd/berth-local"},
	"go.etcd.io/etcd/server":         {"internal/localcluster", "test/chaos/cluster"},
	"charm.land":                     {"tui"},
	"github.com/charmbracelet":       {"tui"},
	"modernc.org/sqlite":             {"internal/acct"},
	"github.com/jackc/pgx/v5":        {"internal/acct"},
	"go.opentelemetry.io":            {"internal/sched/tracing", "test"},
	"github.com/go-ldap/ldap/v3":     {"internal/usersource"},
	"sigs.k8s.io/jobset/api":         {"translate/kube", "cli/translate", "internal/control", "internal/jobsets", "internal/sched", "internal/localcluster", "test"},
	"sigs.k8s.io/jobset/pkg":         {"internal/jobsets"},
}

// file is a Go file of the repository.
type file struct {
	pkg     string // path below the module, "cli/squeue"
	name    string // path below the module
	test    bool
	doc     string // the package comment, if it is in this file
	imports []string
}

// sources returns all Go files, those of other modules below this one included, without
// test data.
func sources(t *testing.T) []file {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var out []file
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); p != root && (n == "testdata" || n == "bin" || n == "dist" || strings.HasPrefix(n, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(p, ".go") {
			out = append(out, parse(t, root, p))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func parse(t *testing.T, root, p string) file {
	t.Helper()
	src, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := parser.ParseFile(token.NewFileSet(), p, src, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		t.Fatalf("%s: %v", p, err)
	}
	rel, err := filepath.Rel(root, p)
	if err != nil {
		t.Fatal(err)
	}
	f := file{pkg: filepath.ToSlash(filepath.Dir(rel)), name: rel, test: strings.HasSuffix(p, "_test.go"), doc: docOf(tree)}
	for _, i := range tree.Imports {
		path, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		f.imports = append(f.imports, path)
	}
	return f
}

// docOf returns the package comment in the file.
func docOf(f *ast.File) string {
	if f.Doc == nil {
		return ""
	}
	return f.Doc.Text()
}

// within reports whether pkg is path or is below it.
func within(pkg, path string) bool {
	return pkg == path || strings.HasPrefix(pkg, path+"/")
}

// withinAny reports whether pkg is one of the paths or is below one.
func withinAny(pkg string, paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return within(pkg, path) })
}

// layerOf returns the layer of a package, or nil if it is in none.
func layerOf(pkg string) *layer {
	var best *layer
	for i := range layers {
		if l := &layers[i]; within(pkg, l.path) && (best == nil || len(l.path) > len(best.path)) {
			best = l
		}
	}
	return best
}

func TestImportsPointDown(t *testing.T) {
	files := sources(t)
	if len(files) < 20 {
		t.Fatalf("found only %d files: is the root right?", len(files))
	}
	for _, f := range files {
		l := layerOf(f.pkg)
		if l == nil {
			t.Errorf("%s: package %s is in no layer: add it to the table", f.name, f.pkg)
			continue
		}
		if f.test {
			continue // tests may import any package
		}
		for _, i := range f.imports {
			ours, ok := strings.CutPrefix(i, module)
			if !ok || ours == f.pkg || slices.Contains(l.may, "*") {
				continue
			}
			if !withinAny(ours, l.may) {
				t.Errorf("%s: %s must not import %s", f.name, f.pkg, ours)
			}
		}
	}
}

func TestCommandsDoNotImportOneAnother(t *testing.T) {
	for _, f := range sources(t) {
		from, ok := strings.CutPrefix(f.pkg, "cli/")
		if !ok || f.test {
			continue
		}
		for _, i := range f.imports {
			to, ok := strings.CutPrefix(i, module+"cli/")
			if ok && strings.Split(to, "/")[0] != strings.Split(from, "/")[0] {
				t.Errorf("%s: command %s imports command %s", f.name, from, to)
			}
		}
	}
}

func TestPurePackagesTouchNothing(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || !withinAny(f.pkg, pure) {
			continue
		}
		for _, i := range f.imports {
			if slices.Contains(impure, i) {
				t.Errorf("%s: a pure package imports %s", f.name, i)
			}
		}
	}
}

func TestHeavyDependenciesAreFenced(t *testing.T) {
	for _, f := range sources(t) {
		if f.test {
			continue
		}
		for _, i := range f.imports {
			prefix := fence(i)
			if prefix == "" {
				continue
			}
			if !withinAny(f.pkg, heavy[prefix]) {
				t.Errorf("%s: %s must not link %s", f.name, f.pkg, i)
			}
		}
	}
}

// fence returns the longest prefix in heavy that matches the import, or "".
func fence(path string) string {
	best := ""
	for p := range heavy {
		if (path == p || strings.HasPrefix(path, strings.TrimSuffix(p, "/")+"/")) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

func TestEveryPackageHasAComment(t *testing.T) {
	docs := map[string]string{}
	for _, f := range sources(t) {
		if !f.test {
			docs[f.pkg] += f.doc
		}
	}
	for pkg, doc := range docs {
		if len(strings.Fields(doc)) < 4 {
			t.Errorf("package %s has no package comment", pkg)
		}
	}
}

func TestMainsAreWiringOnly(t *testing.T) {
	root := "../../cmd"
	mains, err := filepath.Glob(filepath.Join(root, "*", "main.go"))
	if err != nil || len(mains) == 0 {
		t.Fatalf("no mains: %v", err)
	}
	for _, m := range mains {
		src, err := os.ReadFile(m)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for l := range strings.Lines(string(src)) {
			if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "//") {
				lines++
			}
		}
		if lines > 25 {
			t.Errorf("%s has %d lines; a main is wiring, 25 at most", m, lines)
		}
	}
}
