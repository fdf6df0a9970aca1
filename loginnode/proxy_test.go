package loginnode

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func FuzzReadProxy(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nSSH"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(proxySignature + "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x01\x00\x02"))
	f.Add([]byte(proxySignature + "\x20\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		a, err := readProxy(r)
		if err == nil && a.IsValid() && (a.Addr().Is4In6() || a.Addr().Zone() != "") {
			t.Errorf("%q: %v", data, a)
		}
		// What follows the header is the client's.
		if err == nil && bytes.HasPrefix(data, []byte("PROXY ")) {
			rest, _ := io.ReadAll(r)
			_, want, _ := strings.Cut(string(data), "\r\n")
			if string(rest) != want {
				t.Errorf("%q: %q is left", data, rest)
			}
		}
	})
}

// S18: versions below these have known holes.
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
		t.Error("github.com/gliderlabs/ssh is pinned to v0.3.8: its defects were looked for in that version")
	}
	for _, name := range []string{"golang.org/x/crypto", "github.com/gliderlabs/ssh"} {
		if regexp.MustCompile(`(?m)^(replace\s|\t)` + regexp.QuoteMeta(name) + `( v\S+)? =>`).Match(data) {
			t.Errorf("%s is replaced by something else", name)
		}
	}
}
