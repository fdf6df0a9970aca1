package deb

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGoreleaserAcceptsTheFile checks goreleaser.yaml with goreleaser's own parser, and
// files with mistakes, which it must report.
func TestGoreleaserAcceptsTheFile(t *testing.T) {
	data, err := os.ReadFile("../../goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "release")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "../release"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct{ old, mistake, want string }{
		{"", "", ""},
		{"checksum:", "checksums:", "field checksums not found"},
		{"version: 2", "version: 1", "version"},
		{"artifacts: checksum", "artifacts: sums", `.signs[0].artifacts is "sums"`},
		{"    ids: [berth, berth-tools, berth-tui]\n    name_template", "    builds: [berth, berth-tools, berth-tui]\n    name_template", ".archives[0].builds is deprecated"},
	} {
		file := filepath.Join(t.TempDir(), "goreleaser.yaml")
		text := strings.Replace(string(data), c.old, c.mistake, 1)
		if c.mistake != c.old && text == string(data) {
			t.Errorf("%q is not in the file", c.old)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), program, "check", file).CombinedOutput()
		if (err == nil) != (c.want == "") || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v: %s", c.mistake, err, out)
		}
	}
}
