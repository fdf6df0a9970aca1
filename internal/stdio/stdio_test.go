package stdio

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestUmask(t *testing.T) {
	for text, want := range map[string]int{"Name:\tx\nUmask:\t0027\n": 0o27, "Name:\tx\n": -1, "Umask:\tx\n": -1} {
		p := &Process{ReadFile: func(string) ([]byte, error) { return []byte(text), nil }}
		if got := p.Umask(); got != want {
			t.Errorf("%q: %#o, want %#o", text, got, want)
		}
	}
	p := &Process{ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }}
	if got := p.Umask(); got != -1 {
		t.Errorf("without /proc: %#o", got)
	}
}

func TestSession(t *testing.T) {
	for text, want := range map[string]int32{"7 (a) b) S 1 7 42 34816 7\n": 42, "7 (x) S 1\n": 0, "": 0, "7 (x) S 1 7 y 0": 0} {
		p := &Process{ReadFile: func(string) ([]byte, error) { return []byte(text), nil }}
		if got := p.Session(); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestRepeat(t *testing.T) {
	var out bytes.Buffer
	s := Streams{Out: &out}
	errThird := errors.New("the third call")
	n := 0
	list := func() error {
		if n++; n == 3 {
			return errThird
		}
		return s.Print("list\n")
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := s.Repeat(t.Context(), time.Hour, list)
		if took := time.Since(began); !errors.Is(err, errThird) || took != 2*time.Hour ||
			out.String() != "list\n\nlist\n\n" {
			t.Errorf("%v after %v, %q", err, took, out.String())
		}
	})
	if err := s.Repeat(t.Context(), 0, func() error { n++; return nil }); err != nil || n != 4 {
		t.Errorf("once: %v after %d", err, n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := s.Repeat(ctx, time.Hour, func() error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestGroup(t *testing.T) {
	p := &Process{
		ReadFile: func(string) ([]byte, error) { return []byte("root:x:0:\n# no group\nlab:x:2000:alice,bob\n"), nil },
	}
	for _, text := range []string{"lab", "2000"} {
		if name, gid, ok := p.Group(text); name != "lab" || gid != 2000 || !ok {
			t.Errorf("%s: %s %d %v", text, name, gid, ok)
		}
	}
	if name, _, ok := p.Group("wheel"); ok {
		t.Error(name)
	}
}

// TestGroupOfNameService: a group that is not in /etc/group is looked up in the host's name
// service.
func TestGroupOfNameService(t *testing.T) {
	p := &Process{ReadFile: func(string) ([]byte, error) { return []byte("root:x:0:\n"), nil },
		Getent: func(database, key string) (string, bool) {
			found := database == "group" && (key == "physics" || key == "70000")
			return map[bool]string{true: "physics:*:70000:anna"}[found], found
		}}
	for _, text := range []string{"physics", "70000"} {
		if name, gid, ok := p.Group(text); name != "physics" || gid != 70000 || !ok {
			t.Errorf("%s: %s %d %v", text, name, gid, ok)
		}
	}
	for _, text := range []string{"biology", "", "--help"} {
		if name, _, ok := p.Group(text); ok {
			t.Errorf("%q is %s", text, name)
		}
	}
}

// TestUnknown: a name or number that the host's name service has is known.
func TestUnknown(t *testing.T) {
	names := []string{"anna", "nosuch", "70000", "", "-1"}
	p := &Process{Getent: func(database, key string) (string, bool) {
		return "", database == "passwd" && (key == "anna" || key == "70000" || key == "" || key == "-1")
	}}
	if got := p.Unknown("passwd", names); !slices.Equal(got, []string{"nosuch", "", "-1"}) {
		t.Errorf("%q", got)
	}
	if got := (&Process{}).Unknown("passwd", names); !slices.Equal(got, names) {
		t.Errorf("%q", got)
	}
}

func TestGetent(t *testing.T) {
	if _, err := exec.LookPath("getent"); err != nil {
		t.Skip("needs getent")
	}
	if line, ok := getent("group", "0"); !ok || !strings.HasPrefix(line, "root:") {
		t.Errorf("%q %v", line, ok)
	}
	if line, ok := getent("group", "no-such-group-here"); ok {
		t.Error(line)
	}
}
