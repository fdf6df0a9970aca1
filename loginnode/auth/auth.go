package auth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/asuser"
)

// Config is the configuration of authentication. Paths may contain %u (user), %h
// (home), %U (uid) and %% as in sshd_config(5).
type Config struct {
	Users Directory // required

	// KeyFiles are tried in order; nil: .ssh/authorized_keys. Relative to the home.
	KeyFiles []string
	// LaxModes switches StrictModes off.
	LaxModes bool
	// KeysCommand prints further lines of authorized_keys: program and
	// arguments, which may also contain %k (key), %t (its type), %f (fingerprint).
	// It runs as KeysCommandUser.
	KeysCommand     []string
	KeysCommandUser asuser.User

	// TrustedCAs is a file of authorities whose certificates may log in as any
	// user among their principals; "": none.
	TrustedCAs string
	// PrincipalsFile lists, for a user, the principals that may log in as it;
	// "": the user's own name.
	PrincipalsFile string
	// PrincipalsCommand prints further principals; it runs as KeysCommandUser.
	PrincipalsCommand []string
	// RevokedKeys is a KRL or a file of keys; if it cannot be read, nobody
	// logs in. "": none.
	RevokedKeys string

	// Remote reports that homes and shells are not on this machine, so that neither key
	// files nor shells are checked here.
	Remote bool
	// PermitRoot lets uid 0 log in.
	PermitRoot bool
	// AllowUsers, if not empty, are the only names that may log in.
	AllowUsers []string
	// Timeout bounds one attempt's look-ups; 0: 20 s.
	Timeout time.Duration
	// Log is called with the reason why a line, a file or an attempt was rejected; may
	// be nil.
	Log func(user, text string)
}

// ErrDenied is the error for a key with which the user may not log in. The reason is
// only logged.
var ErrDenied = errors.New("permission denied")

// Check returns an error if the configuration is invalid.
func (c *Config) Check() error {
	if c.Users == nil {
		return errors.New("no source of users is configured")
	}
	if len(c.KeysCommand)+len(c.PrincipalsCommand) > 0 && c.KeysCommandUser.UID == 0 {
		return errors.New("the commands that print keys or principals need a user to run as, not root")
	}
	if c.TrustedCAs != "" {
		if _, err := readKeys(c.TrustedCAs); err != nil {
			return err
		}
	}
	if c.RevokedKeys != "" {
		if _, err := c.revoked(); err != nil {
			return err
		}
	}
	return nil
}

// PublicKey decides whether a key may log in as the user of this attempt. It does not
// check that the client has the private key; package ssh does so afterwards.
func (c *Config) PublicKey(ctx context.Context, a Attempt) (*ssh.Permissions, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = 20 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	login, err := c.decide(ctx, a)
	if err != nil {
		c.log(a.User, err.Error())
		return nil, ErrDenied
	}
	return login.permissions(), nil
}

func (c *Config) decide(ctx context.Context, a Attempt) (*Login, error) {
	u, err := c.Find(ctx, a.User)
	if err != nil {
		return nil, err
	}
	revoked, err := within(ctx, asServer, c.revoked)
	if err != nil {
		return nil, err
	}
	if revoked.Contains(a.Key) {
		return nil, errors.New("the key is revoked")
	}
	login := &Login{
		User: u, Method: "publickey", KeyType: a.Key.Type(), Fingerprint: fingerprint(a.Key),
	}
	if cert, ok := a.Key.(*ssh.Certificate); ok {
		login.CertID, login.CertSerial = cert.KeyId, cert.Serial

		err = c.byCertificate(ctx, login, cert, a)
	} else {
		err = c.byKey(ctx, login, a)
	}
	if err != nil {
		return nil, err
	}
	return login, nil
}

// Find returns a user who passes the checks that do not depend on keys. If no directory
// has the user, it returns ErrUnknownUser.
func (c *Config) Find(ctx context.Context, name string) (*User, error) {
	if !ValidName(name) {
		return nil, ErrUnknownUser
	}
	u, err := c.Users.Lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	if u.Name != name {
		return nil, fmt.Errorf("looked up %q, the directory returned %q", name, u.Name)
	}
	if u.UID == 0 && !c.PermitRoot {
		return nil, errors.New("root may not log in")
	}
	if len(c.AllowUsers) > 0 && !contains(c.AllowUsers, name) {
		return nil, errors.New("not among AllowUsers")
	}
	if u.Shell == "" {
		u.Shell = "/bin/sh"
	}
	if c.Remote {
		return u, nil
	}
	if st, err := os.Stat(u.Shell); err != nil || !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return nil, fmt.Errorf("the shell %s does not exist or cannot be executed", u.Shell)
	}
	return u, nil
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

func (c *Config) log(user, text string) {
	if c.Log != nil {
		c.Log(user, text)
	}
}
