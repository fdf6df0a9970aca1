package localcluster

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/durable"
	"github.com/berth-hpc/berth/internal/localcluster/pki"
)

// Names of the login node in the state directory and the cluster.
const (
	dirLogin       = "login"
	fileLogin      = dirLogin + "/kubeconfig"
	loginProgram   = "loginnode"
	loginNamespace = "berth-login"
	loginPods      = "berth-login-pods"
	identityLogin  = "system:berth-login"
)

// startLogin runs a login node on a port of loopback, for the users of the cluster,
// with a key for the user who runs the cluster.
func (k *cluster) startLogin(ctx context.Context, a *api) error {
	program := filepath.Join(k.BinDir, loginProgram)
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("the program loginnode must be in the directory of this program: %w", err)
	}
	dir := k.state.path(dirLogin)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	public, err := loginKey(filepath.Join(dir, "id_ed25519"))
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	if err := a.apply(ctx, k.loginKeys(public)); err != nil {
		return err
	}
	l, err := listen([]string{"127.0.0.1"}, "--login-port", k.LoginPort, k.state.readPorts().Login)
	if err != nil {
		return err
	}
	port := portOf(l)
	_ = l.Close() // the program binds the port itself
	if err := k.rememberLogin(port); err != nil {
		return err
	}
	config, err := k.loginConfig(dir, port)
	if err != nil {
		return err
	}
	err = k.startPart(ctx, "login node", func(ctx context.Context, ready func()) error {
		return k.keepLogin(ctx, program, config, port, ready)
	})
	if err != nil {
		return err
	}
	k.info.Login, err = k.sshLine(dir, port)
	return err
}

func (k *cluster) rememberLogin(port int) error {
	p := k.state.readPorts()
	p.Login = port
	return k.state.writeJSON(filePorts, p)
}

// loginKey creates a key for the user who runs the cluster, once, and returns its
// public half as a line of authorized_keys.
func loginKey(name string) (string, error) {
	if data, err := os.ReadFile(name + ".pub"); err == nil {
		return strings.TrimSpace(string(data)), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	block, err := ssh.MarshalPrivateKey(private, "berth up --login")
	if err != nil {
		return "", err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return "", err
	}
	public := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
	return public, errors.Join(
		durable.Write(name, pem.EncodeToMemory(block), 0o600),
		durable.Write(name+".pub", []byte(public+"\n"), 0o644))
}

// loginKeys allows that key to log in as every user of this start. The user who runs
// the cluster could become any of them anyway.
func (k *cluster) loginKeys(public string) *unstructured.Unstructured {
	data := map[string]any{k.Admin.Name: public}
	for _, u := range k.Users {
		data[u.Name] = public
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{
			"name": "berth-up", "namespace": loginNamespace, "labels": map[string]any{"berth.hpc/ssh-keys": "true"},
		},
		"data": data,
	}}
}

// loginConfig writes the login node's files and returns the name of its
// configuration.
func (k *cluster) loginConfig(dir string, port int) (string, error) {
	if err := k.writeLoginKubeconfig(); err != nil {
		return "", err
	}
	var allowed []string
	for _, u := range append([]Account{k.Admin}, k.Users...) {
		allowed = append(allowed, u.Name)
	}
	config := map[string]any{
		"listen":   []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))},
		"hostKeys": filepath.Join(dir, "hostkeys"), "generateHostKeys": true,
		"runDir":             loginRunDir(k.StateDir),
		"audit":              filepath.Join(dir, "audit.json"),
		"users":              []any{map[string]any{"cluster": true}},
		"permitRootLogin":    true, // if root runs the cluster, root is its first user
		"path":               k.BinDir + ":/usr/local/bin:/usr/bin:/bin",
		"loginPath":          k.BinDir,
		"motdCommand":        []string{"squeue", "--me"},
		"perSourcePenalties": map[string]any{"exempt": []string{"127.0.0.0/8"}},
		"cluster":            map[string]any{"kubeconfig": k.state.path(fileLogin), "keysNamespace": loginNamespace},
		"drainGrace":         "1s",
		"endWithInput":       true,
		// The kernel counts a user's processes on the whole machine, including the
		// user's jobs.
		"userProcesses": "unlimited",
	}
	if k.Directory == "" {
		config["allowUsers"] = allowed
	} else { // the directory has homes for its users, but this machine may not have made them
		config["makeHome"] = true
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "loginnode.yaml")
	return name, os.WriteFile(name, data, 0o600)
}

