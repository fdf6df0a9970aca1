package auth

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/exectest"
)

func newKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseLine(t *testing.T) {
	key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(newKey(t).PublicKey())))
	l, err := ParseLine([]byte(`command="echo \"a, b\"",no-pty,from="10.0.0.0/8,!10.1.*",environment="A=b",permitopen="h:1",permitopen="[::1]:2",principals="x,y",expiry-time="20300102Z" ` + key + ` a comment`))
	if err != nil {
		t.Fatal(err)
	}
	o := l.Options
	if o.Command != `echo "a, b"` || !o.HasCommand || !o.NoPTY || o.From != "10.0.0.0/8,!10.1.*" || len(o.PermitOpen) != 2 || len(o.Principals) != 2 ||
		o.Environment[0] != "A=b" || !o.Expiry.Equal(time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)) || l.Comment != "a comment" {
		t.Errorf("%+v", l)
	}
	o = mustLine(t, `restrict,pty,agent-forwarding `+key).Options
	if o.NoPTY || o.NoAgent || !o.NoPortForwarding || !o.NoUserRC {
		t.Errorf("%+v", o)
	}
	for _, bad := range []string{"x", `command=x ` + key, `no-pty="x" ` + key, `command ` + key, `unknown ` + key, `verify-required ` + key,
		`environment="x" ` + key, `expiry-time="tomorrow" ` + key, strings.Repeat(" #", 1) + "x", strings.Repeat("a", maxLine+1)} {
		if l, err := ParseLine([]byte(bad)); err == nil && l != nil {
			t.Errorf("%.60q: %+v", bad, l)
		}
	}
}

func mustLine(t *testing.T, text string) *Line {
	t.Helper()
	l, err := ParseLine([]byte(text))
	if err != nil || l == nil {
		t.Fatalf("%q: %v", text, err)
	}
	return l
}

func FuzzParseLine(f *testing.F) {
	key := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(newKey(f).PublicKey())))
	for _, s := range []string{key, `command="x",from="*" ` + key, `"` + key, `a="\"" ` + key, "# c", `expiry-time="20200101" ` + key} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := ParseLine(data)
		if err != nil || l == nil {
			return
		}
		if _, isCert := l.Key.(*ssh.Certificate); isCert || bytes.ContainsRune(bytes.TrimSpace(data), '\n') && len(bytes.Split(bytes.TrimSpace(data), []byte("\n"))) > 2 {
			t.Errorf("%q: accepted", data)
		}
	})
}

func TestMatchFrom(t *testing.T) {
	for _, c := range []struct {
		patterns, addr string
		want           bool
	}{
		{"10.0.0.0/8", "10.1.2.3", true}, {"10.0.0.0/8", "11.1.2.3", false}, {"10.0.0.0/8", "::ffff:10.1.2.3", true},
		{"10.*,!10.1.*", "10.2.0.1", true}, {"10.*,!10.1.*", "10.1.0.1", false}, {"!10.1.*", "10.2.0.1", false},
		{"2001:db8::/32", "2001:db8::1", true}, {"*", "192.0.2.1", true}, {"", "192.0.2.1", false}, {"host.example", "192.0.2.1", false},
		{"[1]92.0.2.1", "192.0.2.1", false}, {"192.0.2.?", "192.0.2.7", true}, {"10.0.0.0/8", "", false},
	} {
		addr, _ := netip.ParseAddr(c.addr)
		if got := matchFrom(c.patterns, addr); got != c.want {
			t.Errorf("%q, %s: %v", c.patterns, c.addr, got)
		}
	}
}

