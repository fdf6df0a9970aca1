package loginnode_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// A user who may no longer log in loses the connections, and what the configuration ends
// beside them; others keep theirs.
func TestRevokedUserLosesSessions(t *testing.T) {
	var revoked atomic.Value
	revoked.Store("")
	ended := make(chan string, 100)
	n := start(t, func(c *loginnode.Config) {
		c.Revoked = func(u *auth.User) bool { return u.Name == revoked.Load() }
		c.EndProcesses = func(u *auth.User) error {
			select {
			case ended <- u.Name:
			default:
			}
			return nil
		}
	})
	c := n.login(n.ann())
	s, err := c.NewSession()
	n.must(err)
	pid := filepath.Join(n.ann().Home, "pid")
	n.must(s.Start("echo $$ >pid; sleep 1000"))
	eventually.Holds(t, "the session runs", func() bool { text, err := os.ReadFile(pid); return err == nil && len(text) > 1 })
	text, err := os.ReadFile(pid)
	n.must(err)
	process, err := strconv.Atoi(strings.TrimSpace(string(text)))
	n.must(err)
	revoked.Store("ann")
	if err := c.Wait(); err == nil {
		t.Error("the connection ended as if the client had closed it")
	}
	eventually.Holds(t, "the process of the session has ended", func() bool { return syscall.Kill(process, 0) != nil })
	if name := <-ended; name != "ann" {
		t.Errorf("processes of %s were ended", name)
	}
	if r := n.audit.find(t, "revoked"); len(r) == 0 || r[0].User != "ann" {
		t.Errorf("audit %+v", r)
	}
	revoked.Store("")
	if out := n.output(n.ann(), "echo again"); out != "again" {
		t.Errorf("%q", out)
	}
	if isRoot() {
		other := n.login(n.bob())
		revoked.Store("ann")
		_ = n.login(n.ann()).Wait()
		if out := run(t, other, "echo still"); out != "still" {
			t.Errorf("%q", out)
		}
	}
}

// The pod of a revoked user is deleted, even if nobody is connected.
func TestRevokedUserLosesThePod(t *testing.T) {
	var revoked atomic.Bool
	removed := make(chan string, 100)
	n, _ := withPods(t, func(c *loginnode.Config) {
		c.Revoked = func(u *auth.User) bool { return revoked.Load() && u.Name == "ann" }
		c.Pods.Remove = func(_ context.Context, name string) error {
			removed <- name
			return nil
		}
	})
	c := n.login(n.ann())
	run(t, c, "true")
	c.Close()
	eventually.Holds(t, "the connection has ended", func() bool { return len(n.audit.find(t, "logout")) > 0 })
	revoked.Store(true)
	if name := <-removed; !slices.Contains([]string{"pod-ann1"}, name) {
		t.Errorf("the pod %s was removed", name)
	}
	revoked.Store(false)
}