// writeLoginKubeconfig writes the login node's kubeconfig with a new certificate in it, so
// that the login node can run as a user who cannot read other files.
func (k *cluster) writeLoginKubeconfig() error {
	pair, err := k.pki.CA.Sign(pki.Leaf{CommonName: identityLogin})
	if err != nil {
		return err
	}
	return k.state.write(fileLogin,
		pki.Kubeconfig(k.info.Server, k.pki.CA.CertPEM, pair, identityLogin, loginNamespace, pki.Direct{}))
}

// loginRunDir returns the directory for credentials of sessions: in memory if there is
// such a file system, and short enough for the name of a socket.
func loginRunDir(stateDir string) string {
	sum := sha256.Sum256([]byte(stateDir))
	name := "berth-login-" + hex.EncodeToString(sum[:4])
	if os.Geteuid() == 0 {
		var st unix.Statfs_t
		if unix.Statfs("/run", &st) == nil && st.Type != unix.TMPFS_MAGIC && unix.Statfs("/dev/shm", &st) == nil &&
			st.Type == unix.TMPFS_MAGIC {
			return filepath.Join("/dev/shm", name)
		}
		return filepath.Join("/run", name)
	}
	if d := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(d) {
		return filepath.Join(d, name)
	}
	return filepath.Join(stateDir, dirLogin, "run")
}

// loginPause is the time between the end of a login node and its next start, which grows to
// loginMaxPause while it does not become ready.
const (
	loginPause    = 500 * time.Millisecond
	loginMaxPause = 30 * time.Second
)

// keepLogin runs the program until ctx ends. Once it was ready, it is started again whenever
// it ends, as a kubelet does: jobs and the other users of the cluster do not need it.
func (k *cluster) keepLogin(ctx context.Context, program, config string, port int, ready func()) error {
	wasReady := false
	for pause := loginPause; ; pause = min(2*pause, loginMaxPause) {
		err := k.runLogin(ctx, program, config, port, func() {
			wasReady, pause = true, loginPause
			ready()
		})
		if ctx.Err() != nil || !wasReady {
			return err
		}
		k.Log.Error("the login node has ended and is started again", "error", err, "after", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// runLogin runs the program until ctx ends, and calls ready when it accepts connections.
func (k *cluster) runLogin(ctx context.Context, program, config string, port int, ready func()) error {
	log, err := os.OpenFile(k.state.path(FileLog), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, program, "--config", config)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	// It ends with this process, whatever ends that: its input is closed then. The signal of
	// prctl(2) for that is no help, because the kernel forgets it when a thread of the login
	// node changes its user.
	input, open, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = open.Close() }()
	cmd.Stdin = input
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_ = input.Close()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		select {
		case err := <-ended:
			tick.Stop()
			return err
		case <-tick.C:
			c, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err == nil {
				_ = c.Close()
				tick.Stop()
				ready()
				return <-ended
			}
		}
	}
}

// loginNodes is the name of all compute nodes in the file of known hosts, because the
// login node accepts the connections to them.
const loginNodes = "berth-nodes"

// clientConfig is a configuration of OpenSSH's client for the login node (login) and
// the nodes of the user's jobs through it (any other name).
const clientConfig = `Host login
  HostName 127.0.0.1
  Port %d
Host * !login
  ProxyJump login
  HostKeyAlias %s
Host *
  UserKnownHostsFile %s
  IdentityFile %s
  IdentitiesOnly yes
`

// sshLine returns the command to log in. It includes the host's key, so that ssh does
// not ask for confirmation.
func (k *cluster) sshLine(dir string, port int) (string, error) {
	host, err := os.ReadFile(filepath.Join(dir, "hostkeys", "ssh_host_ed25519_key.pub"))
	if err != nil {
		return "", err
	}
	known := filepath.Join(dir, "known_hosts")
	line := fmt.Sprintf("[127.0.0.1]:%d %s%s %s", port, host, loginNodes, host)
	if err := os.WriteFile(known, []byte(line), 0o644); err != nil {
		return "", err
	}
	config := fmt.Sprintf(clientConfig, port, loginNodes, known, filepath.Join(dir, "id_ed25519"))
	if err := os.WriteFile(filepath.Join(dir, "ssh_config"), []byte(config), 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("ssh -p %d -i %s -o UserKnownHostsFile=%s %s@127.0.0.1",
		port, filepath.Join(dir, "id_ed25519"), known, k.Admin.Name), nil
}
