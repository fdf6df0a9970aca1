package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/asuser"
)

// command runs a program without the server's environment.
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

// limited is a buffer that rejects more bytes than a key file may have.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if l.Len()+len(p) > maxKeyFile {
		return 0, errors.New("too much output")
	}
	return l.Buffer.Write(p)
}

// unverified is a key that may be a certificate whose signature is not verified: %i and
// %s, which anybody may have chosen, are not passed to a command.
type unverified struct{ ssh.PublicKey }

// expand replaces the tokens of sshd_config(5) in one pass. key may be nil.
func expand(s string, u *User, key ssh.PublicKey) string {
	pairs := []string{"%%", "%", "%u", u.Name, "%h", u.Home, "%U", strconv.Itoa(u.UID)}
	if key != nil {
		text := strings.Fields(string(ssh.MarshalAuthorizedKey(key)))
		pairs = append(pairs, "%t", key.Type(), "%f", fingerprint(key), "%k", text[1])
		if cert, ok := key.(*ssh.Certificate); ok {
			pairs = append(pairs, "%i", cert.KeyId, "%s", strconv.FormatUint(cert.Serial, 10))
		}
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// fingerprint returns the fingerprint of a key, or of a certificate's key.
func fingerprint(key ssh.PublicKey) string {
	if u, ok := key.(unverified); ok {
		key = u.PublicKey
	}
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key
	}
	return ssh.FingerprintSHA256(key)
}
