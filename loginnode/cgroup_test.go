package loginnode_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/session"
)

// cgroupParent returns a directory of a cgroup2 hierarchy for this test. The test is
// skipped if there is none that can be written.
func cgroupParent(t *testing.T) string {
	needRoot(t)
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		var st unix.Statfs_t
		if unix.Statfs(root, &st) != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		parent := filepath.Join(root, "berth-test-"+itoa(os.Getpid()))
		if err := os.Mkdir(parent, 0o755); err != nil {
			t.Skipf("no cgroup can be created: %v", err)
		}
		t.Cleanup(func() { _ = os.Remove(parent) })
		return parent
	}
	t.Skip("needs a cgroup2 hierarchy")
	return ""
}

// All of a user's sessions run in the user's cgroup from the first instruction on. It
// is removed after the last of them, and its limits apply if the controllers are in
// that hierarchy.
func TestSessionsRunInTheUsersCgroup(t *testing.T) {
	parent := cgroupParent(t)
	groups := &session.Cgroups{Parent: parent, CPU: "20000 100000", Memory: "64M", PIDs: "16"}
	missing := groups.Ready()
	if missing != nil {
		groups = &session.Cgroups{Parent: parent}
	}
	n := start(t, func(c *loginnode.Config) { c.Session.Place = groups.Place })
	for _, p := range n.users[:2] {
		own := "/user-" + itoa(p.UID)
		out := n.output(p, "grep ^0:: /proc/self/cgroup; sh -c 'grep ^0:: /proc/self/cgroup'")
		lines := strings.Split(out, "\n")
		if len(lines) != 2 || !strings.HasSuffix(lines[0], own) || lines[0] != lines[1] {
			t.Errorf("%s runs in %q", p.Name, out)
		}
	}
	eventually.Holds(t, "the empty cgroups are removed", func() bool {
		left, err := filepath.Glob(filepath.Join(parent, "user-*"))
		return err == nil && len(left) == 0
	})
	if missing != nil {
		t.Logf("the limits were not tested: %v", missing)
		return
	}
	if out := n.output(n.ann(), "(for i in $(seq 20); do sleep 5 & done; wait) 2>&1; true"); !strings.Contains(out, "fork") {
		t.Errorf("more processes than allowed: %q", out)
	}
	if out := n.output(n.ann(), "(head -c 200M /dev/zero | tail -c 150M | wc -c) 2>&1; true"); strings.Contains(out, "157286400") {
		t.Errorf("more memory than allowed: %q", out)
	}
	stat := filepath.Join(parent, "user-"+itoa(n.ann().UID), "cpu.stat")
	out := n.output(n.ann(), "timeout 2 sh -c 'while :; do :; done'; cat "+stat)
	if !strings.Contains(out, "nr_throttled") || strings.Contains(out, "nr_throttled 0") {
		t.Errorf("more CPU than allowed: %q", out)
	}
}

// A server in the delegated group itself moves to a child: a group with processes
// cannot enable controllers for its children.
func TestDelegatedCgroupIsPrepared(t *testing.T) {
	parent := cgroupParent(t)
	groups := &session.Cgroups{Parent: parent, PIDs: "64"}
	inside := exec.Command("sleep", "1000")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(inside.Start())
	t.Cleanup(func() { _ = inside.Process.Kill(); _ = inside.Wait(); _ = os.Remove(filepath.Join(parent, "server")) })
	pid := itoa(inside.Process.Pid)
	must(os.WriteFile(filepath.Join(parent, "cgroup.procs"), []byte(pid), 0o600))
	must(os.Mkdir(filepath.Join(parent, "user-1"), 0o755)) // an earlier server's
	if err := groups.Ready(); err != nil {
		if strings.Contains(err.Error(), "no controller pids") {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(parent, "server", "cgroup.procs"))
	if err != nil || strings.TrimSpace(string(data)) != pid {
		t.Errorf("moved: %q, %v", data, err)
	}
	// A child of a group that contains processes could not contain any.
	_, done, err := groups.Place(&auth.User{Name: "ann", UID: 7})
	must(err)
	must(os.WriteFile(filepath.Join(parent, "user-7", "cgroup.procs"), []byte(pid), 0o600))
	must(os.WriteFile(filepath.Join(parent, "server", "cgroup.procs"), []byte(pid), 0o600))
	done()
	left, _ := filepath.Glob(filepath.Join(parent, "*-*"))
	if on, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control")); err != nil || strings.TrimSpace(string(on)) != "pids" || len(left) != 0 {
		t.Errorf("controllers of the children: %q, %v; left: %v", on, err, left)
	}
	bad := &session.Cgroups{Parent: parent, PIDs: "many"}
	if err := bad.Ready(); err == nil || !strings.Contains(err.Error(), "many") {
		t.Errorf("an invalid limit is accepted: %v", err)
	}
}
