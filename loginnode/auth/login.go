package auth

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"golang.org/x/crypto/ssh"
)

// Login is the identity of a connection, which the successful attempt creates.
type Login struct {
	User    *User
	Options Options
	// How the user was authenticated, for the audit log.
	Method      string // publickey, keyboard-interactive
	KeyType     string
	Fingerprint string // SHA256:...
	CertID      string
	CertSerial  uint64
	Comment     string // the line, file or certificate that allowed it
}

// loginKey is the key of a Login in ssh.Permissions.
type loginKey struct{}

// permissions returns new permissions for an attempt; attempts share nothing.
func (l *Login) permissions() *ssh.Permissions {
	p := &ssh.Permissions{ExtraData: map[any]any{loginKey{}: l}}
	if l.Options.NoTouch {
		p.Extensions = map[string]string{"no-touch-required": ""}
	}
	return p
}

// FromPermissions returns the identity of an authenticated connection. If it returns an
// error, the connection must not be served.
func FromPermissions(p *ssh.Permissions) (*Login, error) {
	if p != nil {
		if l, ok := p.ExtraData[loginKey{}].(*Login); ok && l != nil && l.User != nil {
			return l, nil
		}
	}
	return nil, errors.New("the connection has no identity")
}

// Attempt is an attempt of a client to log in.
type Attempt struct {
	User   string
	Source netip.Addr
	Key    ssh.PublicKey
	Now    time.Time
}

// NewAttempt returns an attempt of a connection. The user is that of this attempt: a
// client may name another one each time.
func NewAttempt(c ssh.ConnMetadata, key ssh.PublicKey, now time.Time) (Attempt, error) {
	a := Attempt{User: c.User(), Key: key, Now: now}
	if t, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		a.Source = t.AddrPort().Addr().Unmap()
	}
	if !ValidName(a.User) {
		return a, fmt.Errorf("%w: not a user name", ErrUnknownUser)
	}
	return a, nil
}

// usable returns an error if the options of a line or certificate reject this attempt.
func (o *Options) usable(a Attempt) error {
	if o.From != "" && !matchFrom(o.From, a.Source) {
		return fmt.Errorf("not from address %s", a.Source)
	}
	if !o.Expiry.IsZero() && !a.Now.Before(o.Expiry) {
		return errors.New("the key has expired")
	}
	return nil
}

// Proven returns the permissions of a user who was authenticated without a key.
func Proven(u *User, method string) *ssh.Permissions {
	return (&Login{User: u, Method: method}).permissions()
}
