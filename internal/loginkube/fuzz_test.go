package loginkube

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// A User object that passes the check has a valid uid, which no other has, valid gids,
// and an absolute home.
func FuzzUser(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"ann"},"spec":{"uid":1000,"gid":1000,"groups":[{"gid":7}]}}`))
	f.Add([]byte(`{"spec":{"uid":-1,"gid":4294967295}}`))
	f.Add([]byte(`{"spec":{"uid":5,"home":"../x"}}`))
	f.Add([]byte(`{"spec":{"uid":1099511627776}}`))
	other := v1alpha1.User{}
	other.Name, other.Spec.UID = "other", 5
	f.Fuzz(func(t *testing.T, data []byte) {
		var u v1alpha1.User
		if json.Unmarshal(data, &u) != nil {
			return
		}
		c := &Cluster{users: &mirror[v1alpha1.User]{objects: map[string]v1alpha1.User{"other": other, u.Name: u}}}
		if u.Name == "other" || c.check(&u) != nil {
			return
		}
		s := u.Spec
		if s.UID < 0 || s.UID > maxID || s.GID < 0 || s.GID > maxID || s.UID == 5 || s.Home != "" && !filepath.IsAbs(s.Home) {
			t.Errorf("%s: %+v", data, s)
		}
		for _, g := range s.Groups {
			if g.GID < 0 || g.GID > maxID {
				t.Errorf("%s: group %d", data, g.GID)
			}
		}
	})
}

// A ConfigMap or Secret with keys has only each user's own lines.
func FuzzKeyObject(f *testing.F) {
	f.Add("ssh-ed25519 AAAA ann", false)
	f.Add("c3NoLWVkMjU1MTkgQUFBQQo=", true)
	f.Add(`","x":"`, true)
	f.Fuzz(func(t *testing.T, text string, secret bool) {
		o := keyObject{Data: map[string]string{"ann": text, "bob": "bobs"}, secret: secret}
		for _, l := range o.lines("ann") {
			if strings.Contains(l, "\n") {
				t.Errorf("%q: the line %q", text, l)
			}
		}
		if o.lines("eve") != nil {
			t.Error("lines of nobody")
		}
	})
}