// A list created by OpenSSH's own tool.
func TestRevokedKeys(t *testing.T) {
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs ssh-keygen")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command("ssh-keygen", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", args, err, out)
		}
	}
	for _, name := range []string{"ca", "a", "b", "c"} {
		run("-q", "-t", "ed25519", "-N", "", "-f", name)
	}
	read := func(name string) ssh.PublicKey {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		k, _, _, _, err := ssh.ParseAuthorizedKey(data)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	cert := func(name, serial, id string) ssh.PublicKey {
		run("-q", "-s", "ca", "-I", id, "-n", "ann", "-z", serial, name+".pub")
		return read(name + "-cert.pub")
	}
	spec := "serial: 5\nserial: 10-20\nserial: 1000\nserial: 1002\nserial: 1003\nserial: 1040\nid: bad one\n" +
		"sha256: " + string(ssh.MarshalAuthorizedKey(read("b.pub")))
	if err := os.WriteFile(filepath.Join(dir, "spec"), []byte(spec), 0o600); err != nil {
		t.Fatal(err)
	}
	run("-q", "-k", "-f", "krl", "-s", "ca.pub", "spec", "a.pub")
	data, err := os.ReadFile(filepath.Join(dir, "krl"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRevoked(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "b": true, "c": false, "ca": false} {
		if r.Contains(read(name+".pub")) != want {
			t.Errorf("%s: revoked is not %v", name, want)
		}
	}
	for serial, want := range map[string]bool{"4": false, "5": true, "10": true, "15": true, "20": true, "21": false, "1000": true, "1001": false, "1002": true, "1003": true, "1039": false, "1040": true, "0": false} {
		if r.Contains(cert("c", serial, "fine")) != want {
			t.Errorf("serial %s: revoked is not %v", serial, want)
		}
	}
	if !r.Contains(cert("c", "1", "bad one")) || !r.Contains(cert("a", "1", "fine")) {
		t.Error("by id, or by its key: not revoked")
	}
	for n := range len(data) { // cut anywhere, it is an error or a shorter list, never a panic
		_, _ = ParseRevoked(data[:n])
	}
}

func FuzzParseRevoked(f *testing.F) {
	f.Add([]byte(krlMagic + "\x00\x00\x00\x01" + strings.Repeat("\x00", 32)))
	f.Add([]byte(krlMagic + "\x00\x00\x00\x01" + strings.Repeat("\x00", 32) + "\x01\x00\x00\x00\x1a\x00\x00\x00\x00\x00\x00\x00\x00\x22\x00\x00\x00\x0d\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x01\x80"))
	f.Add(ssh.MarshalAuthorizedKey(newKey(f).PublicKey()))
	key := newKey(f).PublicKey()
	f.Fuzz(func(_ *testing.T, data []byte) {
		if r, err := ParseRevoked(data); err == nil {
			r.Contains(key)
			r.Contains(&ssh.Certificate{Key: key, SignatureKey: key, Serial: 7})
		}
	})
}

func FuzzParsePasswd(f *testing.F) {
	f.Add("ann:x:1000:1000:Ann:/home/ann:/bin/bash")
	f.Add("::::::")
	f.Add("a:x:4294967295:0:::")
	f.Fuzz(func(t *testing.T, line string) {
		u, err := ParsePasswd(line)
		if err == nil && (!ValidName(u.Name) || u.UID < 0 || u.UID > maxID || u.GID < 0 || u.GID > maxID) {
			t.Errorf("%q: %+v", line, u)
		}
	})
}

func TestGetent(t *testing.T) {
	if _, err := exec.LookPath("getent"); err != nil {
		t.Skip("needs getent")
	}
	u, err := Getent{}.Lookup(t.Context(), "root")
	if err != nil || u.UID != 0 || u.Home != "/root" {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := (Getent{}).Lookup(t.Context(), "no-such-user-here"); !errors.Is(err, ErrUnknownUser) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	script := filepath.Join(t.TempDir(), "hangs")
	exectest.Write(t, script, "#!/bin/sh\nsleep 5 & wait\n") // its child keeps the output open
	if _, err := (Getent{Program: script}).Lookup(ctx, "ann"); err == nil || errors.Is(err, ErrUnknownUser) {
		t.Errorf("a name service that hangs: %v", err)
	}
}

func TestCommandsMustNotRunAsRoot(t *testing.T) {
	c := Config{Users: First{}, KeysCommand: []string{"/bin/true"}}
	if err := c.Check(); err == nil {
		t.Error("a configuration with a command that runs as root is accepted")
	}
}

func TestKeysCommand(t *testing.T) {
	key := newKey(t)
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
	script := filepath.Join(t.TempDir(), "keys")
	exectest.Write(t, script, "#!/bin/sh\n[ \"$1 $2\" = \"ann %\" ] && echo 'restrict "+line+"'\n")
	me := &User{Name: "ann", UID: os.Geteuid(), GID: os.Getegid(), Home: t.TempDir(), Shell: "/bin/sh"}
	c := Config{
		Users:       DirectoryFunc(func(context.Context, string) (*User, error) { u := *me; return &u, nil }),
		KeysCommand: []string{script, "%u", "%%"}, KeysCommandUser: me.Rights(), PermitRoot: true,
	}
	p, err := c.PublicKey(t.Context(), Attempt{User: "ann", Key: key.PublicKey(), Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := FromPermissions(p); err != nil || !l.Options.NoPTY {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := c.PublicKey(t.Context(), Attempt{User: "ann", Key: newKey(t).PublicKey(), Now: time.Now()}); err == nil {
		t.Error("another key: the login succeeded")
	}
	if _, err := FromPermissions(nil); err == nil {
		t.Error("no permissions give an identity")
	}
}
