package claimsource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/usersource"
	"github.com/berth-hpc/berth/internal/usersource/claimsource"
)

// site is a source whose clock and store belong to the test.
type site struct {
	t      *testing.T
	data   []byte
	failed error
	now    time.Time
	have   map[string]int64 // Users
	*claimsource.Source
}

func (s *site) Load(context.Context) ([]byte, error) { return s.data, s.failed }

func (s *site) Save(_ context.Context, data []byte) error {
	if s.failed == nil {
		s.data = data
	}
	return s.failed
}

func newSite(t *testing.T, c claimsource.Config) *site {
	s := &site{t: t, now: time.Unix(1_800_000_000, 0), have: map[string]int64{}}
	s.restart(c)
	return s
}

// restart makes a new source of what was saved.
func (s *site) restart(c claimsource.Config) {
	s.t.Helper()
	c.UserPrefix, c.GroupPrefix = "oidc:", "oidc:"
	if err := c.Complete([]string{"oidc:%u", "oidc:%u@example.org"}); err != nil {
		s.t.Fatal(err)
	}
	s.Source = claimsource.New(c, claimsource.Options{
		Store: s, Allowed: []string{"hpc"}, Relevant: []string{"hpc", "physics"},
		UIDOf: func(name string) int64 { return s.have[name] },
		Taken: func(uid int64) bool {
			for _, have := range s.have {
				if have == uid {
					return true
				}
			}
			return false
		},
		Now: func() time.Time { return s.now },
	})
}

// contact is a request with a token.
func (s *site) contact(identity string, extra map[string]string, groups ...string) {
	s.Contact(identity, groups, func(key string) []string {
		if v, ok := extra[key]; ok {
			return []string{v}
		}
		return nil
	})
}

