package loginnode_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/exectest"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/session"
)

// token is a FIDO authenticator in software (PROTOCOL.u2f): its signatures contain whether it
// was touched.
type token struct {
	public    ssh.PublicKey
	algorithm string
	sign      func(data []byte) []byte
	touched   bool
}

const application = "ssh:"

// newTokens makes one of each kind of key that authenticators have.
func newTokens(t *testing.T) []*token {
	t.Helper()
	parse := func(data []byte) ssh.PublicKey {
		key, err := ssh.ParsePublicKey(data)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edwards := parse(ssh.Marshal(struct {
		Name        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, public, application}))
	nist, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := nist.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	weierstrass := parse(ssh.Marshal(struct {
		Name, Curve string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKECDSA256, "nistp256", point, application}))
	return []*token{
		{public: edwards, algorithm: ssh.KeyAlgoSKED25519, sign: func(data []byte) []byte { return ed25519.Sign(private, data) }},
		{public: weierstrass, algorithm: ssh.KeyAlgoSKECDSA256, sign: func(data []byte) []byte {
			digest := sha256.Sum256(data)
			r, s, err := ecdsa.Sign(rand.Reader, nist, digest[:])
			if err != nil {
				t.Error(err)
				return nil
			}
			return ssh.Marshal(struct{ R, S *big.Int }{r, s})
		}},
	}
}

func (k *token) PublicKey() ssh.PublicKey { return k.public }

func (k *token) Sign(rnd io.Reader, data []byte) (*ssh.Signature, error) {
	return k.SignWithAlgorithm(rnd, data, k.algorithm)
}

func (k *token) SignWithAlgorithm(_ io.Reader, data []byte, _ string) (*ssh.Signature, error) {
	app, message := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	counter := []byte{0}
	if k.touched {
		counter[0] = 1
	}
	counter = binary.BigEndian.AppendUint32(counter, 7)
	signed := append(append(append([]byte{}, app[:]...), counter...), message[:]...)
	return &ssh.Signature{Format: k.algorithm, Blob: k.sign(signed), Rest: counter}, nil
}

func TestFIDOKeysNeedATouch(t *testing.T) {
	n := start(t)
	for _, k := range newTokens(t) {
		line := string(ssh.MarshalAuthorizedKey(k.public))
		for _, c := range []struct {
			options       string
			touched, want bool
		}{{"", true, true}, {"", false, false}, {"no-touch-required ", false, true}, {"verify-required ", true, false}} {
			n.authorize(n.ann(), c.options+line)
			k.touched = c.touched
			conn, err := n.dial("ann", k)
			if (err == nil) != c.want {
				t.Errorf("%s: %+v: %v", k.algorithm, c, err)
			}
			if err == nil {
				conn.Close()
			}
		}
	}
}

func TestResourceLimits(t *testing.T) {
	n := start(t, func(c *loginnode.Config) {
		c.Session.Limits = []session.Limit{{Resource: unix.RLIMIT_NOFILE, Soft: 99, Hard: 100}, {Resource: unix.RLIMIT_CORE}}
	})
	if got := n.output(n.ann(), "ulimit -Sn; ulimit -Hn; ulimit -c"); got != "99\n100\n0" {
		t.Errorf("%q", got)
	}
}

func TestPrincipals(t *testing.T) {
	ca, key := newKey(t), newKey(t)
	n := start(t, func(c *loginnode.Config) {
		dir := filepath.Dir(c.RunDir)
		c.Auth.TrustedCAs, c.Auth.PrincipalsFile = filepath.Join(dir, "ca"), filepath.Join(dir, "principals-%u")
		c.Auth.LaxModes = true // the directory is in /tmp
		for name, text := range map[string]string{
			"ca": string(ssh.MarshalAuthorizedKey(ca.PublicKey())), "principals-ann": "# comment\nstaff # of the group\ncommand=\"id\" bound\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !isRoot() {
			return
		}
		script := filepath.Join(dir, "script")
		exectest.Write(t, script, "#!/bin/sh\n[ \"$1\" = 'id of ann' ] && id -u && echo by-command\n")
		c.Auth.PrincipalsCommand = []string{script, "%i"}
		c.Auth.KeysCommandUser.UID, c.Auth.KeysCommandUser.GID = 65534, 65534
	})
	want := map[string]bool{"staff": true, "ann": false, "bound": false, "other": false}
	if isRoot() {
		want["by-command"], want["65534"] = true, true
	}
	for principal, in := range want {
		c, err := n.dial("ann", certificate(t, ca, key, func(c *ssh.Certificate) { c.ValidPrincipals = []string{principal} }))
		if (err == nil) != in {
			t.Errorf("%s: %v", principal, err)
		}
		if err == nil {
			c.Close()
		}
	}
}

// A user's own authorized_keys may trust an authority as well.
func TestCertAuthorityLine(t *testing.T) {
	ca, key := newKey(t), newKey(t)
	n := start(t)
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(ca.PublicKey())))
	for options, want := range map[string]bool{
		"cert-authority ": true, "": false, `cert-authority,principals="x,ann" `: true, `cert-authority,principals="x" `: false,
		`cert-authority,from="192.0.2.1" `: false,
	} {
		n.authorize(n.ann(), options+line)
		c, err := n.dial("ann", certificate(t, ca, key, nil))
		if (err == nil) != want {
			t.Errorf("%q: %v", options, err)
		}
		if err == nil {
			c.Close()
		}
		if c, err := n.dial("ann", certificate(t, ca, key, func(c *ssh.Certificate) { c.ValidPrincipals = nil })); err == nil {
			c.Close()
			t.Errorf("%q: the login succeeded without principals", options)
		}
	}
}
