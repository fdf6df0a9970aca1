package usersource

import (
	"slices"
	"strings"
	"testing"
)

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"ann": true, "a": true, "a1": true, "first.last": true, "x-y": true, strings.Repeat("a", 32): true,
		"": false, "Ann": false, "1a": false, "-a": false, "a-": false, "a.": false, ".a": false, "a..b": false,
		"a_b": false, "a b": false, "a:b": false, "a/b": false, "a\n": false, "ä": false, "a$": false,
		strings.Repeat("a", 33): false, "system:masters": false, "*": false, "a.-b": false,
	} {
		if ValidName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
	for name, want := range map[string]bool{
		"physics": true, "G_1": true, "Domain Users": false, "a:b": false, "a\nroot:x:0:": false, "": false,
	} {
		if ValidGroupName(name) != want {
			t.Errorf("group %q: %v", name, !want)
		}
	}
}

func TestKeys(t *testing.T) {
	lines, dropped := Keys([]string{
		" ssh-ed25519 AAAA a\r\n", "# comment\n\nssh-rsa BBBB\nssh-rsa CCCC", "ssh\x1b[2J", "\xff", strings.Repeat("x", maxKeyBytes+1),
	})
	if !slices.Equal(lines, []string{"ssh-ed25519 AAAA a", "ssh-rsa BBBB", "ssh-rsa CCCC"}) || dropped != 3 {
		t.Errorf("%q, %d dropped", lines, dropped)
	}
	if lines, dropped = Keys([]string{strings.Repeat("k\n", maxKeys+2)}); len(lines) != maxKeys || dropped != 2 {
		t.Errorf("%d lines, %d dropped", len(lines), dropped)
	}
}
