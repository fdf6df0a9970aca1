package sibling

import (
	"os"
	"path/filepath"
	"testing"
)

// TestPathResolvesLinks starts from a link, as os.Executable reports it on
// systems without /proc.
func TestPathResolvesLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "lib", "berth")
	link := filepath.Join(dir, "bin", "berth")
	for _, d := range []string{filepath.Dir(program), filepath.Dir(link)} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	defer func(before func() (string, error)) { executable = before }(executable)
	for _, self := range []string{program, link} {
		executable = func() (string, error) { return self, nil }
		got, err := Path("berth-local")
		if want := filepath.Join(dir, "lib", "berth-local"); err != nil || got != want {
			t.Errorf("started as %s: %q, %v; want %q", self, got, err, want)
		}
	}
}
