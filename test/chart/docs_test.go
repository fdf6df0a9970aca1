package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentedValues: the chart accepts the values in the pages for administrators.
func TestDocumentedValues(t *testing.T) {
	pages, err := filepath.Glob("../../docs/admin/*.md")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(data), "```yaml\n")
		for _, b := range blocks[1:] {
			values, _, _ := strings.Cut(b, "```")
			values = strings.ReplaceAll(values, "AAAA...", "AAAAC3NzaC1lZDI1NTE5AAAAI")
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"--values", file}
			if !strings.Contains(values, "users:") {
				args = append(args, alice...)
			}
			if _, output, err := template(t, args...); err != nil {
				t.Errorf("%s: %v: %s\n%s", page, err, output, values)
			}
			tried++
		}
	}
	if tried < 4 {
		t.Errorf("only %d blocks were found", tried)
	}
}
