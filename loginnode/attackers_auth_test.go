package loginnode_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// renamingClient is a client that changes its user name between attempts on one connection.
// Go's client keeps the name in a string, whose bytes this one changes.
type renamingClient struct{ name []byte }

func (s *renamingClient) user() string { return unsafe.String(&s.name[0], len(s.name)) }

// as is a signer that changes the client's name before its key is offered.
func (s *renamingClient) as(name string, signer ssh.Signer) ssh.Signer {
	return &renamingSigner{Signer: signer, do: func() { copy(s.name, name) }}
}

type renamingSigner struct {
	ssh.Signer
	do func()
}

func (r *renamingSigner) PublicKey() ssh.PublicKey { r.do(); return r.Signer.PublicKey() }

func (r *renamingSigner) SignWithAlgorithm(rnd io.Reader, data []byte, alg string) (*ssh.Signature, error) {
	return r.Signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rnd, data, alg)
}

func TestS01UserSwitch(t *testing.T) {
	needRoot(t)
	n := start(t)
	s := &renamingClient{name: []byte("bob")}
	if c, err := n.dial(s.user(), s.as("bob", newKey(t)), s.as("ann", n.bob().key)); err == nil {
		c.Close()
		t.Error("bob's key accepted for ann after an attempt as bob")
	}
	s = &renamingClient{name: []byte("ann")}
	c, err := n.dial(s.user(), s.as("ann", n.bob().key), s.as("bob", n.bob().key))
	n.must(err)
	defer c.Close()
	if got := run(t, c, "id -u"); got != itoa(n.bob().UID) {
		t.Errorf("bob's login runs as %s", got)
	}
	if in := n.audit.find(t, "login"); len(in) != 1 || in[0].User != "bob" || *in[0].UID != n.bob().UID {
		t.Errorf("audit: %+v", in)
	}
}

func TestS02NoChannelWithoutLogin(t *testing.T) {
	n := start(t)
	for name, methods := range map[string][]ssh.AuthMethod{
		"none": nil, "password": {ssh.Password("x")},
		"wrong key": {ssh.PublicKeys(newKey(t))},
	} {
		_, err := ssh.Dial("tcp", n.addr, &ssh.ClientConfig{User: "ann", Auth: methods, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: deadline})
		if err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
			t.Errorf("%s: %v", name, err)
		}
	}
	n.authorize(n.ann(), "")
	if _, err := n.dial("ann", n.ann().key); err == nil {
		t.Error("the login succeeded without any authorized key")
	}
	for _, cfg := range []loginnode.Config{
		{HostKeys: []ssh.Signer{n.host}},
		{Auth: &auth.Config{}, HostKeys: []ssh.Signer{n.host}},
		{Auth: &auth.Config{Users: auth.Files{}}},
	} {
		if _, err := loginnode.New(cfg); err == nil {
			t.Errorf("%+v: accepted", cfg)
		}
	}
}

func TestS02FailingSourceRefuses(t *testing.T) {
	for name, lookup := range map[string]auth.DirectoryFunc{
		"error": func(context.Context, string) (*auth.User, error) { return nil, errors.New("broken") },
		"hangs": func(ctx context.Context, _ string) (*auth.User, error) { <-ctx.Done(); return nil, ctx.Err() },
		"wrong": func(context.Context, string) (*auth.User, error) { return &auth.User{Name: "root", UID: 0}, nil },
		"panic": func(context.Context, string) (*auth.User, error) { panic("defect") },
	} {
		t.Run(name, func(t *testing.T) {
			n := start(t, func(c *loginnode.Config) {
				c.Auth.Users = auth.First{lookup, c.Auth.Users}
				c.Auth.Timeout = 300 * time.Millisecond
			})
			if _, err := n.dial("ann", n.ann().key); err == nil {
				t.Error("the login succeeded although the first source failed")
			}
		})
	}
}

// forger has a public key, but not its private one.
type forger struct {
	ssh.Signer
	real ssh.Signer
}

func (f *forger) SignWithAlgorithm(rnd io.Reader, data []byte, alg string) (*ssh.Signature, error) {
	return f.real.(ssh.AlgorithmSigner).SignWithAlgorithm(rnd, data, alg)
}

