package archtest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// onlyTests are packages that no released program imports.
var onlyTests = []string{"test", "internal/acct/accttest"}

// TestNoTestSwitches checks that no released program reads environment variables that are
// for tests. An image of a user could set them, and for example replace a job's token.
func TestNoTestSwitches(t *testing.T) {
	for _, f := range sources(t) {
		if f.test || withinAny(f.pkg, onlyTests) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("../..", f.name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("BERTH_"+"TEST_")) && !bytes.HasPrefix(text, []byte("//go:build berthtest\n")) {
			t.Errorf("%s reads a variable for tests; put it into a file with the build tag berthtest", f.name)
		}
	}
}
