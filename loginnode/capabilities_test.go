package loginnode_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/agent"

	"github.com/berth-hpc/berth/internal/eventually"
)

// chartCapabilities are those that the chart gives the login node's pod.
func chartCapabilities(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("../deploy/chart/templates/login.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`capabilities: \{drop: \[ALL\], add: \[(.*)\]\}`).FindSubmatch(data)
	if m == nil {
		t.Fatal("the chart's login pod adds no capabilities")
	}
	return strings.Split(string(m[1]), ", ")
}

// All functions of the login node work with the capabilities of the chart's pod, and without any
// one of them at least one function fails.
func TestCapabilitiesOfThePodAreExact(t *testing.T) {
	needRoot(t)
	have(t, "setpriv", "ssh", "sftp")
	all := chartCapabilities(t)
	if failed := withCapabilities(t, all); len(failed) > 0 {
		t.Errorf("with %v: %v", all, failed)
	}
	for i, one := range all {
		less := slices.Delete(slices.Clone(all), i, i+1)
		if failed := withCapabilities(t, less); len(failed) == 0 {
			t.Errorf("nothing is missing without %s", one)
		}
	}
	doc, err := os.ReadFile("../docs/login-node.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
	if !strings.Contains(string(doc), text) {
		t.Errorf("docs/login-node.md does not contain %q", text)
	}
}

// withCapabilities starts the program with only those capabilities and returns the functions
// that fail.
func withCapabilities(t *testing.T, caps []string) (failed []string) {
	n := start(t) // for its users and keys
	ann := n.ann()
	hostKey, host := n.writeKey("host")
	n.must(os.Mkdir(filepath.Join(n.dir, "hostkeys"), 0o700))
	data, err := os.ReadFile(host)
	n.must(err)
	n.must(os.WriteFile(filepath.Join(n.dir, "hostkeys", "key"), data, 0o600))
	// bob's home does not exist yet, so his key is elsewhere.
	n.must(os.RemoveAll(n.bob().Home))
	keys := filepath.Join(n.dir, "keys-bob")
	public, err := os.ReadFile(n.bob().keyFile + ".pub")
	n.must(err)
	n.must(os.WriteFile(keys, public, 0o644))
	addr := freeAddress(t)
	config := filepath.Join(n.dir, "loginnode.yaml")
	n.must(os.WriteFile(config, fmt.Appendf(nil, `
listen: [%q]
hostKeys: %[2]s/hostkeys
runDir: %[2]s/run2
audit: %[2]s/audit
makeHome: true
perSourcePenalties: {disabled: true}
authorizedKeysFiles: [.ssh/authorized_keys, %[2]s/keys-%%u]
users: [{files: {passwd: %[2]s/passwd, group: %[2]s/group}}]
`, addr, n.dir), 0o600))
	set := "-all"
	for _, c := range caps {
		set += ",+" + strings.ToLower(c)
	}
	cmd := exec.Command("setpriv", "--bounding-set", set, "--inh-caps", "-all", "/proc/self/exe", asProgram, "--config", config)
	self, err := os.Executable()
	n.must(err)
	cmd.Args[len(cmd.Args)-4] = self
	var log lockedBuffer
	cmd.Stderr = &log
	n.must(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	eventually.Holds(t, "the program listens, or has ended", func() bool {
		select {
		case err := <-ended:
			ended <- err
			failed = append(failed, "start: "+log.String())
			return true
		default:
			return strings.Contains(log.String(), "listening")
		}
	})
	if len(failed) > 0 {
		return failed
	}
	n.addr, n.host = addr, hostKey
	try := func(what string, cmd *exec.Cmd, want string) {
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			failed = append(failed, fmt.Sprintf("%s: %v %q", what, err, out))
		}
	}
	try("a command", n.ssh(ann, "id -u; id -G; cat ~/.ssh/authorized_keys | wc -l"), itoa(ann.UID)+"\n"+itoa(ann.GID)+" "+itoa(firstUID+100)+"\n1\n")
	try("a terminal", n.ssh(ann, "-tt", "stat -c %U.%u.%a $(tty)"), "."+itoa(ann.UID)+".620")
	try("a home that is created", n.ssh(n.bob(), "stat -c %u . && touch file && ls"), itoa(n.bob().UID)+"\nfile")
	batch := filepath.Join(n.dir, "batch")
	n.must(os.WriteFile(batch, []byte("put "+config+" copy\nchmod 600 copy\nrm copy\n"), 0o644))
	try("sftp", n.tool("sftp", ann, "-b", batch, "-P", n.port(), ann.Name+"@127.0.0.1"), "")
	try("a socket", n.ssh(ann, "-R", ann.Home+"/sock:"+n.dir+"/nothing", "stat -c %u ~/sock"), itoa(ann.UID))
	if owner := agentOwner(n); owner != itoa(ann.UID) {
		failed = append(failed, "an agent: its socket is of "+owner)
	}
	if !hangup(t, n) {
		failed = append(failed, "a signal to a command whose client has disconnected")
	}
	return failed
}

// agentOwner returns the uid of a forwarded agent's socket, or an error message.
func agentOwner(n *node) string {
	c, err := n.dial("ann", n.ann().key)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	if err := agent.ForwardToAgent(c, agent.NewKeyring()); err != nil {
		return err.Error()
	}
	s, err := c.NewSession()
	if err != nil {
		return err.Error()
	}
	if err := agent.RequestAgentForwarding(s); err != nil {
		return err.Error()
	}
	out, err := s.CombinedOutput("stat -c %u $SSH_AUTH_SOCK")
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}

// hangup reports whether a command receives a signal when its client disconnects.
func hangup(t *testing.T, n *node) bool {
	c, err := n.dial("ann", n.ann().key)
	if err != nil {
		return false
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		return false
	}
	out, err := s.StdoutPipe()
	n.must(err)
	var pid int
	if s.Start("echo $$; sleep 300; true") != nil {
		return false
	}
	if _, err := fmt.Fscan(out, &pid); err != nil {
		return false
	}
	defer func() { _ = syscall.Kill(-pid, syscall.SIGKILL) }()
	c.Close() // without a disconnect message
	eventually.Holds(t, "the connection's end", func() bool {
		data, err := os.ReadFile(filepath.Join(n.dir, "audit"))
		return err == nil && strings.HasSuffix(string(data), "}\n") && lastLogout(string(data))
	})
	for range 50 { // without the capability it never ends
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// lastLogout reports whether as many connections have logged out as in.
func lastLogout(audit string) bool {
	return strings.Count(audit, `"event":"login"`) == strings.Count(audit, `"event":"logout"`)
}
