package loginnode_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
)

// A user's fork bomb ends at that user's limit: another user can log in and run
// commands all the time. It runs in a cgroup of the test that limits it if the login
// node does not.
func TestForkBombAffectsItsUserOnly(t *testing.T) {
	needRoot(t)
	group := boundedGroup(t, 400)
	n := start(t) // for its users and keys
	ann, bob := n.ann(), n.bob()
	hostKey, host := n.writeKey("host")
	n.must(os.Mkdir(filepath.Join(n.dir, "hostkeys"), 0o700))
	n.must(os.Rename(host, filepath.Join(n.dir, "hostkeys", "key")))
	addr, config := freeAddress(t), filepath.Join(n.dir, "loginnode.yaml")
	n.must(os.WriteFile(config, fmt.Appendf(nil, `
listen: [%q]
hostKeys: %[2]s/hostkeys
runDir: %[2]s/run2
userProcesses: "%[3]d"
users: [{files: {passwd: %[2]s/passwd, group: %[2]s/group}}]
`, addr, n.dir, bombLimit), 0o600))
	self, err := os.Executable()
	n.must(err)
	// A shell that is in the group before it becomes the program.
	cmd := exec.Command("/bin/sh", "-c", `echo $$ > "$1/cgroup.procs" && shift && exec "$@"`, "sh", group, self, asProgram, "--config", config)
	var log lockedBuffer
	cmd.Stderr = &log
	n.must(cmd.Start())
	t.Cleanup(func() { emptyGroup(t, group); _ = cmd.Wait(); n.must(os.Remove(group)) })
	eventually.Holds(t, "the program listens", func() bool { return strings.Contains(log.String(), "listening") })
	n.addr, n.host = addr, hostKey

	before := slowest(n, bob)
	bomb, err := n.dial(ann.Name, ann.key)
	n.must(err)
	defer bomb.Close()
	s, err := bomb.NewSession()
	n.must(err)
	n.must(s.Start("bomb() { bomb | bomb & }; bomb; sleep 300"))
	// A session alone has few processes.
	eventually.Holds(t, "the bomb has reached its user's limit", func() bool { return processesOf(group, ann.UID) >= bombLimit*3/4 })
	during := slowest(n, bob)
	if got := processesOf(group, ann.UID); got > bombLimit {
		t.Errorf("%d processes of a user who may have %d", got, bombLimit)
	}
	t.Logf("the slowest of ten logins with a command of another user: %v, beside the bomb: %v", before, during)
}

// bombLimit is the limit of processes in the test.
const bombLimit = 100

// boundedGroup creates a cgroup, of version 1 or 2, with a limit of processes.
func boundedGroup(t *testing.T, most int) string {
	t.Helper()
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		dir := filepath.Join(root, "berth-bomb-"+itoa(os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		if f, err := os.OpenFile(filepath.Join(dir, "pids.max"), os.O_WRONLY, 0); err == nil {
			_, err = f.WriteString(itoa(most))
			if f.Close() == nil && err == nil {
				return dir
			}
		}
		_ = os.Remove(dir)
	}
	t.Skip("needs a cgroup with a limit of processes, so that the bomb is limited in any case")
	return ""
}

// members returns the processes of a group.
func members(group string) (pids []int) {
	data, _ := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	for _, f := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			pids = append(pids, pid)
		}
	}
	return pids
}

func processesOf(group string, uid int) (count int) {
	for _, pid := range members(group) {
		var st syscall.Stat_t
		if syscall.Stat("/proc/"+itoa(pid), &st) == nil && int(st.Uid) == uid {
			count++
		}
	}
	return count
}

// emptyGroup kills all processes of a group, in which no more may be created in the
// meantime.
func emptyGroup(t *testing.T, group string) {
	t.Helper()
	_ = os.WriteFile(filepath.Join(group, "pids.max"), []byte("0"), 0o644)
	eventually.Holds(t, "the bomb ends", func() bool {
		all := members(group)
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(all) == 0
	})
}

// slowest returns the longest of ten logins with a command that starts a process.
func slowest(n *node, p *person) (most time.Duration) {
	n.t.Helper()
	for range 10 {
		began := time.Now()
		c, err := ssh.Dial("tcp", n.addr, &ssh.ClientConfig{
			User: p.Name, Auth: []ssh.AuthMethod{ssh.PublicKeys(p.key)}, HostKeyCallback: ssh.FixedHostKey(n.host.PublicKey()), Timeout: deadline,
		})
		n.must(err)
		if got := run(n.t, c, "/bin/echo in; true"); got != "in" {
			n.t.Fatalf("%s: %q", p.Name, got)
		}
		c.Close()
		most = max(most, time.Since(began))
	}
	return most
}
