package ldapsource

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-ldap/ldap/v3"
)

// ErrWrongPassword reports that a password is not the user's, or that there is no such user.
var ErrWrongPassword = errors.New("wrong password")

// Verify returns nil if the user may bind with the password.
func (s *Source) Verify(ctx context.Context, user, password string) error {
	if password == "" { // servers accept it as an anonymous bind
		return ErrWrongPassword
	}
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	dn, err := s.find(c, user)
	if err != nil {
		return err
	}
	err = c.Bind(dn, password)
	if ldap.IsErrorWithCode(err, ldap.LDAPResultInvalidCredentials) {
		return ErrWrongPassword
	}
	return err
}

// find returns the DN of the only entry of the user.
func (s *Source) find(c *ldap.Conn, user string) (string, error) {
	u := &s.cfg.Users
	filter := fmt.Sprintf("(&%s(%s=%s))", u.Filter, u.Name, ldap.EscapeFilter(user))
	if u.Disabled != "" {
		filter = "(&" + filter + "(!" + u.Disabled + "))"
	}
	found, err := c.Search(ldap.NewSearchRequest(u.Base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 2, 0, false,
		filter, append([]string{u.Name}, stateAttributes...), nil))
	switch {
	case err != nil && !ldap.IsErrorWithCode(err, ldap.LDAPResultSizeLimitExceeded):
		return "", err
	case err != nil || len(found.Entries) > 1:
		return "", fmt.Errorf("the directory has several users %q", user)
	case len(found.Entries) == 0:
		return "", ErrWrongPassword
	}
	e := found.Entries[0]
	r := &reader{cfg: &s.cfg, now: s.now()}
	if names := e.GetEqualFoldAttributeValues(u.Name); len(names) != 1 || r.name(names[0]) != user {
		return "", fmt.Errorf("looked up user %q, the directory returned %q", user, names)
	}
	if r.isDisabled(e) {
		return "", fmt.Errorf("the user %q is disabled", user)
	}
	return e.DN, nil
}
