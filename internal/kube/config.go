// Package kube is the only client of the API server that commands use. It finds the
// cluster, authenticates, and sends JSON over one connection. It uses only net/http,
// because a command runs for milliseconds and client-go takes longer to start than
// the request takes.
package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
)

// Config is the address of the API server and the credential of the caller. A field with
// the zero value is not used.
type Config struct {
	Server     string // URL
	Namespace  string // never empty after Find
	CA         []byte // PEM; empty: the system's roots
	ServerName string
	Insecure   bool
	Proxy      string // URL

	Cert, Key []byte // PEM
	Token     string
	TokenFile string // read again for every request
	Username  string
	Password  string
	Exec      *ExecConfig

	// Socket is the path of a Unix socket of the server, which is used with Token.
	Socket string

	// Source is the path of the file with the configuration, or "job".
	Source string
	// Local means that Source belongs to a local cluster. If its server refuses
	// connections, the cluster is not running.
	Local bool
	// StateDir is the local cluster's state directory, if 'berth up' needs it as
	// --state-dir to start this cluster.
	StateDir string

	// ClusterName is the cluster that the command line chose among several (EnvCluster);
	// "": it chose none.
	ClusterName string

	again func() (*Config, error) // finds the configuration again
}

// Variables by which a command that is run for several clusters (-M) chooses one of them. They
// are not meant for users.
const (
	EnvCluster = "BERTH_CLUSTER" // the name that the user gave
	EnvContext = "BERTH_CONTEXT" // the context in the kubeconfig; "": the current one
)

// envKubeHost is the variable with the API server's URL in the environment of jobs.
const envKubeHost = "BERTH_KUBE_HOST"

// Find returns the configuration of the cluster. It takes the first of these that exists:
// the file named explicitly, those of KUBECONFIG, the job in which this process runs, the
// user's and the machine's local cluster, ~/.kube/config. It finds a local cluster also by
// the user's uid, because cron, sudo and many programs set another HOME. The error is an
// *Error, of kind NoCluster if there is none of them.
func Find(p *stdio.Process, explicit string) (*Config, error) {
	cfg, err := find(p, explicit)
	if err == nil {
		cfg.ClusterName = p.Env(EnvCluster)
		cfg.again = func() (*Config, error) { return find(p, explicit) }
	}
	return cfg, err
}

func find(p *stdio.Process, explicit string) (*Config, error) {
	if explicit != "" {
		return readKubeconfig(p, []string{explicit})
	}
	if v := p.Env("KUBECONFIG"); v != "" {
		return readKubeconfig(p, filepath.SplitList(v))
	}
	if cfg := inJob(p); cfg != nil {
		return cfg, nil
	}
	for _, c := range candidates(p) {
		cfg, err := readKubeconfig(p, []string{c.path})
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, err
		}
		cfg.Local, cfg.StateDir = c.local, ""
		return cfg, nil
	}
	return nil, &Error{Kind: NoCluster, Message: "no cluster: run 'berth up' or set KUBECONFIG"}
}

type candidate struct {
	path  string
	local bool
}

// candidates returns the files to try, in order, if none is named.
func candidates(p *stdio.Process) []candidate {
	home := p.Env("HOME")
	state := p.Env("XDG_STATE_HOME")
	if state == "" && home != "" {
		state = filepath.Join(home, ".local", "state")
	}
	var out []candidate
	if home != "" {
		out = append(out, candidate{filepath.Join(home, ".local/state/berth/user.kubeconfig"), true})
	}
	if p.UID == 0 {
		out = append(out, candidate{"/var/lib/berth/kubeconfig", true})
	} else if state != "" {
		out = append(out, candidate{filepath.Join(state, "berth", "kubeconfig"), true})
	}
	for _, path := range wire.MachineKubeconfigs(p.UID) {
		out = append(out, candidate{path, true})
	}
	if own := passwdHome(p); own != "" && own != home {
		out = append(out,
			candidate{filepath.Join(own, ".local/state/berth/user.kubeconfig"), true},
			candidate{filepath.Join(own, ".local/state/berth/kubeconfig"), true})
	}
	if home != "" {
		out = append(out, candidate{filepath.Join(home, ".kube", "config"), false})
	}
	return out
}

// passwdHome returns the home directory of this process's user in passwd(5), or "" if the
// user is not there.
func passwdHome(p *stdio.Process) string {
	data, _ := p.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(data)) {
		f := strings.Split(line, ":")
		if len(f) == 7 && f[2] == strconv.Itoa(p.UID) && filepath.IsAbs(f[5]) {
			return f[5]
		}
	}
	return ""
}

// inJob returns the configuration for the job in which this process runs, or nil
// outside of jobs.
func inJob(p *stdio.Process) *Config {
	if p.Env(wire.EnvJobID) == "" {
		return nil
	}
	server := p.Env(envKubeHost)
	if server == "" {
		host, port := p.Env("KUBERNETES_SERVICE_HOST"), p.Env("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil
		}
		server = "https://" + net.JoinHostPort(host, port)
	}
	if _, err := p.ReadFile(wire.TokenPath); err != nil {
		return nil
	}
	dir := filepath.Dir(wire.TokenPath)
	ca, _ := p.ReadFile(filepath.Join(dir, "ca.crt"))
	ns, _ := p.ReadFile(filepath.Join(dir, "namespace"))
	cfg := &Config{
		Server: server, CA: ca, Namespace: strings.TrimSpace(string(ns)),
		TokenFile: wire.TokenPath, Source: "job",
	}
	if cfg.Namespace == "" {
		cfg.Namespace = "default"
	}
	return cfg
}

// User returns the name of the Slurm user: the part of the namespace after "user-". It is
// empty if the namespace has another form.
func (c *Config) User() string {
	name, ok := strings.CutPrefix(c.Namespace, "user-")
	if !ok {
		return ""
	}
	return name
}

// String returns the server and the source, for messages.
func (c *Config) String() string { return fmt.Sprintf("%s (%s)", c.Server, c.Source) }
