package loginnode

import (
	"bytes"
	"io"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestGate(t *testing.T) {
	now := time.Now()
	p := Penalties{MaxSources: 100, Exempt: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	p.complete()
	g := newGate(Startups{Begin: 2, Rate: 50, Full: 4, PerSource: 3}, p, func() time.Time { return now })
	dice := 0
	g.dice = func() int { return dice }
	a := netip.MustParseAddr("192.0.2.1")
	want := func(addr netip.Addr, reason string) {
		t.Helper()
		if got := g.enter(addr); got != reason {
			t.Errorf("got %q, want %q", got, reason)
		}
	}
	want(a, "")
	want(a, "")
	want(a, "startups") // 2 of 4: half of them, and the dice says so
	dice = 99
	want(a, "")
	want(a, "startups of one source")
	b := netip.MustParseAddr("192.0.2.2")
	want(b, "")
	want(b, "startups")
	for range 3 {
		g.leave(a)
	}
	g.leave(b)
	if g.early != 0 || len(g.sources) != 0 {
		t.Errorf("left: %d, %v", g.early, g.sources)
	}
	g.punish(a, p.Min-1)
	want(a, "")
	g.leave(a)
	g.punish(a, p.Max)
	want(a, "penalty")
	want(netip.MustParseAddr("192.0.2.2"), "")
	now = now.Add(p.Max)
	want(a, "")
	exempt := netip.MustParseAddr("10.1.1.1")
	g.punish(exempt, time.Hour)
	want(exempt, "")
	for i := range 1000 { // an attacker with many addresses gets no more memory than this
		g.punish(netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}), time.Minute)
	}
	if len(g.sources) > p.MaxSources {
		t.Errorf("%d sources are remembered", len(g.sources))
	}
	one, two := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	g.punish(one, time.Hour)
	want(two, "penalty") // a host has a whole /64
}

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
