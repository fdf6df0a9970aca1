package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// claimPages are the pages with tables of claims. The last cell of a row names the tests
// that fail if the claim is untrue.
var claimPages = []string{"docs/security.md"}

var (
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(\w+ \*testing\.[TF]\)`)
	testName     = regexp.MustCompile(`^(?:Test|Fuzz)\w+$`)
)

// TestClaimsNameRealTests checks that every row of a table headed "claim" names
// at least one test, and that each test it names exists.
func TestClaimsNameRealTests(t *testing.T) {
	tests := testFunctions(t)
	for _, page := range claimPages {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		rows := claimRows(string(text))
		if len(rows) == 0 {
			t.Errorf("%s makes no claims", page)
		}
		for claim, names := range rows {
			if len(names) == 0 {
				t.Errorf("%s: no test for %q", page, claim)
			}
			for _, name := range names {
				switch {
				case !testName.MatchString(name):
					t.Errorf("%s: %q names %q, which is not the name of a test", page, claim, name)
				case !tests[name]:
					t.Errorf("%s: %q names %s, which does not exist", page, claim, name)
				}
			}
		}
	}
}

// claimRows returns the rows of the tables headed "claim": the claim, and the
// words of the last cell.
func claimRows(page string) map[string][]string {
	rows := map[string][]string{}
	inTable := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 {
			inTable = false
			continue
		}
		claim := strings.TrimSpace(cells[1])
		switch {
		case claim == "claim":
			inTable = true
		case inTable && !strings.HasPrefix(claim, "---"):
			rows[claim] = strings.Fields(cells[len(cells)-2])
		}
	}
	return rows
}

// testFunctions returns the names of all tests.
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, f := range sources(t) {
		if !f.test {
			continue
		}
		source, err := os.ReadFile(filepath.Join("../..", f.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunction.FindAllStringSubmatch(string(source), -1) {
			found[m[1]] = true
		}
	}
	return found
}
