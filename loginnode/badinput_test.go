package loginnode_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/asuser"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// A source that hangs for one user refuses that login after a time, with the reason in
// the log, and does not delay others in the meantime.
func TestSourceThatHangs(t *testing.T) {
	asked := make(chan bool, 16)
	n := start(t, func(c *loginnode.Config) {
		inner := c.Auth.Users
		c.Auth.Timeout = 5 * time.Second
		c.Auth.Users = auth.DirectoryFunc(func(ctx context.Context, name string) (*auth.User, error) {
			if name != "stuck" {
				return inner.Lookup(ctx, name)
			}
			asked <- true
			<-ctx.Done()
			return nil, ctx.Err()
		})
	})
	answer := make(chan error, 1)
	go func() {
		_, err := n.dial("stuck", n.ann().key)
		answer <- err
	}()
	<-asked
	if out := n.output(n.ann(), "echo in"); out != "in" {
		t.Errorf("ann meanwhile: %q", out)
	}
	select {
	case err := <-answer:
		t.Errorf("the answer did not wait for the source: %v", err)
	default:
	}
	if err := <-answer; !refused(err) {
		t.Errorf("let in without an answer of the source, or told more than that: %v", err)
	}
	if !n.audit.logged("stuck: context deadline exceeded") {
		t.Error("no reason in the log")
	}
}

// Malformed lines affect only the users that they name.
func TestMalformedSourcesCostOnlyTheirOwn(t *testing.T) {
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
		t.Error("no reason for the broken key in the log")
	}
	for _, name := range []string{"cut", "number", "huge", "minus", "long"} {
		if _, err := n.dial(name, n.ann().key); !refused(err) {
			t.Errorf("%s was let in, or told more than that: %v", name, err)
		}
	}
	for _, reason := range []string{`cut: not a line of passwd(5): "cut:x:12"`, "number: strconv", "huge: strconv", "minus: strconv"} {
		if !n.audit.logged(reason) {
			t.Errorf("the log does not say %q", reason)
		}
	}
}

// Files that hang, as on a dead file server, refuse the login with a reason, cost
// a bounded number of threads, and no session that runs.
func TestFilesThatHang(t *testing.T) {
	n := start(t, func(c *loginnode.Config) { c.Auth.Timeout = 200 * time.Millisecond })
	before := n.login(n.ann())
	passwd := filepath.Join(n.dir, "passwd")
	good, err := os.ReadFile(passwd)
	n.must(err)
	n.must(os.Remove(passwd))
	n.must(unix.Mkfifo(passwd, 0o644)) // opening it waits for a writer
	had := threads(t)
	for range 2 * asuser.Many {
		if c, err := n.dial("ann", n.ann().key); err == nil {
			c.Close()
			t.Fatal("let in without an answer")
		}
	}
	if now := threads(t); now > had+asuser.Many+20 {
		t.Errorf("%d threads more", now-had)
	}
	if !n.audit.logged("ann: context deadline exceeded") {
		t.Error("no reason in the log")
	}
	if got := run(t, before, "echo lives"); got != "lives" {
		t.Errorf("a session of before: %q", got)
	}
	// The file server is back: pending reads continue.
	w, err := os.OpenFile(passwd, os.O_RDWR, 0)
	n.must(err)
	n.must(os.Remove(passwd))
	n.must(os.WriteFile(passwd, good, 0o644))
	n.must(w.Close())
	eventually.Holds(t, "logins again", func() bool {
		c, err := n.dial("ann", n.ann().key)
		return err == nil && c.Close() == nil
	})
}
