package scimsource

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const posix = "urn:example:posix:User"

// service is a SCIM service with these users and groups.
type service struct {
	users, groups []any
	short         bool // it returns less than it says
	last          string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.last = r.Header.Get("Authorization"); s.last != "Bearer token" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	all := s.users
	if r.URL.Path == "/v2/Groups" {
		all = s.groups
	}
	start, _ := strconv.Atoi(r.FormValue("startIndex"))
	count, _ := strconv.Atoi(r.FormValue("count"))
	page := all[min(start-1, len(all)):min(start-1+count, len(all))]
	if s.short && start > 1 {
		page = nil
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"totalResults": len(all), "Resources": page})
}

func user(i int, more map[string]any) map[string]any {
	u := map[string]any{
		"id": fmt.Sprint("id", i), "userName": fmt.Sprint("u", i), "active": true,
		posix: map[string]any{"uidNumber": 2000 + i, "gidNumber": "3000", "sshKeys": []any{"ssh-rsa A", map[string]any{"value": "ssh-rsa B"}}},
	}
	for k, v := range more {
		u[k] = v
	}
	return u
}

func start(t *testing.T, s *service) Config {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, data := range map[string][]byte{"ca": ca, "token": []byte("token\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Config{
		URL: server.URL + "/v2/", CAFile: filepath.Join(dir, "ca"), TokenFile: filepath.Join(dir, "token"),
		UID: posix + ":uidNumber", GID: posix + ":gidNumber", Keys: posix + ":sshKeys", GroupGID: "gid", PageSize: 2,
	}
}

func TestUsersAndGroups(t *testing.T) {
	s := &service{}
	for i := range 5 {
		s.users = append(s.users, user(i, nil))
	}
	s.users = append(s.users, user(5, map[string]any{"active": false}), user(6, map[string]any{posix: map[string]any{"uidNumber": "x"}}))
	group := func(name string, gid int, members ...string) map[string]any {
		list := []any{}
		for _, m := range members {
			list = append(list, map[string]any{"value": m})
		}
		return map[string]any{"displayName": name, "gid": gid, "members": list}
	}
	s.groups = []any{group("lab", 3001, "id0", "id5"), group("club", 0, "id0"), group("twice", 3002, "id0"), group("twice", 3003, "id1")}
	cfg := start(t, s)
	source, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := source.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Entries) != 6 || l.Groups != 4 || len(l.Problems) != 3 {
		t.Fatalf("%+v", l)
	}
	first := l.Entries[0]
	if first.Name != "u0" || first.UID != 2000 || first.GID != 3000 || first.Disabled || len(first.Groups) != 1 ||
		!slices.Equal(first.MemberOf, []string{"lab", "club"}) || !slices.Equal(first.SSHKeys, []string{"ssh-rsa A", "ssh-rsa B"}) {
		t.Errorf("%+v", first)
	}
	if !l.Entries[5].Disabled {
		t.Errorf("%+v", l.Entries[5])
	}
	s.users[6] = user(0, nil)
	if l, err := source.List(t.Context()); err == nil || !strings.Contains(err.Error(), `"id0" twice`) {
		t.Errorf("a user twice: %+v, %v", l, err)
	}
	s.short = true
	if l, err := source.List(t.Context()); err == nil || !strings.Contains(err.Error(), "returned 2 of 7") {
		t.Errorf("a part of the users: %+v, %v", l, err)
	}
	if err := os.WriteFile(cfg.TokenFile, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := source.List(t.Context()); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong token: %+v, %v", l, err)
	}
}

func TestConfig(t *testing.T) {
	good := Config{URL: "https://x/v2", TokenFile: "t", UID: "u", GID: "g"}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"https://":  func(c *Config) { c.URL = "http://x" },
		"tokenFile": func(c *Config) { c.TokenFile = "" },
		"uid":       func(c *Config) { c.UID = "" },
		"pageSize":  func(c *Config) { c.PageSize = -1 },
		"caFile":    func(c *Config) { c.CAFile = "/nonexistent" },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
