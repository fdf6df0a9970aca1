package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/asuser"
)

// Config says how logins are decided. Paths may hold %u (user), %h (home), %U
// (uid) and %% as in sshd_config(5).
type Config struct {
	Users Directory // required

	// KeyFiles are tried in order; nil: .ssh/authorized_keys. Relative to the home.
	KeyFiles []string
	// LaxModes switches StrictModes off.
	LaxModes bool
	// KeysCommand prints further lines of authorized_keys: program and
	// arguments, which may also hold %k (key), %t (its type), %f (fingerprint).
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

	// PermitRoot lets uid 0 log in.
	PermitRoot bool
	// AllowUsers, if not empty, are the only names that may log in.
	AllowUsers []string
	// Timeout bounds one attempt's look-ups; 0: 20 s.
	Timeout time.Duration
	// Log is told why a line, a file or an attempt was no good; nil: nobody is.
	Log func(user, text string)
}

// ErrDenied is the answer to a key that does not let the user in.
var ErrDenied = errors.New("permission denied")

// Check finds what is wrong with the configuration itself.
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

// PublicKey decides whether a key may log in as the user that this attempt
// names. It says nothing about whether the client holds the key; package ssh
// asks for the proof afterwards.
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
	revoked, err := c.revoked()
	if err != nil {
		return nil, err
	}
	if revoked.Contains(a.Key) {
		return nil, errors.New("the key is revoked")
	}
	login := &Login{
		User: u, Method: "publickey", KeyType: a.Key.Type(), Fingerprint: ssh.FingerprintSHA256(a.Key),
	}
	if cert, ok := a.Key.(*ssh.Certificate); ok {
		login.CertID, login.CertSerial = cert.KeyId, cert.Serial
		login.Fingerprint = ssh.FingerprintSHA256(cert.Key)
		err = c.byCertificate(ctx, login, cert, a)
	} else {
		err = c.byKey(ctx, login, a)
	}
	if err != nil {
		return nil, err
	}
	return login, nil
}

// Find looks a user up and applies what has nothing to do with keys.
func (c *Config) Find(ctx context.Context, name string) (*User, error) {
	if !ValidName(name) {
		return nil, ErrUnknownUser
	}
	u, err := c.Users.Lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	if u.Name != name {
		return nil, fmt.Errorf("asked for %q, the directory answered %q", name, u.Name)
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

// byKey looks for the key among the user's.
func (c *Config) byKey(ctx context.Context, login *Login, a Attempt) error {
	blob := a.Key.Marshal()
	err := c.eachLine(ctx, login.User, a, func(from string, l *Line) bool {
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
	trusted, err := c.trusts(cert.SignatureKey)
	if err != nil {
		return err
	}
	var first error
	if trusted {
		principals, err := c.principals(ctx, login.User, cert)
		if err != nil {
			return err
		}
		o, err := checkCert(cert, principals)
		if err == nil {
			err = sourceAddress(cert, a)
		}
		if err == nil {
			login.Options, login.Comment = o, c.TrustedCAs
			return nil
		}
		first = err
	}
	blob := cert.SignatureKey.Marshal()
	err = c.eachLine(ctx, login.User, a, func(from string, l *Line) bool {
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

// errNoKey is the usual reason why a key does not let somebody in.
var errNoKey = errors.New("the key is not among the user's")

// eachLine calls f with the user's lines until it accepts one, and returns
// errNoKey if it accepts none. Sources that cannot be read have no lines.
func (c *Config) eachLine(ctx context.Context, u *User, a Attempt, f func(from string, l *Line) bool) error {
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
	if files == nil {
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
		data, err := c.command(ctx, c.KeysCommand, u, a.Key)
		if err != nil {
			return err
		}
		if try(c.KeysCommand[0], data) {
			return nil
		}
	}
	return errNoKey
}

// trusts tells whether a key is among TrustedCAs.
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

// readKeys reads a file of public keys, each time, so that a change holds at once.
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

// principals are the names that may stand in a certificate for the user.
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

// names are the lines of a list of principals. A line with options is left
// out, for they would have to be enforced.
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

// command runs an outside program with nothing of the server's environment.
func (c *Config) command(ctx context.Context, argv []string, u *User, key ssh.PublicKey) ([]byte, error) {
	args := make([]string, 0, len(argv)-1)
	for _, a := range argv[1:] {
		args = append(args, expand(a, u, key))
	}
	cmd := exec.CommandContext(ctx, argv[0], args...)
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	cmd.Dir = "/"
	cmd.SysProcAttr = asuser.Attributes(c.KeysCommandUser)
	cmd.WaitDelay = time.Second
	var out limited
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w", argv[0], err)
	}
	return out.Bytes(), nil
}

// limited is a buffer that refuses more than a key file may hold.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxKeyFile {
		return 0, errors.New("too much output")
	}
	return l.Buffer.Write(p)
}

// expand replaces the tokens of sshd_config(5) in one pass. key may be nil.
func expand(s string, u *User, key ssh.PublicKey) string {
	pairs := []string{"%%", "%", "%u", u.Name, "%h", u.Home, "%U", strconv.Itoa(u.UID)}
	if key != nil {
		text := strings.Fields(string(ssh.MarshalAuthorizedKey(key)))
		pairs = append(pairs, "%t", key.Type(), "%f", ssh.FingerprintSHA256(key), "%k", text[1])
		if cert, ok := key.(*ssh.Certificate); ok {
			pairs = append(pairs, "%i", cert.KeyId, "%s", strconv.FormatUint(cert.Serial, 10))
		}
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

func (c *Config) log(user, text string) {
	if c.Log != nil {
		c.Log(user, text)
	}
}