func TestS03OfferedKeyProvesNothing(t *testing.T) {
	needRoot(t)
	n := start(t)
	n.authorize(n.bob(), `command="echo forced" `+string(ssh.MarshalAuthorizedKey(n.bob().key.PublicKey())))
	stolen := &forger{Signer: n.bob().key, real: n.eve().key}
	if c, err := n.dial("bob", stolen); err == nil {
		c.Close()
		t.Fatal("a login with an unproven key succeeded")
	}
	// An attempt with bob's key, which is bound to a command, leaves no state.
	s := &renamingClient{name: []byte("ann")}
	c, err := n.dial(s.user(), s.as("ann", n.bob().key), s.as("ann", n.ann().key))
	n.must(err)
	defer c.Close()
	if got := run(t, c, "id -u"); got != itoa(n.ann().UID) {
		t.Errorf("got %q", got)
	}
}

// A key that the server would accept, but that the client does not prove, has no effect when
// another key is proven.
func TestS03KeyOfferedBeforeAnother(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	first, _ := n.writeKey("offered") // OpenSSH offers a key of which it has the public half
	n.must(os.Remove(filepath.Join(n.dir, "key-offered")))
	n.authorize(n.ann(), `command="echo forced" `+string(ssh.MarshalAuthorizedKey(first.PublicKey()))+string(ssh.MarshalAuthorizedKey(n.ann().key.PublicKey())))
	offered := *n.ann()
	offered.keyFile = filepath.Join(n.dir, "key-offered.pub")
	out, err := n.ssh(&offered, "-v", "-o", "LogLevel=DEBUG", "-i", n.ann().keyFile, "id -u").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\n"+itoa(n.ann().UID)) || strings.Contains(string(out), "\nforced") {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Count(string(out), "Server accepts key") != 2 {
		t.Errorf("the first key was not offered:\n%s", out)
	}
	if in := n.audit.find(t, "login"); len(in) != 1 || in[0].Fingerprint != ssh.FingerprintSHA256(n.ann().key.PublicKey()) {
		t.Errorf("audit: %+v", in)
	}
}

