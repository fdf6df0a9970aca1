package loginnode

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// S18: earlier versions have known vulnerabilities.
func TestS18DependencyFloor(t *testing.T) {
	data, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^\tgolang.org/x/crypto v0\.(\d+)\.`).FindSubmatch(data)
	minor := 0
	if m != nil {
		minor, _ = strconv.Atoi(string(m[1]))
	}
	if minor < 56 {
		t.Errorf("golang.org/x/crypto must be at least v0.56.0, and a direct dependency: %q", m)
	}
	if !bytes.Contains(data, []byte("\tgithub.com/gliderlabs/ssh v0.3.8\n")) {
		t.Error("github.com/gliderlabs/ssh is pinned to v0.3.8: its defects are known for that version")
	}
	for _, name := range []string{"golang.org/x/crypto", "github.com/gliderlabs/ssh"} {
		if regexp.MustCompile(`(?m)^(replace\s|\t)` + regexp.QuoteMeta(name) + `( v\S+)? =>`).Match(data) {
			t.Errorf("%s is replaced by something else", name)
		}
	}
}
