package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDecisionsAreNumbered checks that every decision record has a number of its own and
// begins with it.
func TestDecisionsAreNumbered(t *testing.T) {
	paths, err := filepath.Glob("../../docs/decisions/[0-9]*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no decision records: %v", err)
	}
	nameOf := map[string]string{} // by number
	for _, path := range paths {
		name := filepath.Base(path)
		number, _, _ := strings.Cut(name, "-")
		if other := nameOf[number]; other != "" {
			t.Errorf("%s and %s have the same number", other, name)
		}
		nameOf[number] = name
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "# "+number+". ") {
			t.Errorf("%s does not begin with its number", name)
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)

// TestLinks checks that the files to which pages link exist.
func TestLinks(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "dist" || d.Name() == "bin" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], ":") {
				continue // a URL
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	// A directory or file of the repository, such as `cli/sbatch` or `cli/registry.go`.
	repositoryPath = regexp.MustCompile("`((?:api|cli|cmd|deploy|internal|loginnode|test|translate|tui)/[\\w./-]*)`")
	// The files that follow the name of their directory: `internal/jobs` (`submit.go`).
	filesOfDir = regexp.MustCompile("`([\\w/]+)`(?:,| \\()((?:[^`)\n]{0,20}`\\w+\\.go`)+)")
	goFile     = regexp.MustCompile("`(\\w+\\.go)`")
)

// TestArchitectureNamesWhatExists checks the directories and files that the page about the
// architecture names.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, m := range repositoryPath.FindAllStringSubmatch(string(text), -1) {
		paths = append(paths, m[1])
	}
	for _, m := range filesOfDir.FindAllStringSubmatch(string(text), -1) {
		for _, file := range goFile.FindAllStringSubmatch(m[2], -1) {
			paths = append(paths, m[1]+"/"+file[1])
		}
	}
	if len(paths) < 100 {
		t.Errorf("found only %d paths", len(paths))
	}
	for _, path := range paths {
		if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
			t.Errorf("docs/architecture.md: %v", err)
		}
	}
}
