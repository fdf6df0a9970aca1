package loginnode_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// A source that hangs for one user refuses that login after a time, with the reason in
// the log, and does not delay others in the meantime.
func TestSourceThatHangs(t *testing.T) {
	lookups := make(chan bool, 16)
	n := start(t, func(c *loginnode.Config) {
		inner := c.Auth.Users
		c.Auth.Timeout = 5 * time.Second
		c.Auth.Users = auth.DirectoryFunc(func(ctx context.Context, name string) (*auth.User, error) {
			if name != "stuck" {
				return inner.Lookup(ctx, name)
			}
			lookups <- true
			<-ctx.Done()
			return nil, ctx.Err()
		})
	})
	answer := make(chan error, 1)
	go func() {
		_, err := n.dial("stuck", n.ann().key)
		answer <- err
	}()
	<-lookups
	if out := n.output(n.ann(), "echo in"); out != "in" {
		t.Errorf("ann meanwhile: %q", out)
	}
	select {
	case err := <-answer:
		t.Errorf("the login ended before the look-up: %v", err)
	default:
	}
	if err := <-answer; !refused(err) {
		t.Errorf("the login succeeded without an answer of the source, or the client got a detailed error: %v", err)
	}
	if !n.audit.logged("stuck: context deadline exceeded") {
		t.Error("the reason is not logged")
	}
}

// Malformed lines affect only the users that they name.
func TestMalformedLinesAffectOnlyTheirUsers(t *testing.T) {
	n := start(t)
	passwd := filepath.Join(n.dir, "passwd")
	good, err := os.ReadFile(passwd)
	n.must(err)
	broken := "cut:x:12\nnumber:x:abc:1::/h:/bin/sh\nhuge:x:99999999999:1::/h:/bin/sh\nminus:x:-1:1::/h:/bin/sh\n\x00\xff\n::::::\nann.evil\x1b:x:1:1::/:/bin/sh\n" +
		"long:x:" + strings.Repeat("1", 5<<20) + ":1::/h:/bin/sh\n"
	n.must(os.WriteFile(passwd, append([]byte(broken), good...), 0o644))
	n.authorize(n.ann(), "ssh-ed25519 AAAA broken\nno-such-option ssh-ed25519 AAAA\n\xff\xfe\n"+string(marshalKey(n.ann().key.PublicKey())))
	if out := n.output(n.ann(), "echo in"); out != "in" {
		t.Errorf("%q", out)
	}
	if !n.audit.logged("authorized_keys line 1 is ignored") {
		t.Error("the reason for ignoring the broken key is not logged")
	}
	for _, name := range []string{"cut", "number", "huge", "minus", "long"} {
		if _, err := n.dial(name, n.ann().key); !refused(err) {
			t.Errorf("%s could log in, or the client got a detailed error: %v", name, err)
		}
	}
	for _, reason := range []string{`cut: not a line of passwd(5): "cut:x:12"`, "number: strconv", "huge: strconv", "minus: strconv"} {
		if !n.audit.logged(reason) {
			t.Errorf("%q is not logged", reason)
		}
	}
}

// While files hang, as on a dead file server, logins are refused with a logged reason, the number
// of waiting threads is bounded, and running sessions continue.
func TestFilesThatHang(t *testing.T) {
	n := start(t, func(c *loginnode.Config) { c.Auth.Timeout = 200 * time.Millisecond })
	var before *ssh.Client
	eventually.Succeeds(t, "a login", func() (err error) { // on a busy machine it may take longer than the timeout
		before, err = n.dial("ann", n.ann().key)
		return err
	})
	defer before.Close()
	passwd := filepath.Join(n.dir, "passwd")
	good, err := os.ReadFile(passwd)
	n.must(err)
	n.must(os.Remove(passwd))
	n.must(unix.Mkfifo(passwd, 0o644)) // opening it waits for a writer
	had := threads(t)
	for range 2 * asuser.Many {
		if c, err := n.dial("ann", n.ann().key); err == nil {
			c.Close()
			t.Fatal("the login succeeded without an answer")
		}
	}
	if now := threads(t); now > had+asuser.Many+20 {
		t.Errorf("%d threads more", now-had)
	}
	if !n.audit.logged("ann: context deadline exceeded") {
		t.Error("the reason is not logged")
	}
	if got := run(t, before, "echo lives"); got != "lives" {
		t.Errorf("an earlier session: %q", got)
	}
	// The file server is back: pending reads continue.
	w, err := os.OpenFile(passwd, os.O_RDWR, 0)
	n.must(err)
	n.must(os.Remove(passwd))
	n.must(os.WriteFile(passwd, good, 0o644))
	n.must(w.Close())
	eventually.Holds(t, "logins succeed again", func() bool {
		c, err := n.dial("ann", n.ann().key)
		return err == nil && c.Close() == nil
	})
}
