package proxyproto

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func FuzzRead(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nSSH"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(signature + "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x00\x01\x00\x02"))
	f.Add([]byte(signature + "\x20\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		a, err := Read(r)
		if err == nil && a.IsValid() && (a.Addr().Is4In6() || a.Addr().Zone() != "") {
			t.Errorf("%q: %v", data, a)
		}
		// The bytes after the header belong to the client.
		if err == nil && bytes.HasPrefix(data, []byte("PROXY ")) {
			rest, _ := io.ReadAll(r)
			_, want, _ := strings.Cut(string(data), "\r\n")
			if string(rest) != want {
				t.Errorf("%q: %q is left to read", data, rest)
			}
		}
	})
}
