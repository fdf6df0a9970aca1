package loginkube

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// A disabled user cannot log in, gets no token, and is revoked; so is one that was deleted
// or has another uid now.
func TestDisabledUser(t *testing.T) {
	m := &mirror[v1alpha1.User]{objects: map[string]v1alpha1.User{}, first: make(chan struct{})}
	c := &Cluster{users: m}
	if c.Revoked("ann", 1000) {
		t.Error("revoked before the API server has answered")
	}
	m.heard = time.Now()
	close(m.first)
	put := func(uid int64, disabled bool) {
		u := v1alpha1.User{}
		u.Name, u.Spec.UID, u.Spec.GID, u.Spec.Namespace, u.Spec.Disabled = "ann", uid, 1000, "user-ann", disabled
		m.objects["ann"] = u
	}
	put(1000, false)
	if p, err := c.Lookup(t.Context(), "ann"); err != nil || p == nil || c.Revoked("ann", 1000) {
		t.Errorf("%v, %v", p, err)
	}
	if !c.Revoked("ann", 1001) || !c.Revoked("bob", 1000) {
		t.Error("another uid or no User is not revoked")
	}
	put(1000, true)
	if p, err := c.Lookup(t.Context(), "ann"); err == nil || p != nil || !strings.Contains(err.Error(), "disabled") {
		t.Errorf("%v, %v", p, err)
	}
	if cred, err := c.Credential(t.Context(), "ann", 1000); err != nil || cred.Files != nil || !c.Revoked("ann", 1000) {
		t.Errorf("%+v, %v", cred, err)
	}
}
