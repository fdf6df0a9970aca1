package session

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// For any command and environment that a client requests: a key that is bound to a
// command runs that one, and no variable is set that is neither on the list nor the
// server's own.
func FuzzSpec(f *testing.F) {
	f.Add("id", "LC_ALL", "C", "xterm", true, "exec")
	f.Add("a\x00b", "LD_PRELOAD", "x", "a\nLD_PRELOAD=x", false, "exec")
	f.Add("", "LC_\x00", "\xff", "", true, "shell")
	f.Fuzz(func(t *testing.T, command, name, value, term string, forced bool, kind string) {
		u := &auth.User{Name: "ann", UID: os.Geteuid(), Home: "/home/ann", Shell: "/bin/bash"}
		l := &auth.Login{User: u, Options: auth.Options{HasCommand: forced, Command: "only this", Environment: []string{"EVIL=1"}}}
		s := &Session{cfg: &Config{Path: "/bin"}, Conn: &Conn{Login: l, From: netip.MustParseAddrPort("192.0.2.1:1"), To: netip.MustParseAddrPort("192.0.2.2:2")}}
		s.request(&ssh.Request{Type: "env", Payload: ssh.Marshal(struct{ Name, Value string }{name, value})})
		s.Kind, s.Command, s.term, s.tty = kind, command, term, &terminal{name: "/dev/pts/0"}
		if forced {
			s.Forced = l.Options.Command
		}
		spec, err := s.spec()
		if err != nil {
			t.Fatal(err)
		}
		want := command
		if forced {
			want = "only this"
		}
		if spec.Command != want || spec.UID != u.UID || forced && (spec.SFTP || spec.Message) {
			t.Errorf("%+v", spec)
		}
		seen := map[string]bool{}
		for _, e := range spec.Env {
			n, _, ok := strings.Cut(e, "=")
			if !ok || seen[n] || n == "EVIL" || n == "LD_PRELOAD" {
				t.Errorf("%q in %q", e, spec.Env)
			}
			seen[n] = true
			if n == name && !acceptable(AcceptEnv, name, value) && strings.Contains(e, "="+value) && value != "" &&
				!strings.Contains(" USER LOGNAME HOME PATH SHELL MAIL TZ SSH_CLIENT SSH_CONNECTION SSH_TTY TERM SSH_ORIGINAL_COMMAND ", " "+n+" ") {
				t.Errorf("the client has set %q", e)
			}
		}
	})
}
