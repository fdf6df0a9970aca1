package ldapsource

import (
	"strconv"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/usersource"
)

// reader converts what a directory has to a listing.
type reader struct {
	cfg                     *Config
	now                     time.Time
	users, disabled, groups []*ldap.Entry
}

// listing returns the entries of the users, each with its groups.
func (r *reader) listing() *usersource.Listing {
	l := &usersource.Listing{Groups: len(r.groups)}
	disabled := map[string]bool{}
	for _, e := range r.disabled {
		disabled[normalDN(e.DN)] = true
	}
	m := r.members(l)
	for _, e := range r.users {
		u, ok := r.user(l, e)
		if !ok {
			continue
		}
		dn := normalDN(e.DN)
		u.Disabled = disabled[dn] || r.isDisabled(e)
		m.addTo(&u, dn)
		l.Entries = append(l.Entries, u)
	}
	return l
}

// user returns the entry of a user without its groups; ok is false if it is not one.
func (r *reader) user(l *usersource.Listing, e *ldap.Entry) (u usersource.Entry, ok bool) {
	a := &r.cfg.Users
	names := e.GetEqualFoldAttributeValues(a.Name)
	if len(names) != 1 { // which of several is the user's is anybody's guess
		l.Problem("%s has %d values of %s, not one", e.DN, len(names), a.Name)
		return u, false
	}
	u.Name = r.name(names[0])
	for attribute, to := range map[string]*int64{a.UID: &u.UID, a.GID: &u.GID} {
		n, err := strconv.ParseInt(e.GetEqualFoldAttributeValue(attribute), 10, 64)
		if err != nil {
			l.Problem("%s: %s is %q, not a number", e.DN, attribute, e.GetEqualFoldAttributeValue(attribute))
			return u, false
		}
		*to = n
	}
	u.Home, u.Shell = e.GetEqualFoldAttributeValue(a.Home), e.GetEqualFoldAttributeValue(a.Shell)
	var dropped int
	if u.SSHKeys, dropped = usersource.Keys(e.GetEqualFoldAttributeValues(a.Keys)); dropped > 0 {
		l.Problem("%s: %d keys are left out: too long, too many or not text", e.DN, dropped)
	}
	return u, true
}

// name returns the name of a user as it is here.
func (r *reader) name(text string) string {
	if l := r.cfg.LowercaseNames; l != nil && *l {
		return strings.ToLower(text)
	}
	return text
}

// Attributes by which directories mark who may not log in.
const (
	attrControl     = "userAccountControl"   // Active Directory
	attrExpires     = "accountExpires"       // Active Directory
	attrLock        = "nsAccountLock"        // 389 Directory Server, FreeIPA
	attrLockedTime  = "pwdAccountLockedTime" // OpenLDAP's password policy
	attrShadow      = "shadowExpire"         // RFC 2307: days since 1970
	accountDisable  = 2                      // bit of attrControl
	lockedForEver   = "000001010000Z"        // of attrLockedTime; other values end by themselves
	ticksPerSecond  = 10_000_000             // of attrExpires
	ticksUntil1970  = 116_444_736_000_000_000
	secondsInADay   = 24 * 60 * 60
	neverExpiresMax = 1<<63 - 1
)

var stateAttributes = []string{attrControl, attrExpires, attrLock, attrLockedTime, attrShadow}

// isDisabled reports whether the directory marks the user as one who may not log in.
func (r *reader) isDisabled(e *ldap.Entry) bool {
	number := func(attribute string) int64 {
		n, _ := strconv.ParseInt(e.GetEqualFoldAttributeValue(attribute), 10, 64) // 0: there is none
		return n
	}
	if number(attrControl)&accountDisable != 0 || strings.EqualFold(e.GetEqualFoldAttributeValue(attrLock), "true") ||
		e.GetEqualFoldAttributeValue(attrLockedTime) == lockedForEver {
		return true
	}
	if days := number(attrShadow); days > 0 && days <= r.now.Unix()/secondsInADay {
		return true
	}
	ticks := number(attrExpires)
	return ticks > 0 && ticks < neverExpiresMax && (ticks-ticksUntil1970)/ticksPerSecond <= r.now.Unix()
}

// memberships are the groups of users.
type memberships struct {
	byName, byDN map[string][]*group // of members
	byGID        map[int64]*group
}

type group struct {
	v1alpha1.Group // GID 0: none
	dn             string
}

// members reads the groups. A group that is a member of another one passes its members on.
// Of groups with the same name or gid none counts: accounts and levels depend on names, and
// somebody may be allowed to create groups elsewhere in the tree.
func (r *reader) members(l *usersource.Listing) *memberships {
	m := &memberships{byName: map[string][]*group{}, byDN: map[string][]*group{}, byGID: map[int64]*group{}}
	a := &r.cfg.Groups
	values := map[string]int{}
	for _, e := range r.groups {
		values["name "+e.GetEqualFoldAttributeValue(a.Name)]++
		values["gid "+e.GetEqualFoldAttributeValue(a.GID)]++
	}
	for _, e := range r.groups {
		name, gid := e.GetEqualFoldAttributeValue(a.Name), e.GetEqualFoldAttributeValue(a.GID)
		if values["name "+name] > 1 || gid != "" && values["gid "+gid] > 1 {
			l.Problem("the group %s is left out: another one has the name %q or the gid %s", e.DN, name, gid)
			continue
		}
		g := &group{dn: normalDN(e.DN)}
		g.Name = name
		g.GID, _ = strconv.ParseInt(gid, 10, 64)
		if g.GID != 0 {
			m.byGID[g.GID] = g
		}
		for _, member := range e.GetEqualFoldAttributeValues(a.Member) {
			if strings.EqualFold(a.Member, attrMemberUID) {
				member = r.name(member)
				m.byName[member] = append(m.byName[member], g)
			} else {
				member = normalDN(member)
				m.byDN[member] = append(m.byDN[member], g)
			}
		}
	}
	return m
}

// addTo adds the groups of a user.
func (m *memberships) addTo(u *usersource.Entry, dn string) {
	seen := map[*group]bool{}
	var queue []*group
	if g := m.byGID[u.GID]; g != nil {
		queue = append(queue, g)
	}
	queue = append(append(queue, m.byName[u.Name]...), m.byDN[dn]...)
	for ; len(queue) > 0; queue = queue[1:] {
		g := queue[0]
		if seen[g] {
			continue
		}
		seen[g] = true
		u.MemberOf = append(u.MemberOf, g.Name)
		if g.GID != 0 {
			u.Groups = append(u.Groups, g.Group)
		}
		queue = append(queue, m.byDN[g.dn]...)
	}
}

// normalDN returns a form of a DN that is the same for equal ones.
func normalDN(text string) string {
	dn, err := ldap.ParseDN(text)
	if err != nil {
		return strings.ToLower(text)
	}
	return strings.ToLower(dn.String())
}
