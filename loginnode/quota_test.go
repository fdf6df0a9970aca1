package loginnode_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// One user has a limited share of the server over all connections, which is free again when
// they end.
func TestUserHasAShareOfTheServer(t *testing.T) {
	n := start(t, func(c *loginnode.Config) { c.MaxUserConnections, c.MaxUserChannels = 3, 5 })
	l := listenTCP(t)
	counter(t, l)
	one, two := n.login(n.ann()), n.login(n.ann())
	var flows []net.Conn
	for range 3 {
		c, err := one.Dial("tcp", l.Addr().String())
		n.must(err)
		flows = append(flows, c)
	}
	for range 2 {
		_, err := two.NewSession()
		n.must(err)
	}
	var open *ssh.OpenChannelError
	if _, err := two.NewSession(); !asError(err, &open) || open.Reason != ssh.ResourceShortage {
		t.Errorf("a sixth channel, a session: %v", err)
	}
	if _, err := two.Dial("tcp", l.Addr().String()); !asError(err, &open) || open.Reason != ssh.ResourceShortage {
		t.Errorf("a sixth channel, forwarded: %v", err)
	}
	flows[0].Close()
	eventually.Holds(t, "a channel can be opened", func() bool {
		s, err := two.NewSession()
		return err == nil && s.Close() == nil
	})
	if got := n.output(n.ann(), "echo third"); got != "third" {
		t.Error(got)
	}
	in := func() bool {
		c, err := n.dial("ann", n.ann().key)
		if err != nil {
			return false
		}
		defer c.Close()
		s, err := c.NewSession()
		return err == nil && s.Run("true") == nil
	}
	eventually.Holds(t, "a fourth connection is refused", func() bool { return !in() })
	refused := n.audit.find(t, "refused")
	if len(refused) == 0 || refused[0].User != "ann" || !strings.Contains(refused[0].Reason, "3 connections") {
		t.Errorf("audit: %+v", refused)
	}
	if isRoot() && n.output(n.bob(), "echo in") != "in" {
		t.Error("another user is refused as well")
	}
	one.Close()
	eventually.Holds(t, "a connection is possible after another has ended", in)
}

// Two names with one uid from two sources never meet: each would have the
// other's credential.
func TestOneUIDHasOneNameAtATime(t *testing.T) {
	n := start(t, func(c *loginnode.Config) {
		inner := c.Auth.Users
		c.Auth.Users = auth.DirectoryFunc(func(ctx context.Context, name string) (*auth.User, error) {
			if name != "twin" {
				return inner.Lookup(ctx, name)
			}
			u, err := inner.Lookup(ctx, "ann")
			if err == nil {
				u.Name = "twin"
			}
			return u, err
		})
		c.Identity = func(_ context.Context, u *auth.User) (*loginnode.Credential, error) {
			return &loginnode.Credential{Files: map[string]string{"token": u.Name}, Env: []string{"KUBECONFIG=%d/token"}}, nil
		}
	})
	ann := n.login(n.ann())
	if got := run(t, ann, "cat $KUBECONFIG"); got != "ann" {
		t.Fatalf("%q", got)
	}
	twin, err := n.dial("twin", n.ann().key)
	if err == nil {
		defer twin.Close()
		if s, err := twin.NewSession(); err == nil {
			out, _ := s.CombinedOutput("cat $KUBECONFIG")
			t.Errorf("the twin is let in, and reads %q", out)
		}
	}
	eventually.Holds(t, "the reason in the audit log", func() bool {
		r := n.audit.find(t, "refused")
		return len(r) > 0 && r[0].User == "twin" && strings.Contains(r[0].Reason, "that of user ann")
	})
	// ann has disconnected; what the server still holds for her does not count for the
	// twin.
	ann.Close()
	eventually.Holds(t, "the twin to get in or be refused, but never as ann", func() bool {
		c, err := n.dial("twin", n.ann().key)
		if err != nil {
			return false
		}
		defer c.Close()
		s, err := c.NewSession()
		if err != nil {
			return false
		}
		out, err := s.CombinedOutput("cat $KUBECONFIG")
		if err == nil && string(out) != "twin" {
			t.Errorf("the twin reads %q", out)
		}
		return true
	})
}
