package ldapsource

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-ldap/ldap/v3"
)

// TestDisabled: the marks of several directories.
func TestDisabled(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ticks := func(at time.Time) string { return strconv.FormatInt(at.Unix()*ticksPerSecond+ticksUntil1970, 10) }
	days := func(n int64) string { return strconv.FormatInt(now.Unix()/secondsInADay+n, 10) }
	for _, tt := range []struct {
		attribute, value string
		want             bool
	}{
		{attrControl, "512", false}, {attrControl, "514", true}, {"USERACCOUNTCONTROL", "66050", true}, {attrControl, "x", false},
		{attrExpires, "0", false}, {attrExpires, "9223372036854775807", false},
		{attrExpires, ticks(now.Add(time.Hour)), false}, {attrExpires, ticks(now.Add(-time.Hour)), true},
		{attrLock, "TRUE", true}, {attrLock, "false", false},
		{attrLockedTime, lockedForEver, true}, {attrLockedTime, "20260101000000Z", false},
		{attrShadow, "-1", false}, {attrShadow, "0", false}, {attrShadow, days(0), true}, {attrShadow, days(1), false},
	} {
		r := &reader{now: now}
		if got := r.isDisabled(ldap.NewEntry("cn=x", map[string][]string{tt.attribute: {tt.value}})); got != tt.want {
			t.Errorf("%s: %s: disabled %v", tt.attribute, tt.value, got)
		}
	}
}

// TestActiveDirectory: names, members and disabled users as Active Directory has them.
func TestActiveDirectory(t *testing.T) {
	c := Config{Schema: "ad", URLs: []string{"ldaps://x"}, Users: Users{Base: "dc=x"}, Groups: Groups{Base: "dc=x"}}
	s, err := New(c, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	entry := func(dn string, values map[string][]string) *ldap.Entry { return ldap.NewEntry(dn, values) }
	r := &reader{cfg: &s.cfg, now: time.Now(), users: []*ldap.Entry{
		entry("CN=Ann A.,CN=Users,DC=x", map[string][]string{
			"sAMAccountName": {"Ann"}, "uidNumber": {"10001"}, "gidNumber": {"10000"}, "unixHomeDirectory": {"/home/ann"},
			"userAccountControl": {"512"},
		}),
		entry("CN=Ben,CN=Users,DC=x", map[string][]string{
			"sAMAccountName": {"Ben"}, "uidNumber": {"10002"}, "gidNumber": {"10000"}, "userAccountControl": {"514"},
		}),
		entry("CN=Two,CN=Users,DC=x", map[string][]string{"sAMAccountName": {"a", "b"}, "uidNumber": {"1"}, "gidNumber": {"1"}}),
		entry("CN=Text,CN=Users,DC=x", map[string][]string{"sAMAccountName": {"c"}, "uidNumber": {"1x"}, "gidNumber": {"1"}}),
	}, groups: []*ldap.Entry{
		entry("CN=HPC Users,DC=x", map[string][]string{"cn": {"HPC Users"}, "member": {"cn=ann a.,cn=users,dc=x"}}),
		entry("CN=unix,DC=x", map[string][]string{"cn": {"unix"}, "gidNumber": {"10000"}}),
	}}
	l := r.listing()
	if len(l.Entries) != 2 || len(l.Problems) != 2 {
		t.Fatalf("%+v", l)
	}
	ann := l.Entries[0]
	if ann.Name != "ann" || ann.UID != 10001 || ann.Home != "/home/ann" || ann.Disabled ||
		strings.Join(ann.MemberOf, ",") != "unix,HPC Users" || len(ann.Groups) != 1 {
		t.Errorf("%+v", ann)
	}
	if !l.Entries[1].Disabled {
		t.Error("a disabled account is not disabled")
	}
}

// TestGroupsWithTheSameName: neither counts, so that nobody joins a group by creating one of
// the same name.
func TestGroupsWithTheSameName(t *testing.T) {
	s, err := New(Config{URLs: []string{"ldaps://x"}, Users: Users{Base: "dc=x"}, Groups: Groups{Base: "dc=x"}}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	group := func(dn, name, gid string) *ldap.Entry {
		return ldap.NewEntry(dn, map[string][]string{"cn": {name}, "gidNumber": {gid}, "memberUid": {"ann"}})
	}
	r := &reader{cfg: &s.cfg, groups: []*ldap.Entry{
		group("cn=admins,ou=groups,dc=x", "admins", "3000"), group("cn=admins,ou=own,dc=x", "admins", "3001"),
		group("cn=a,dc=x", "a", "3002"), group("cn=b,dc=x", "b", "3002"), group("cn=c,dc=x", "c", "3003"),
	}, users: []*ldap.Entry{
		ldap.NewEntry("uid=ann,dc=x", map[string][]string{"uid": {"ann"}, "uidNumber": {"2001"}, "gidNumber": {"3000"}}),
	}}
	if l := r.listing(); strings.Join(l.Entries[0].MemberOf, ",") != "c" || len(l.Problems) != 4 {
		t.Errorf("%+v", l)
	}
}
