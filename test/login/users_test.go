package login

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/kube"
)

// users: User objects that cannot be used are refused, each with a reason in the login
// node's log, and other users are not affected.
func (s *site) users(t *testing.T) {
	defer func(was *testing.T) { s.t = was }(s.t)
	s.t = t
	public, err := os.ReadFile(filepath.Join(s.dir, "s", "login", "id_ed25519.pub"))
	must(t, err)
	spec := func(change map[string]any) map[string]any {
		out := map[string]any{"uid": 64001, "gid": 64001, "namespace": "default", "home": "/tmp", "shell": "/bin/sh", "sshKeys": []string{string(public)}}
		for k, v := range change {
			out[k] = v
		}
		return out
	}
	all := map[string]struct {
		spec   map[string]any
		reason string
	}{
		"lnt-twin":     {spec(nil), "have the same uid 64001"},
		"lnt-sibling":  {spec(nil), "have the same uid 64001"},
		"lnt-relative": {spec(map[string]any{"uid": 64003, "home": "tmp"}), "is not an absolute path"},
		"lnt-huge":     {spec(map[string]any{"uid": 1 << 40}), "out of range"},
	}
	const path = "/apis/berth.hpc/v1alpha1/users"
	for name, one := range all {
		object := map[string]any{"apiVersion": "berth.hpc/v1alpha1", "kind": "User", "metadata": map[string]any{"name": name}, "spec": one.spec}
		if err := s.kube.Post(t.Context(), path, nil, object, nil); err != nil {
			if k := kube.KindOf(err); k != kube.Invalid {
				t.Fatalf("%s: %v", name, err)
			}
			t.Logf("%s: the API server refuses it: %v", name, err)
			delete(all, name)
			continue
		}
		t.Cleanup(func() { _ = s.kube.Delete(context.WithoutCancel(t.Context()), path+"/"+name) })
	}
	own := s.user
	for name, one := range all {
		s.user = name
		eventually.Holds(t, "the reason why "+name+" is refused", func() bool {
			if out, err := s.ssh("true"); err == nil {
				t.Fatalf("%s could log in: %s", name, out)
			}
			return strings.Contains(s.log(t), name) && strings.Contains(s.log(t), one.reason)
		})
	}
	s.user = own
	if len(all) < 2 {
		t.Errorf("only %d of the users could be created", len(all))
	}
	if got := s.run("echo in"); got != "in\n" {
		t.Error(got)
	}
}

// log returns the log of the login node.
func (s *site) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "s", "log"))
	must(t, err)
	return string(text)
}
