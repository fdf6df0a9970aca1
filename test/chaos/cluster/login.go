package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// hasSSH reports whether the client of OpenSSH is installed.
func hasSSH() bool {
	_, err := exec.LookPath("ssh")
	return err == nil
}

// RunLogin runs a command of Berth's as the user on the login node.
func (c *Cluster) RunLogin(ctx context.Context, u User, name string, args ...string) Answer {
	port, err := c.loginPort()
	if err != nil {
		return Answer{Call: time.Now(), Return: time.Now(), Exit: -1, Err: err.Error()}
	}
	words := []string{"cd", c.Output, "&&", "exec", name}
	for _, a := range args {
		words = append(words, "'"+strings.ReplaceAll(a, "'", `'\''`)+"'")
	}
	dir := filepath.Join(c.state, "login")
	cmd := exec.CommandContext(ctx, "ssh", "-F", "/dev/null", "-p", strconv.Itoa(port),
		"-i", filepath.Join(dir, "id_ed25519"), "-o", "UserKnownHostsFile="+filepath.Join(dir, "known_hosts"),
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=10",
		"-o", "IdentitiesOnly=yes", u.Name+"@127.0.0.1", strings.Join(words, " "))
	return run(cmd)
}

func (c *Cluster) loginPort() (int, error) {
	data, err := os.ReadFile(filepath.Join(c.state, "ports.json"))
	if err != nil {
		return 0, err
	}
	var ports struct {
		Login int `json:"login"`
	}
	if err := json.Unmarshal(data, &ports); err != nil {
		return 0, err
	}
	return ports.Login, nil
}

// KillLogin kills the process of the login node. The cluster starts it again; KillLogin
// returns when it accepts connections.
func (c *Cluster) KillLogin(ctx context.Context) error {
	parent, err := c.controlPlane()
	if err != nil {
		return err
	}
	pid := 0
	for _, p := range processes() {
		cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p))
		if isChild(p, parent) && strings.HasPrefix(string(cmd), filepath.Join(c.Bin, "loginnode")+"\x00") {
			pid = p
		}
	}
	if pid == 0 {
		return errors.New("the login node does not run")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	c.Count(Killed, "login node")
	port, err := c.loginPort()
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the login node was not started again: %w", err)
		}
	}
}

// isChild reports whether parent started the process.
func isChild(pid, parent int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent))
}
