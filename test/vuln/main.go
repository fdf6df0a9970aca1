// Command vuln compares Berth's dependencies with the Go vulnerability database,
// as of the version in go.mod. It is a module of its own: its dependencies are not
// Berth's. A newer database: go -C test/vuln get golang.org/x/vulndb@latest
//
// It fails for a vulnerability in a package that Berth imports, unless accepted.txt
// says why it does no harm. What is in Go's own library is reported only: which Go
// builds Berth is not said by its dependencies.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vuln:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "berth-vuln-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	scanner, db := filepath.Join(dir, "govulncheck"), filepath.Join(dir, "db")
	if _, err := output("go", "build", "-o", scanner, "golang.org/x/vuln/cmd/govulncheck"); err != nil {
		return err
	}
	module, err := output("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/vulndb")
	if err != nil {
		return err
	}
	records := filepath.Join(strings.TrimSpace(string(module)), "data/osv")
	if _, err := output("go", "tool", "indexdb", "-vulns", records, "-out", db); err != nil {
		return err
	}
	text, err := output(scanner, "-C", "../..", "-db", "file://"+db, "-scan", "package", "-format", "json", "./...")
	if err != nil {
		return err
	}
	found, err := findings(strings.NewReader(string(text)))
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

// findings reads govulncheck's JSON: those in packages that are imported, one for
// each vulnerability and module.
func findings(r io.Reader) (map[string]finding, error) {
	out := map[string]finding{}
	for d := json.NewDecoder(r); ; {
		var m struct {
			Finding *struct {
				OSV          string
				FixedVersion string `json:"fixed_version"`
				Trace        []struct{ Module, Version, Package string }
			}
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		if f := m.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Package != "" {
			x := finding{f.OSV, f.Trace[0].Module, f.Trace[0].Version, f.FixedVersion}
			out[x.id+" "+x.module] = x
		}
	}
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

// report prints what was found. Its error says what has to be done.
func report(found map[string]finding, accepted map[string]string) error {
	bad, library := 0, 0
	used := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		f := found[key]
		used[f.id] = true
		switch {
		case f.module == "stdlib":
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
		fmt.Printf("%d vulnerabilities are in the Go library that builds here: release with a newer Go\n", library)
	}
	if bad > 0 {
		return fmt.Errorf("%d to be mended: update the module, or say in test/vuln/accepted.txt why it does no harm", bad)
	}
	fmt.Println("no dependency has a known vulnerability that is not accepted")
	return nil
}