func certificate(t *testing.T, ca ssh.Signer, key ssh.Signer, change func(*ssh.Certificate)) ssh.Signer {
	t.Helper()
	cert := &ssh.Certificate{
		Key: key.PublicKey(), CertType: ssh.UserCert, Serial: 7, KeyId: "id of ann", ValidPrincipals: []string{"ann"},
		ValidAfter: uint64(time.Now().Add(-time.Hour).Unix()), ValidBefore: uint64(time.Now().Add(time.Hour).Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{"permit-pty": "", "permit-port-forwarding": ""}, CriticalOptions: map[string]string{}},
	}
	if change != nil {
		change(cert)
	}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewCertSigner(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestS04Certificates(t *testing.T) {
	ca, key, other := newKey(t), newKey(t), newKey(t)
	n := start(t, func(c *loginnode.Config) {
		dir := filepath.Dir(c.RunDir)
		c.Auth.TrustedCAs, c.Auth.RevokedKeys = filepath.Join(dir, "ca"), filepath.Join(dir, "revoked")
		for name, data := range map[string][]byte{c.Auth.TrustedCAs: ssh.MarshalAuthorizedKey(ca.PublicKey()), c.Auth.RevokedKeys: nil} {
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	})
	hour := func(d int) uint64 { return uint64(time.Now().Add(time.Duration(d) * time.Hour).Unix()) }
	for name, change := range map[string]func(*ssh.Certificate){
		"no principals":           func(c *ssh.Certificate) { c.ValidPrincipals = nil },
		"other principal":         func(c *ssh.Certificate) { c.ValidPrincipals = []string{"bob", "root"} },
		"host certificate":        func(c *ssh.Certificate) { c.CertType = ssh.HostCert },
		"expired":                 func(c *ssh.Certificate) { c.ValidBefore = hour(-1) },
		"not yet":                 func(c *ssh.Certificate) { c.ValidAfter = hour(1) },
		"unknown critical option": func(c *ssh.Certificate) { c.CriticalOptions["x@y"] = "" },
		"verify-required":         func(c *ssh.Certificate) { c.CriticalOptions["verify-required"] = "" },
		"source-address":          func(c *ssh.Certificate) { c.CriticalOptions["source-address"] = "10.0.0.0/8" },
		"source-address, empty":   func(c *ssh.Certificate) { c.CriticalOptions["source-address"] = "" },
	} {
		if c, err := n.dial("ann", certificate(t, ca, key, change)); err == nil {
			c.Close()
			t.Errorf("%s: the login succeeded", name)
		}
	}
	if c, err := n.dial("ann", certificate(t, other, key, nil)); err == nil {
		c.Close()
		t.Error("another authority: the login succeeded")
	}
	signer := certificate(t, ca, key, func(c *ssh.Certificate) { c.CriticalOptions["source-address"] = "127.0.0.0/8,::1" })
	c, err := n.dial("ann", signer)
	n.must(err)
	if got := run(t, c, "echo in"); got != "in" {
		t.Error(got)
	}
	c.Close()
	in := n.audit.find(t, "login")
	if len(in) != 1 || in[0].CertID != "id of ann" || in[0].CertSerial != 7 {
		t.Errorf("audit: %+v", in)
	}

	c, err = n.dial("ann", certificate(t, ca, key, func(c *ssh.Certificate) {
		c.CriticalOptions["force-command"] = "echo only this"
		delete(c.Extensions, "permit-pty")
	}))
	n.must(err)
	defer c.Close()
	if got := run(t, c, "id"); got != "only this" {
		t.Errorf("force-command: %q", got)
	}
	for _, kind := range []string{"shell", "sftp"} {
		s, err := c.NewSession()
		n.must(err)
		if s.RequestPty("xterm", 24, 80, nil) == nil {
			t.Error("a terminal without permit-pty")
		}
		out, err := s.StdoutPipe()
		n.must(err)
		if kind == "shell" {
			n.must(s.Shell())
		} else {
			n.must(s.RequestSubsystem("sftp"))
		}
		data, _ := io.ReadAll(out)
		if string(data) != "only this\n" {
			t.Errorf("%s: %q", kind, data)
		}
	}
	n.must(os.WriteFile(filepath.Join(n.dir, "revoked"), ssh.MarshalAuthorizedKey(key.PublicKey()), 0o644))
	if _, err := n.dial("ann", signer); err == nil {
		t.Error("a revoked key's certificate: the login succeeded")
	}
	n.must(os.WriteFile(filepath.Join(n.dir, "revoked"), []byte("SSHKRL\n\x00broken"), 0o644))
	if _, err := n.dial("ann", n.ann().key); err == nil {
		t.Error("a list of revoked keys that cannot be read revokes nothing")
	}
}

func TestS12KeyFilesAndOptions(t *testing.T) {
	n := start(t)
	ann := n.ann()
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(ann.key.PublicKey())))
	enters := func() bool {
		c, err := n.dial("ann", ann.key)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
	for options, want := range map[string]bool{
		"":                             true,
		`from="127.0.0.0/8" `:          true,
		`from="10.*,!127.0.0.1" `:      false,
		`from="*,!127.0.0.1" `:         false,
		`from="192.0.2.1" `:            false,
		`expiry-time="20200101" `:      false,
		`expiry-time="20990101Z" `:     true,
		`verify-required `:             false,
		`no-such-option `:              false,
		`cert-authority `:              false,
		`restrict,pty,command="true" `: true,
	} {
		n.authorize(ann, "# comment\n\nbroken line\n"+options+line+"\n")
		if enters() != want {
			t.Errorf("%q: the login succeeded: %v", options, !want)
		}
	}
	n.authorize(ann, `restrict,command="echo $SSH_ORIGINAL_COMMAND" `+line)
	c := n.login(ann)
	if got := run(t, c, "id -u"); got != "id -u" {
		t.Errorf("command=: %q", got)
	}
	s, err := c.NewSession()
	n.must(err)
	if s.RequestPty("xterm", 24, 80, nil) == nil {
		t.Error("restrict allows a terminal")
	}
	if _, err := c.Dial("tcp", n.addr); err == nil {
		t.Error("restrict allows forwarding")
	}
	n.authorize(ann, `permitopen="192.0.2.7:22" `+line)
	if _, err := n.login(ann).Dial("tcp", n.addr); err == nil {
		t.Error("forwarding to an address that permitopen does not name")
	}

	file, dir := filepath.Join(ann.Home, ".ssh", "authorized_keys"), filepath.Join(ann.Home, ".ssh")
	mode := func(name string, m os.FileMode) { n.must(os.Chmod(name, m)) }
	for what, change := range map[string]func(){
		"group may write the file":      func() { mode(file, 0o660) },
		"others may write the file":     func() { mode(file, 0o602) },
		"group may write the directory": func() { mode(dir, 0o770) },
		"group may write the home":      func() { mode(ann.Home, 0o720) },
		"a link": func() {
			n.must(os.Rename(file, file+".real"))
			n.must(os.Symlink(file+".real", file))
		},
		"a link on the way": func() {
			n.must(os.Rename(dir, dir+".real"))
			n.must(os.Symlink(dir+".real", dir))
		},
		"a FIFO": func() {
			n.must(os.Remove(file))
			n.must(syscall.Mkfifo(file, 0o600))
		},
		"a directory": func() {
			n.must(os.Remove(file))
			n.must(os.Mkdir(file, 0o700))
		},
		"10 MB": func() { n.authorize(ann, strings.Repeat("# nothing\n", 1<<20)+line) },
	} {
		n.must(os.RemoveAll(dir))
		n.must(os.RemoveAll(dir + ".real"))
		n.must(os.Mkdir(dir, 0o700))
		mode(ann.Home, 0o700)
		n.authorize(ann, line)
		if isRoot() {
			n.must(os.Chown(dir, ann.UID, ann.GID))
		}
		if !enters() {
			t.Fatalf("before %s: the login failed", what)
		}
		change()
		if enters() {
			t.Errorf("%s: the login succeeded", what)
		}
	}
	if !isRoot() {
		return
	}
	n.must(os.RemoveAll(file))
	n.authorize(ann, line)
	n.must(os.Chown(file, n.eve().UID, n.eve().GID))
	if enters() {
		t.Error("a file of another user: the login succeeded")
	}
}

func TestTwoUsersWithOneUIDAreRefused(t *testing.T) {
	needRoot(t)
	n := start(t)
	f, err := os.OpenFile(filepath.Join(n.dir, "passwd"), os.O_APPEND|os.O_WRONLY, 0)
	n.must(err)
	_, err = f.WriteString("twin:x:" + itoa(n.ann().UID) + ":1::/home/twin:/bin/sh\nmalformed:line\n")
	n.must(errors.Join(err, f.Close()))
	if _, err := n.dial("ann", n.ann().key); !refused(err) {
		t.Errorf("ann shares a uid and could log in, or the client got a detailed error: %v", err)
	}
	if !n.audit.logged("same uid") {
		t.Error("the reason is not logged")
	}
	if got := n.output(n.bob(), "echo others go on"); got != "others go on" {
		t.Error(got)
	}
}

func TestShellThatDoesNotExistIsRefused(t *testing.T) {
	n := start(t, func(c *loginnode.Config) {
		inner := c.Auth.Users
		c.Auth.Users = auth.DirectoryFunc(func(ctx context.Context, name string) (*auth.User, error) {
			u, err := inner.Lookup(ctx, name)
			if err == nil && name == "ann" {
				u.Shell = "/no/such/shell"
			}
			return u, err
		})
	})
	if _, err := n.dial("ann", n.ann().key); !refused(err) {
		t.Errorf("the login succeeded, or the client got a detailed error: %v", err)
	}
	if isRoot() && n.output(n.bob(), "echo in") != "in" {
		t.Error("another user is refused as well")
	}
	if !n.audit.logged("/no/such/shell") {
		t.Error("the reason is not logged")
	}
}

func TestRootMayNotLogInUnlessPermitted(t *testing.T) {
	needRoot(t)
	key := newKey(t)
	root := auth.DirectoryFunc(func(_ context.Context, name string) (*auth.User, error) {
		return &auth.User{Name: name, UID: 0, Home: "/root", Shell: "/bin/sh", Keys: []string{string(ssh.MarshalAuthorizedKey(key.PublicKey()))}}, nil
	})
	for _, permit := range []bool{false, true} {
		n := start(t, func(c *loginnode.Config) { c.Auth.Users, c.Auth.PermitRoot = root, permit })
		c, err := n.dial("root", key)
		if (err == nil) != permit {
			t.Errorf("permitted %v: %v", permit, err)
		}
		if err == nil {
			c.Close()
		}
	}
}
