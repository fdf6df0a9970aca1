package oidc

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/oauth2"
)

// The claims of a token come from the provider: for any claims, a name is accepted only
// if the whole pattern matches and the email is verified.
func FuzzClaims(f *testing.F) {
	for _, s := range []string{
		`{"email":"ann@example.org","email_verified":true,"groups":["hpc"]}`,
		`{"email":"ann@example.org","email_verified":"true","groups":"hpc"}`,
		`{"email":["ann@example.org"],"email_verified":true,"groups":[["hpc"],null,1]}`,
		`{"email":"ann@example.org\nroot","email_verified":true,"groups":{"hpc":true}}`,
		`{"email":"","email_verified":true}`, `null`, `[]`, `{"email":null}`,
	} {
		f.Add([]byte(s))
	}
	c := &Client{cfg: Config{
		UsernameClaim: "email", UsernamePattern: regexp.MustCompile(`([a-z0-9]+)@example\.org`),
		GroupsClaim: "groups", Groups: []string{"hpc"},
	}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var claims map[string]any
		if json.Unmarshal(data, &claims) != nil {
			return
		}
		name, err := c.name(claims)
		if err == nil && (name == "" || claims["email"] != name+"@example.org" || claims["email_verified"] != true) {
			t.Errorf("%s: %q", data, name)
		}
		if err != nil && name != "" {
			t.Errorf("%s: %q and %v", data, name, err)
		}
		if _, isList := claims["groups"].([]any); c.member(claims) == nil && !isList {
			t.Errorf("%s: accepted as a member", data)
		}
	})
}

// Texts of the provider are shown in a user's terminal.
func FuzzInvitation(f *testing.F) {
	f.Add("https://login.example.org/device", "WDJB-MJHT", "")
	f.Add("\x1b]52;c;aGk=\a", "\u202eABCD", "\u009b2J")
	f.Fuzz(func(t *testing.T, uri, code, whole string) {
		text := invitation(&oauth2.DeviceAuthResponse{VerificationURI: uri, UserCode: code, VerificationURIComplete: whole})
		if strings.Count(text, "\n") > 3 {
			t.Errorf("the provider's texts add lines: %q", text)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r > unicode.MaxASCII || !unicode.IsPrint(r)) }) {
			t.Errorf("it contains unprintable characters: %q", text)
		}
	})
}