func (s *site) list() *usersource.Listing {
	s.t.Helper()
	l, err := s.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// expect compares the entries: name uid gid groups disabled.
func (s *site) expect(want ...string) {
	s.t.Helper()
	var got []string
	for _, e := range s.list().Entries {
		got = append(got, fmt.Sprintf("%s %d %d %v%v %v", e.Name, e.UID, e.GID, e.MemberOf, e.Groups, e.Disabled))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("entries\n%q\nwant\n%q", got, want)
	}
}

// Users come from the claims of their tokens, and are kept across restarts; only members of the
// allowed groups and identities of the provider count.
func TestClaims(t *testing.T) {
	t.Parallel()
	config := claimsource.Config{GIDs: map[string]int64{"physics": 3000}, DefaultGID: 100}
	s := newSite(t, config)
	before := s.Version()
	s.contact("oidc:anna", map[string]string{"berth.hpc/uid": "2001"}, "oidc:hpc", "oidc:physics", "oidc:choir", "system:authenticated")
	s.contact("anna", map[string]string{"berth.hpc/uid": "6"}, "oidc:hpc")
	s.contact("oidc:ben", map[string]string{"berth.hpc/uid": "2002"}, "hpc") // a group of the cluster
	s.contact("oidc:../x", map[string]string{"berth.hpc/uid": "2003"}, "oidc:hpc")
	if s.Version() == before {
		t.Error("the version is the same after a contact")
	}
	anna := "anna 2001 100 [hpc physics][{physics 3000}] false"
	s.expect(anna)
	before = s.Version()
	s.contact("oidc:anna", map[string]string{"berth.hpc/uid": "2001"}, "oidc:physics", "oidc:hpc")
	if s.Version() != before {
		t.Error("a contact without news is one")
	}
	s.restart(config)
	s.expect(anna)
	s.contact("oidc:anna", map[string]string{"berth.hpc/uid": "2001"}, "oidc:hpc")
	s.expect("anna 2001 100 [hpc][] false")
}

// A uid that no claim names is allocated once: it stays after a restart, after the store was
// lost, and is never that of another User.
func TestAllocation(t *testing.T) {
	t.Parallel()
	config := claimsource.Config{Allocate: claimsource.Range{Min: 5000, Max: 5003}}
	s := newSite(t, config)
	s.have["local"] = 5001
	s.contact("oidc:anna", nil, "oidc:hpc")
	s.contact("oidc:ben", nil, "oidc:hpc")
	const both = "anna 5000 5000 [hpc][] false"
	s.expect(both, "ben 5002 5002 [hpc][] false")
	s.restart(config)
	s.contact("oidc:ben", nil, "oidc:hpc", "oidc:physics")
	s.expect(both, "ben 5002 5002 [hpc physics][] false")
	s.data, s.have["ben"] = nil, 5002
	s.restart(config)
	s.contact("oidc:ben", nil, "oidc:hpc")
	s.expect("ben 5002 5002 [hpc][] false")
	s.contact("oidc:carl", nil, "oidc:hpc")
	s.contact("oidc:emil", map[string]string{"berth.hpc/uid": "0"}, "oidc:hpc") // no policy accepts it
	s.contact("oidc:dora", nil, "oidc:hpc")
	if l := s.list(); len(l.Entries) != 3 || len(l.Problems) != 1 || l.Entries[2].UID != -1 {
		t.Errorf("with a range that is used up: %+v", l)
	}
}

// Who presents no token for validFor is disabled, and enabled by the next one.
func TestExpiry(t *testing.T) {
	t.Parallel()
	c := claimsource.Config{}
	c.ValidFor.Duration = time.Hour
	s := newSite(t, c)
	claims := map[string]string{"berth.hpc/uid": "2001"}
	s.contact("oidc:anna", claims, "oidc:hpc")
	s.expect("anna 2001 2001 [hpc][] false")
	s.now = s.now.Add(45 * time.Minute)
	s.contact("oidc:anna", claims, "oidc:hpc")
	s.now = s.now.Add(45 * time.Minute)
	s.expect("anna 2001 2001 [hpc][] false")
	s.now = s.now.Add(time.Hour)
	s.expect("anna 2001 2001 [hpc][] true")
	s.contact("oidc:anna", claims, "oidc:hpc")
	s.expect("anna 2001 2001 [hpc][] false")
}

// While the store cannot be read or written there is no listing, and no contact is lost.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, claimsource.Config{Domain: "example.org"})
	s.failed = errors.New("away")
	claims := map[string]string{"berth.hpc/uid": "2001"}
	s.contact("oidc:anna@example.org", claims, "oidc:hpc")
	s.contact("oidc:anna@example.com", map[string]string{"berth.hpc/uid": "6"}, "oidc:hpc")
	if l, err := s.List(t.Context()); err == nil {
		t.Errorf("a listing without the store: %+v", l)
	}
	s.failed = nil
	s.expect("anna 2001 2001 [hpc][] false")
	s.failed = errors.New("away")
	s.contact("oidc:ben@example.org", map[string]string{"berth.hpc/uid": "2002"}, "oidc:hpc")
	if l, err := s.List(t.Context()); err == nil {
		t.Errorf("a listing that was not saved: %+v", l)
	}
	s.failed = nil
	s.expect("anna 2001 2001 [hpc][] false", "ben 2002 2002 [hpc][] false")
}

// TestContactsAtOnce: many requests present tokens at the same time.
func TestContactsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, claimsource.Config{Allocate: claimsource.Range{Min: 5000, Max: 9000}})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				s.contact(fmt.Sprintf("oidc:u%d", (i+j)%60), nil, "oidc:hpc")
			}
		})
	}
	for range 20 {
		s.list()
	}
	wg.Wait()
	uids := map[int64]bool{}
	for _, e := range s.list().Entries {
		uids[e.UID] = true
	}
	if len(uids) != 57 {
		t.Errorf("%d uids", len(uids))
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []claimsource.Config{
		{},
		{UserPrefix: "system:"},
		{UserPrefix: "other:"}, // not among the identities
		{UserPrefix: "oidc:", Domain: "example.com"},
		{UserPrefix: "oidc:", Allocate: claimsource.Range{Min: 9, Max: 8}},
	} {
		if err := c.Complete([]string{"oidc:%u"}); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
