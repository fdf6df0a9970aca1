package filesource

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestYAML(t *testing.T) {
	path := write(t, "users.yaml", `
users:
- {name: ann, uid: 2001, gid: 3000, groups: [physics], shell: /bin/zsh, sshKeys: [ssh-rsa AAAA]}
- {name: ben, uid: 2002, gid: 3001, disabled: true, groups: [nothing]}
groups:
- {name: users, gid: 3000}
- {name: physics, gid: 3001}
- {name: club, members: [ben]}
`)
	s, err := New(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Entries) != 2 || l.Groups != 3 || len(l.Problems) != 1 || !strings.Contains(l.Problems[0], `no group "nothing"`) {
		t.Fatalf("%+v", l)
	}
	ann, ben := l.Entries[0], l.Entries[1]
	if strings.Join(ann.MemberOf, ",") != "users,physics" || len(ann.Groups) != 2 || ann.Shell != "/bin/zsh" || len(ann.SSHKeys) != 1 {
		t.Errorf("%+v", ann)
	}
	if strings.Join(ben.MemberOf, ",") != "physics,club" || len(ben.Groups) != 1 || !ben.Disabled {
		t.Errorf("%+v", ben)
	}
	before := s.Version()
	if err := os.WriteFile(path, []byte("users: [{name: ann"), 0o600); err != nil { // while it is written
		t.Fatal(err)
	}
	if s.Version() == before {
		t.Error("a change is not noticed")
	}
	if l, err := s.List(t.Context()); err == nil {
		t.Errorf("half a file: %+v", l)
	}
}

func TestPasswd(t *testing.T) {
	passwd := write(t, "passwd", "# users\nann:x:2001:3000:Ann:/home/ann:/bin/bash\n\nbad:x:one:1::/:/bin/sh\n")
	s, err := New(Config{Passwd: passwd, Group: write(t, "group", "users:x:3000:\nphysics:x:3001:ben,ann\n")})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Entries) != 1 || len(l.Problems) != 1 || strings.Join(l.Entries[0].MemberOf, ",") != "users,physics" {
		t.Errorf("%+v", l)
	}
	if err := os.WriteFile(passwd, []byte("ann:x:2001:3000:Ann:/home/ann:/bin/bash\nben:x:20"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := s.List(t.Context()); err == nil {
		t.Errorf("half a file: %+v", l)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {Path: "a", Passwd: "b"}, {Path: "a", Group: "b"}, {Group: "b"}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
	s, err := New(Config{Path: "/nonexistent"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(t.Context()); err == nil {
		t.Error("a file that does not exist is an empty one")
	}
}
