package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoTestSwitches: no program that is shipped reads variables that are for
// tests. An image of a user's could set them, and a job's token be exchanged.
func TestNoTestSwitches(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		rel := filepath.ToSlash(strings.TrimPrefix(path, "../../"))
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || rel == "test" || rel == "internal/acct/accttest"):
			return filepath.SkipDir // what tests are made of
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte("BERTH_"+"TEST_")) && !bytes.HasPrefix(text, []byte("//go:build berthtest\n")) {
			t.Errorf("%s reads a variable for tests; put it into a file with the build tag berthtest", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
