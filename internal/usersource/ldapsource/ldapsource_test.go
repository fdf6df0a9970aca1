package ldapsource_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/usersource"
	"github.com/berth-hpc/berth/internal/usersource/ldapsource"
	"github.com/berth-hpc/berth/internal/usersource/ldaptest"
)

func config(s *ldaptest.Server) ldapsource.Config {
	return ldapsource.Config{
		URLs: []string{s.URL}, BindDN: ldaptest.Reader, BindPasswordFile: s.PasswordFile,
		Users: ldapsource.Users{Base: ldaptest.People}, Groups: ldapsource.Groups{Base: ldaptest.Groups},
	}
}

func newSource(t *testing.T, c ldapsource.Config) *ldapsource.Source {
	t.Helper()
	s, err := ldapsource.New(c, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func list(t *testing.T, s *ldapsource.Source) *usersource.Listing {
	t.Helper()
	l, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func find(t *testing.T, l *usersource.Listing, name string) *usersource.Entry {
	t.Helper()
	for i := range l.Entries {
		if l.Entries[i].Name == name {
			return &l.Entries[i]
		}
	}
	t.Fatalf("no user %q in %+v", name, l.Entries)
	return nil
}

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJd0XHzWy2kYjqsyRbUxTnyOWVb2qU0YbCo3Yk5rq8Zn ann@home"

func TestUsersAndGroups(t *testing.T) {
	server := ldaptest.Start(t)
	server.AddUser("ann", 2001, 3000, "sshPublicKey: "+key, "sshPublicKey: # an empty one")
	server.AddUser("ben", 2002, 3000, "shadowExpire: 10")
	server.AddUser("cy", 2003, 9999, "employeeType: left")
	server.AddGroup("users", 3000)
	server.AddGroup("physics", 3001, "ann", "cy")
	server.AddGroup("chem", 3002, "ben", "somebody")
	c := config(server)
	c.Users.Disabled = "(employeeType=left)"
	l := list(t, newSource(t, c))
	if len(l.Entries) != 3 || l.Groups != 3 || len(l.Problems) != 0 {
		t.Fatalf("%+v", l)
	}
	want := usersource.Entry{
		Name: "ann", UID: 2001, GID: 3000, Home: "/home/ann", Shell: "/bin/bash", SSHKeys: []string{key},
		Groups: []v1alpha1.Group{{Name: "users", GID: 3000}, {Name: "physics", GID: 3001}}, MemberOf: []string{"users", "physics"},
	}
	if got := find(t, l, "ann"); !reflect.DeepEqual(*got, want) {
		t.Errorf("%+v\nwant %+v", *got, want)
	}
	for name, disabled := range map[string]bool{"ann": false, "ben": true, "cy": true} {
		if find(t, l, name).Disabled != disabled {
			t.Errorf("%s is disabled: %v", name, !disabled)
		}
	}
}

// TestChanges: each listing has what the directory has now.
func TestChanges(t *testing.T) {
	server := ldaptest.Start(t)
	server.AddUser("ann", 2001, 3000)
	server.AddGroup("physics", 3001, "ann")
	s := newSource(t, config(server))
	if got := find(t, list(t, s), "ann"); !slices.Equal(got.MemberOf, []string{"physics"}) {
		t.Errorf("groups %q", got.MemberOf)
	}
	server.Set(ldaptest.GroupDN("physics"), "memberUid")
	server.Set(ldaptest.UserDN("ann"), "loginShell", "/bin/zsh")
	server.AddUser("ben", 2002, 3000)
	l := list(t, s)
	if got := find(t, l, "ann"); len(got.MemberOf) != 0 || got.Shell != "/bin/zsh" || len(l.Entries) != 2 {
		t.Errorf("%+v", l)
	}
	server.Delete(ldaptest.UserDN("ann"))
	if l = list(t, s); len(l.Entries) != 1 {
		t.Errorf("%+v", l)
	}
}

// TestMembersByDN: groups with DNs as members, nested, and in a cycle.
func TestMembersByDN(t *testing.T) {
	server := ldaptest.Start(t)
	server.AddUser("ann", 2001, 3000)
	server.AddUser("ben, the 2nd", 2002, 3000)
	group := func(name string, members ...string) {
		lines := []string{"dn: " + ldaptest.GroupDN(name), "objectClass: groupOfNames", "cn: " + name}
		for _, m := range members {
			lines = append(lines, "member: "+m)
		}
		server.Add(lines...)
	}
	group("inner", ldaptest.UserDN("ben, the 2nd"), ldaptest.GroupDN("outer"))
	group("outer", "UID=Ann, OU=people, DC=example,DC=org", ldaptest.GroupDN("inner"))
	group("other", ldaptest.GroupDN("nobody"))
	c := config(server)
	c.Schema, c.Groups.Filter = "rfc2307bis", "(objectClass=groupOfNames)"
	l := list(t, newSource(t, c))
	for _, name := range []string{"ann", "ben, the 2nd"} {
		got := find(t, l, name)
		if slices.Sort(got.MemberOf); !slices.Equal(got.MemberOf, []string{"inner", "outer"}) || len(got.Groups) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestManyUsers: the number of users may be greater than a page, and than what the server
// returns for one request.
func TestManyUsers(t *testing.T) {
	server := ldaptest.Start(t)
	const n = 5000
	server.AddUsers(n, 10000, 3000)
	c := config(server)
	began := time.Now()
	l := list(t, newSource(t, c))
	t.Logf("%d users in %v", len(l.Entries), time.Since(began).Round(time.Millisecond))
	if len(l.Entries) != n {
		t.Errorf("%d users", len(l.Entries))
	}
	seen := map[int64]bool{}
	for _, e := range l.Entries {
		seen[e.UID] = true
	}
	if len(seen) != n {
		t.Errorf("%d uids", len(seen))
	}
	// A server that returns only some of them has not answered.
	c.BindDN = ldaptest.Small
	if l, err := newSource(t, c).List(t.Context()); !ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded) {
		t.Errorf("a part of the users: %v, %v", l, err)
	}
}

func TestServerIsAway(t *testing.T) {
	server := ldaptest.Start(t)
	server.AddUser("ann", 2001, 3000)
	c := config(server)
	c.URLs = []string{"ldap://127.0.0.1:1", server.URL} // the first never answers
	s := newSource(t, c)
	list(t, s)
	server.Stop()
	if l, err := s.List(t.Context()); err == nil || l != nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a server that is away: %v, %v", l, err)
	}
	server.Run()
	if l := list(t, s); len(l.Entries) != 1 {
		t.Errorf("%+v", l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.List(ctx); err == nil {
		t.Error("a listing after its context has ended")
	}
}

func TestBind(t *testing.T) {
	server := ldaptest.Start(t)
	server.AddUser("ann", 2001, 3000)
	file := filepath.Join(t.TempDir(), "password")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := config(server)
	c.BindPasswordFile = file
	s := newSource(t, c)
	for text, want := range map[string]string{"": "is empty", "\n": "is empty", "wrong": "Invalid Credentials"} {
		write(text)
		if _, err := s.List(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("password %q: %v", text, err)
		}
	}
	write(ldaptest.Password) // without a restart
	list(t, s)
	// Anonymous clients see nothing here. That is an answer, not an error of the server: what
	// follows from it is for the planner to decide.
	c.BindDN, c.BindPasswordFile = "", ""
	if l, err := newSource(t, c).List(t.Context()); err == nil && len(l.Entries) != 0 {
		t.Errorf("anonymous: %+v", l)
	}
}

func TestTLS(t *testing.T) {
	server := ldaptest.Start(t)
	server.AddUser("ann", 2001, 3000)
	for name, change := range map[string]func(*ldapsource.Config){
		"ldaps":    func(c *ldapsource.Config) { c.URLs = []string{server.TLSURL} },
		"StartTLS": func(c *ldapsource.Config) { c.StartTLS = true },
	} {
		c := config(server)
		change(&c)
		if _, err := newSource(t, c).List(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: an unknown authority: %v", name, err)
		}
		c.CAFile = server.CAFile
		list(t, newSource(t, c))
	}
}

func TestConfig(t *testing.T) {
	good := ldapsource.Config{URLs: []string{"ldaps://ldap.example.org"}, Users: ldapsource.Users{Base: "o=x"}}
	for want, change := range map[string]func(*ldapsource.Config){
		"no server is named":  func(c *ldapsource.Config) { c.URLs = nil },
		"names no host":       func(c *ldapsource.Config) { c.URLs = []string{"ldaps:///x"} },
		"begins with none of": func(c *ldapsource.Config) { c.URLs = []string{"http://x"} },
		"is not encrypted":    func(c *ldapsource.Config) { c.URLs = []string{"ldap://x"} },
		"users.base":          func(c *ldapsource.Config) { c.Users.Base = "" },
		"together":            func(c *ldapsource.Config) { c.BindDN = "cn=x" },
		"users.filter":        func(c *ldapsource.Config) { c.Users.Filter = "(uid=" },
		"users.disabled":      func(c *ldapsource.Config) { c.Users.Disabled = "x)" },
		"caFile":              func(c *ldapsource.Config) { c.CAFile = "/nonexistent" },
		"schema":              func(c *ldapsource.Config) { c.Schema = "nis" },
		"pageSize":            func(c *ldapsource.Config) { c.PageSize = -1 },
	} {
		c := good
		change(&c)
		if _, err := ldapsource.New(c, time.Now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	for _, c := range []ldapsource.Config{
		good, {URLs: []string{"ldap://x"}, StartTLS: true, Users: good.Users},
		{URLs: []string{"ldap://x"}, AllowPlaintext: true, Users: good.Users},
	} {
		newSource(t, c)
	}
}

// TestVerify: a password is the user's only if the server lets exactly that user bind with it.
func TestVerify(t *testing.T) {
	server := ldaptest.Start(t)
	server.AddUser("ann", 2001, 3000, "userPassword: secret of ann")
	server.AddUser("ben", 2002, 3000, "userPassword: secret of ben", "shadowExpire: 1")
	server.AddUser("nothing", 2003, 3000)
	server.AddUser("left", 2004, 3000, "userPassword: secret of left", "employeeType: left")
	cfg := config(server)
	cfg.Users.Disabled = "(employeeType=left)"
	s := newSource(t, cfg)
	if err := s.Verify(t.Context(), "ann", "secret of ann"); err != nil {
		t.Error(err)
	}
	for _, c := range [][2]string{
		{"ann", ""}, {"ann", "wrong"}, {"ann", "secret of ben"}, {"*", "secret of ann"}, {"an*", "secret of ann"}, {"ANN", "secret of ann"},
		{"ann)(uid=*", "secret of ann"}, {"nobody", "secret"}, {"ben", "secret of ben"}, {"nothing", "x"}, {"left", "secret of left"}, {"", "secret of ann"},
	} {
		if s.Verify(t.Context(), c[0], c[1]) == nil {
			t.Errorf("%q logs in with %q", c[0], c[1])
		}
	}
	server.Stop()
	if err := s.Verify(t.Context(), "ann", "secret of ann"); err == nil || errors.Is(err, ldapsource.ErrWrongPassword) {
		t.Errorf("a directory that is away: %v", err)
	}
}
