// Command vuln compares Berth's dependencies with the Go vulnerability database,
// as of the version in go.mod. It is a separate module, so that its dependencies are not
// Berth's. To update the database: go -C test/vuln get golang.org/x/vulndb@latest
//
// It fails for a vulnerability in a package that Berth imports, unless accepted.txt says
// why it does no harm. Vulnerabilities in Go's standard library are only reported, because
// the dependencies do not determine which Go builds Berth.
//
// The result is that of govulncheck -scan=package, which type-checks all of Kubernetes and
// therefore takes minutes.
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
	accepted, err := readAccepted("accepted.txt")
	if err != nil {
		return err
	}
	return report(found, accepted)
}

// output runs a command and returns its standard output.
func output(name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	return out, nil
}

// finding is a vulnerability of a module in the version that Berth uses, and the version
// that fixes it; "": there is none.
type finding struct{ id, module, version, fixed string }

// standardLibrary is the name of Go's own library in the database.
const standardLibrary = "stdlib"

// imports are the packages that Berth's commands contain.
type imports struct {
	versions map[string]string // of modules; that of the standard library is Go's
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
	goVersion := strings.TrimPrefix(strings.TrimSpace(string(version)), "go")
	out := &imports{versions: map[string]string{standardLibrary: goVersion}, packages: map[string]bool{}}
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
		Events []struct{ Introduced, Fixed string } // in ascending order; each has one of the two
	}
	Specific struct {
		Imports []struct{ Path string }
	} `json:"ecosystem_specific"`
}

// findings returns the vulnerabilities of imported packages that the database in the
// directory has, by id and module.
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
// no packages is about all packages of the module.
func (i *imports) hasPackage(a *affected) bool {
	for _, p := range a.Specific.Imports {
		if i.packages[p.Path] {
			return true
		}
	}
	return len(a.Specific.Imports) == 0
}

// includes reports whether the version is affected, and returns the version that fixes it, or
// "".
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

// readAccepted reads lines of an id and a reason, and returns the reasons by id.
func readAccepted(path string) (map[string]string, error) {
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

// report prints the vulnerabilities. If some are not accepted, it returns an error that says
// what to do.
func report(found map[string]finding, accepted map[string]string) error {
	bad, inLibrary := 0, 0
	isFound := map[string]bool{} // by id
	for _, key := range slices.Sorted(maps.Keys(found)) {
		f := found[key]
		isFound[f.id] = true
		switch {
		case f.module == standardLibrary:
			inLibrary++
			fmt.Printf("note: %s: Go %s (fixed in %s)\n", f.id, f.version, f.fixed)
		case accepted[f.id] != "":
			fmt.Printf("accepted: %s: %s %s: %s\n", f.id, f.module, f.version, accepted[f.id])
		default:
			bad++
			fmt.Printf("vulnerable: %s: %s %s (fixed in %q)\n", f.id, f.module, f.version, f.fixed)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(accepted)) {
		if !isFound[id] {
			bad++
			fmt.Printf("accepted.txt: %s is not found any more; remove it\n", id)
		}
	}
	if inLibrary > 0 {
		fmt.Printf("%d vulnerabilities are in the standard library of this Go: release with a newer Go\n", inLibrary)
	}
	if bad > 0 {
		return fmt.Errorf("%d to be fixed: update the module, or add to test/vuln/accepted.txt the reason why it does no harm", bad)
	}
	fmt.Println("no dependency has a known vulnerability that is not accepted")
	return nil
}
