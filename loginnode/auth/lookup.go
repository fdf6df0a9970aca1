package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
)

// byKey searches the user's keys for the key.
func (c *Config) byKey(ctx context.Context, login *Login, a Attempt) error {
	blob := a.Key.Marshal()
	err := c.eachKey(ctx, login.User, a, func(from string, l *Line) bool {
		if l.Options.CertAuthority || !bytes.Equal(l.Key.Marshal(), blob) {
			return false
		}
		if err := l.Options.usable(a); err != nil {
			c.log(a.User, fmt.Sprintf("%s: key %s: %v", from, login.Fingerprint, err))
			return false
		}
		login.Options, login.Comment = l.Options, from
		return true
	})
	return err
}

// byCertificate checks a certificate against the trusted authorities, then
// against the cert-authority lines of the user.
func (c *Config) byCertificate(ctx context.Context, login *Login, cert *ssh.Certificate, a Attempt) error {
	// Until its signature is verified, anybody may have written its contents, the name
	// of the authority included; no command receives them before.
	if err := soundCert(cert); err != nil {
		return err
	}
	trusted, err := within(ctx, asServer, func() (bool, error) { return c.trusts(cert.SignatureKey) })
	if err != nil {
		return err
	}
	var first error
	if trusted {
		o, err := c.byAuthority(ctx, login.User, cert, a)
		if err == nil {
			login.Options, login.Comment = o, c.TrustedCAs
			return nil
		}
		first = err
	}
	blob := cert.SignatureKey.Marshal()
	err = c.eachKey(ctx, login.User, a, func(from string, l *Line) bool {
		if !l.Options.CertAuthority || !bytes.Equal(l.Key.Marshal(), blob) {
			return false
		}
		o, err := certByLine(cert, l, a, login.User.Name)
		if err != nil {
			c.log(a.User, fmt.Sprintf("%s: certificate %q: %v", from, cert.KeyId, err))
			return false
		}
		login.Options, login.Comment = o, from
		return true
	})
	if err != nil && first != nil {
		return first
	}
	return err
}

// byAuthority decides about a valid certificate of a trusted authority.
func (c *Config) byAuthority(ctx context.Context, u *User, cert *ssh.Certificate, a Attempt) (Options, error) {
	if err := sourceAddress(cert, a); err != nil {
		return Options{}, err
	}
	principals, err := c.principals(ctx, u, cert)
	if err != nil {
		return Options{}, err
	}
	return checkCert(cert, principals)
}

func certByLine(cert *ssh.Certificate, l *Line, a Attempt, name string) (Options, error) {
	principals := l.Options.Principals
	if len(principals) == 0 {
		principals = []string{name}
	}
	o, err := checkCert(cert, principals)
	if err != nil {
		return o, err
	}
	if err := errors.Join(sourceAddress(cert, a), l.Options.usable(a)); err != nil {
		return o, err
	}
	return o.merge(l.Options)
}

// sourceAddress enforces the certificate's critical option; its grammar has
// CIDR blocks and addresses only.
func sourceAddress(cert *ssh.Certificate, a Attempt) error {
	list, ok := cert.CriticalOptions["source-address"]
	if ok && (strings.ContainsAny(list, "*?!") || !matchFrom(list, a.Source)) {
		return fmt.Errorf("the certificate is not for address %s", a.Source)
	}
	return nil
}

// errNoKey reports that no line has the key.
var errNoKey = errors.New("the key is not among the user's")

// eachKey calls f with the user's lines until f accepts one, and returns errNoKey if it
// accepts none. A source that cannot be read counts as empty.
func (c *Config) eachKey(ctx context.Context, u *User, a Attempt, f func(from string, l *Line) bool) error {
	try := func(from string, data []byte) bool {
		n := 0
		for raw := range bytes.Lines(data) {
			n++
			l, err := ParseLine(raw)
			if err != nil {
				c.log(u.Name, fmt.Sprintf("%s line %d is ignored: %v", from, n, err))
				continue
			}
			if l != nil && f(from+" line "+strconv.Itoa(n), l) {
				return true
			}
		}
		return false
	}
	if try(u.Source, []byte(strings.Join(u.Keys, "\n"))) {
		return nil
	}
	files := c.KeyFiles
	if c.Remote {
		files = nil
	} else if files == nil {
		files = []string{".ssh/authorized_keys"}
	}
	for _, name := range files {
		name = expand(name, u, nil)
		data, err := readKeyFile(ctx, u, name, !c.LaxModes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.log(u.Name, "key file ignored: "+err.Error())
		}
		if err == nil && try(name, data) {
			return nil
		}
	}
	if len(c.KeysCommand) > 0 {
		data, err := c.command(ctx, c.KeysCommand, u, unverified{a.Key})
		if err != nil {
			return err
		}
		if try(c.KeysCommand[0], data) {
			return nil
		}
	}
	return errNoKey
}

// trusts reports whether a key is among TrustedCAs.
func (c *Config) trusts(ca ssh.PublicKey) (bool, error) {
	if c.TrustedCAs == "" {
		return false, nil
	}
	keys, err := readKeys(c.TrustedCAs)
	if err != nil {
		return false, err
	}
	for _, k := range keys {
		if bytes.Equal(k.Marshal(), ca.Marshal()) {
			return true, nil
		}
	}
	return false, nil
}

// readKeys reads a file of public keys. It is read each time, so that a change takes
// effect at once.
func readKeys(file string) ([]ssh.PublicKey, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var keys []ssh.PublicKey
	for line := range bytes.Lines(data) {
		l, err := ParseLine(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if l != nil {
			keys = append(keys, l.Key)
		}
	}
	return keys, nil
}

func (c *Config) revoked() (*Revoked, error) {
	if c.RevokedKeys == "" {
		return nil, nil
	}
	data, err := os.ReadFile(c.RevokedKeys)
	if err != nil {
		return nil, err
	}
	return ParseRevoked(data)
}

// principals returns the principals of certificates that may log in as the user.
func (c *Config) principals(ctx context.Context, u *User, cert *ssh.Certificate) ([]string, error) {
	if c.PrincipalsFile == "" && len(c.PrincipalsCommand) == 0 {
		return []string{u.Name}, nil
	}
	var all []string
	if c.PrincipalsFile != "" {
		data, err := readKeyFile(ctx, u, expand(c.PrincipalsFile, u, nil), !c.LaxModes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = names(data)
	}
	if len(c.PrincipalsCommand) > 0 {
		data, err := c.command(ctx, c.PrincipalsCommand, u, cert)
		if err != nil {
			return nil, err
		}
		all = append(all, names(data)...)
	}
	return all, nil
}

// names returns the lines of a list of principals, without those with options, which
// are not supported.
func names(data []byte) []string {
	var out []string
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		if f := strings.Fields(line); len(f) == 1 {
			out = append(out, f[0])
		}
	}
	return out
}
