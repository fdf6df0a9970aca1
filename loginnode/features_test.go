package loginnode_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page for administrators lists the features and the tests that fail without them.
func TestTableOfFeaturesNamesRealTests(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("*/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, f := range append(append(files, more...), "../test/login/login_test.go") {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(string(data), -1) {
			tests[m[1]] = true
		}
	}
	page, err := os.ReadFile("../docs/login-node.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| feature | here | tests |")
	if !found {
		t.Fatal("the page has no table of features")
	}
	named, checks := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 {
			continue
		}
		if check := strings.TrimSpace(cells[1]); regexp.MustCompile(`^S\d+$`).MatchString(check) && strings.Contains(cells[3], "Test") {
			checks[check] = true
		}
		for _, name := range strings.Fields(cells[3]) {
			named[name] = true
			if strings.HasPrefix(name, "Test") && !tests[name] {
				t.Errorf("row %q names %s, which does not exist", strings.TrimSpace(cells[1]), name)
			}
		}
		if strings.TrimSpace(cells[2]) == "yes" && strings.TrimSpace(cells[3]) == "" {
			t.Errorf("row %q says yes and names no test", strings.TrimSpace(cells[1]))
		}
	}
	for i := 1; i <= 19; i++ {
		if check := fmt.Sprintf("S%d", i); !checks[check] {
			t.Errorf("no row with a test for %s", check)
		}
	}
	for name := range tests {
		if strings.HasPrefix(name, "TestS0") || strings.HasPrefix(name, "TestS1") {
			if !named[name] {
				t.Errorf("%s is in no row", name)
			}
		}
	}
}

// Every field of the configuration file is explained.
func TestEveryFieldIsExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/login-node.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("daemon/file.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`json:\"(\\w+)").FindAllSubmatch(source, -1) {
		if !regexp.MustCompile(`\b` + string(m[1]) + `\b`).Match(page) {
			t.Errorf("docs/login-node.md does not mention %s", m[1])
		}
	}
}
