// Command vuln compares Berth's dependencies with the Go vulnerability database,
// as of the version in go.mod. It is a separate module, so that its dependencies are not
// Berth's. To update the database: go -C test/vuln get golang.org/x/vulndb@latest
//
// It fails for a vulnerability in a package that Berth imports, unless accepted.txt
// has the reason why it does no harm. Vulnerabilities in Go's standard library are only
// reported, because the dependencies do not determine which Go builds Berth.
//
// The result is that of govulncheck -scan=package, which type-checks all of Kubernetes for
// it and takes minutes.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vuln:", err)
		os.Exit(1)
	}
}

func run() error {
	database, err := output("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/vulndb")
	if err != nil {
		return err
	}
	used, err := dependencies()
	if err != nil {
		return err
	}
	found, err := used.findings(filepath.Join(strings.TrimSpace(string(database)), "data/osv"))
	if err != nil {
		return err
	}
	accepted, err := accepted("accepted.txt")
	if err != nil {
		return err
	}
	return report(found, accepted)
}

// output runs a command and returns what it prints.
func output(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return out, nil
}

// finding is a vulnerability of a module in the version that Berth has.
type finding struct{ id, module, version, fixed string }

// standardLibrary is the name of Go's own library in the database.
const standardLibrary = "stdlib"

// imports are the packages that Berth consists of.
type imports struct {
	versions map[string]string // of modules, with that of Go for the standard library
	packages map[string]bool
}

// dependencies lists the packages that Berth's commands import.
func dependencies() (*imports, error) {
	text, err := output("go", "-C", "../..", "list", "-deps",
		"-f", "{{.ImportPath}} {{with .Module}}{{.Path}} {{.Version}}{{end}}", "./...")
	if err != nil {
		return nil, err
	}
	version, err := output("go", "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	number := strings.TrimPrefix(strings.TrimSpace(string(version)), "go")
	out := &imports{versions: map[string]string{standardLibrary: number}, packages: map[string]bool{}}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		out.packages[f[0]] = true
		if len(f) == 3 { // Berth's own module has no version
			out.versions[f[1]] = f[2]
		}
	}
	return out, nil
}

// record is a vulnerability in the database, in the OSV format (https://ossf.github.io/osv-schema).
type record struct {
	ID        string
	Withdrawn string
	Affected  []affected
}

// affected are the versions and packages of a module.
type affected struct {
	Package struct{ Name string }
	Ranges  []struct {
		Type   string
		Events []struct{ Introduced, Fixed string } // each has one of the two; in ascending order
	}
	Specific struct {
		Imports []struct{ Path string }
	} `json:"ecosystem_specific"`
}

// findings returns the vulnerabilities in packages, one for each vulnerability and module.
func (i *imports) findings(directory string) (map[string]finding, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no records: %v", directory, err)
	}
	out := map[string]finding{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var r record
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if r.Withdrawn != "" {
			continue
		}
		for _, a := range r.Affected {
			module := a.Package.Name
			if version := i.versions[module]; version != "" && i.hasPackage(&a) {
				if hit, fixed := a.includes(version); hit {
					out[r.ID+" "+module] = finding{r.ID, module, version, fixed}
				}
			}
		}
	}
	return out, nil
}

// hasPackage reports whether one of the affected packages is imported. A record that names
// none is about all packages of the module.
func (i *imports) hasPackage(a *affected) bool {
	paths := a.Specific.Imports
	return len(paths) == 0 || slices.ContainsFunc(paths, func(p struct{ Path string }) bool { return i.packages[p.Path] })
}

// includes reports whether the version is affected, and which version fixes it, or "".
func (a *affected) includes(version string) (hit bool, fixed string) {
	ranges := 0
	for _, r := range a.Ranges {
		if r.Type != "SEMVER" {
			continue
		}
		ranges++
		inside := len(r.Events) == 0
		for _, e := range r.Events {
			switch {
			case e.Introduced == "0", e.Introduced != "" && compare(e.Introduced, version) <= 0:
				inside = true
			case e.Fixed != "" && compare(e.Fixed, version) <= 0:
				inside = false
			case e.Fixed != "" && inside:
				return true, e.Fixed
			}
		}
		hit = hit || inside
	}
	return hit || ranges == 0, ""
}

// compare compares versions, with or without a v in front.
func compare(a, b string) int {
	return semver.Compare("v"+strings.TrimPrefix(a, "v"), "v"+strings.TrimPrefix(b, "v"))
}

// accepted reads lines of an id and a reason.
func accepted(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]string{}
	for s := bufio.NewScanner(f); s.Scan(); {
		id, why, _ := strings.Cut(strings.TrimSpace(s.Text()), " ")
		if id == "" || strings.HasPrefix(id, "#") {
			continue
		}
		if strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s: %s is accepted without a reason", path, id)
		}
		out[id] = why
	}
	return out, nil
}

// report prints the vulnerabilities. Its error describes what to do.
func report(found map[string]finding, accepted map[string]string) error {
	bad, library := 0, 0
	used := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		f := found[key]
		used[f.id] = true
		switch {
		case f.module == standardLibrary:
			library++
			fmt.Printf("note: %s: Go %s (fixed in %s)\n", f.id, f.version, f.fixed)
		case accepted[f.id] != "":
			fmt.Printf("accepted: %s: %s %s: %s\n", f.id, f.module, f.version, accepted[f.id])
		default:
			bad++
			fmt.Printf("vulnerable: %s: %s %s (fixed in %q)\n", f.id, f.module, f.version, f.fixed)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(accepted)) {
		if !used[id] {
			bad++
			fmt.Printf("accepted.txt: %s is not found any more; remove it\n", id)
		}
	}
	if library > 0 {
		fmt.Printf("%d vulnerabilities are in the standard library of this Go: release with a newer Go\n", library)
	}
	if bad > 0 {
		return fmt.Errorf("%d to be fixed: update the module, or add to test/vuln/accepted.txt the reason why it does no harm", bad)
	}
	fmt.Println("no dependency has a known vulnerability that is not accepted")
	return nil
}
