// Package ldapsource reads users and groups from an LDAP directory: with the attributes of
// RFC 2307, or Active Directory's.
package ldapsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/berth-hpc/berth/internal/usersource"
)

// Source is a usersource.Source. Each List uses a connection of its own.
type Source struct {
	cfg Config
	now func() time.Time
}

// New checks a configuration and returns the source. It does not connect.
func New(c Config, now func() time.Time) (*Source, error) {
	if err := errors.Join(c.schema(), c.complete()); err != nil {
		return nil, fmt.Errorf("ldap: %w", err)
	}
	return &Source{c, now}, nil
}

// List reads all users and groups.
func (s *Source) List(ctx context.Context) (*usersource.Listing, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	// Closing the connection ends a request of which ctx no longer waits for the answer.
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	r := &reader{cfg: &s.cfg, now: s.now()}
	if err := s.read(c, r); err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	return r.listing(), nil
}

func (s *Source) read(c *ldap.Conn, r *reader) (err error) {
	u, g := &s.cfg.Users, &s.cfg.Groups
	attributes := append([]string{u.Name, u.UID, u.GID, u.Home, u.Shell, u.Keys}, stateAttributes...)
	if r.users, err = s.search(c, u.Base, u.Filter, attributes); err != nil {
		return fmt.Errorf("users below %s: %w", u.Base, err)
	}
	if u.Disabled != "" {
		both := "(&" + u.Filter + u.Disabled + ")"
		if r.disabled, err = s.search(c, u.Base, both, []string{u.Name}); err != nil {
			return fmt.Errorf("disabled users below %s: %w", u.Base, err)
		}
	}
	if g.Base == "" {
		return nil
	}
	if r.groups, err = s.search(c, g.Base, g.Filter, []string{g.Name, g.GID, g.Member}); err != nil {
		return fmt.Errorf("groups below %s: %w", g.Base, err)
	}
	return nil
}

// search returns all entries, page by page. Whatever the server leaves out is an error.
func (s *Source) search(c *ldap.Conn, base, filter string, attributes []string) ([]*ldap.Entry, error) {
	found, err := c.SearchWithPaging(ldap.NewSearchRequest(base, ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 0, 0,
		false, filter, attributes, nil), uint32(s.cfg.PageSize))
	if err != nil {
		return nil, err
	}
	return found.Entries, nil
}

// connect connects to the first server that answers, and binds.
func (s *Source) connect(ctx context.Context) (*ldap.Conn, error) {
	c, err := s.dialAny(ctx)
	if err != nil {
		return nil, err
	}
	if s.cfg.BindDN == "" {
		return c, nil
	}
	password, err := s.cfg.password()
	if err == nil {
		if err = c.Bind(s.cfg.BindDN, password); err != nil {
			err = fmt.Errorf("bind as %s: %w", s.cfg.BindDN, err)
		}
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (s *Source) dialAny(ctx context.Context) (*ldap.Conn, error) {
	var errs []error
	for _, server := range s.cfg.URLs {
		c, err := s.dial(ctx, server)
		if err == nil {
			return c, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", server, err))
	}
	return nil, errors.Join(errs...)
}

func (s *Source) dial(ctx context.Context, server string) (*ldap.Conn, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	secure, err := s.cfg.tls(u.Hostname())
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: s.cfg.Timeout.Duration}
	if deadline, ok := ctx.Deadline(); ok {
		dialer.Deadline = deadline
	}
	c, err := ldap.DialURL(server, ldap.DialWithTLSConfig(secure), ldap.DialWithDialer(dialer))
	if err != nil {
		return nil, err
	}
	c.SetTimeout(s.cfg.Timeout.Duration)
	if u.Scheme == "ldap" && s.cfg.StartTLS {
		if err := c.StartTLS(secure); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("StartTLS: %w", err)
		}
	}
	return c, nil
}
