package kube

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/internal/wire"
)

// kubeconfigFile is the part of a kubeconfig that the client uses.
type kubeconfigFile struct {
	CurrentContext string              `json:"current-context"`
	Clusters       []named[clusterRef] `json:"clusters"`
	Users          []named[userRef]    `json:"users"`
	Contexts       []named[contextRef] `json:"contexts"`
}

// named is an entry of a list in a kubeconfig: a name and the value of one of the three
// kinds.
type named[T any] struct {
	Name    string `json:"name"`
	Cluster T      `json:"cluster"`
	User    T      `json:"user"`
	Context T      `json:"context"`

	dir string // directory to which relative paths in the entry refer
}

type clusterRef struct {
	Server     string `json:"server"`
	CAFile     string `json:"certificate-authority"`
	CAData     string `json:"certificate-authority-data"`
	ServerName string `json:"tls-server-name"`
	Insecure   bool   `json:"insecure-skip-tls-verify"`
	Proxy      string `json:"proxy-url"`

	Extensions []struct {
		Name      string          `json:"name"`
		Extension json.RawMessage `json:"extension"`
	} `json:"extensions"`
}

// socket returns the path of the cluster's Unix socket, or "".
func (c *clusterRef) socket() string {
	for _, e := range c.Extensions {
		var socket struct {
			Path string `json:"path"`
		}
		if e.Name == wire.SocketExtension && json.Unmarshal(e.Extension, &socket) == nil {
			return socket.Path
		}
	}
	return ""
}

type userRef struct {
	CertFile  string      `json:"client-certificate"`
	CertData  string      `json:"client-certificate-data"`
	KeyFile   string      `json:"client-key"`
	KeyData   string      `json:"client-key-data"`
	Token     string      `json:"token"`
	TokenFile string      `json:"tokenFile"`
	Username  string      `json:"username"`
	Password  string      `json:"password"`
	Exec      *ExecConfig `json:"exec"`
}

type contextRef struct {
	Cluster   string `json:"cluster"`
	User      string `json:"user"`
	Namespace string `json:"namespace"`
}

// readKubeconfig reads and merges the files as kubectl does: the first file with an
// entry wins, and missing files are skipped unless all are missing.
func readKubeconfig(p *stdio.Process, paths []string) (*Config, error) {
	var merged kubeconfigFile
	var missing error
	source := ""
	for _, path := range paths {
		data, err := p.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			missing = err
			continue
		}
		if err != nil {
			return nil, &Error{Kind: BadConfig, Cause: err,
				Message: fmt.Sprintf("cannot read the cluster's kubeconfig: %v", err)}
		}
		var f kubeconfigFile
		if err := yaml.Unmarshal(data, &f); err != nil {
			return nil, badConfig(path, err)
		}
		merge(&merged, &f, filepath.Dir(path))
		if source == "" {
			source = path
		}
	}
	if source == "" {
		if missing == nil {
			missing = fs.ErrNotExist
		}
		return nil, &Error{
			Kind:  BadConfig,
			Cause: missing,
			Message: fmt.Sprintf(
				"cannot read the cluster's kubeconfig: %v: name an existing one, or unset KUBECONFIG",
				missing,
			),
		}
	}
	if name := p.Env(EnvContext); name != "" {
		merged.CurrentContext = name
	}
	cfg, err := merged.resolve(p)
	if err != nil {
		return nil, badConfig(source, err)
	}
	cfg.Source = source
	if dir := filepath.Dir(source); isState(p, dir) {
		cfg.Local, cfg.StateDir = true, dir
	}
	return cfg, nil
}

// isState reports whether dir is the state directory of a local cluster.
func isState(p *stdio.Process, dir string) bool {
	_, err := p.ReadFile(filepath.Join(dir, wire.StateMarker))
	return err == nil
}

func badConfig(path string, err error) *Error {
	return &Error{Kind: BadConfig, Message: fmt.Sprintf("kubeconfig %s: %v", path, err), Cause: err}
}

func merge(into, f *kubeconfigFile, dir string) {
	if into.CurrentContext == "" {
		into.CurrentContext = f.CurrentContext
	}
	into.Clusters = mergeEntries(into.Clusters, f.Clusters, dir)
	into.Users = mergeEntries(into.Users, f.Users, dir)
	into.Contexts = mergeEntries(into.Contexts, f.Contexts, dir)
}

func mergeEntries[T any](into, more []named[T], dir string) []named[T] {
	for _, e := range more {
		if entry(into, e.Name) == nil {
			e.dir = dir
			into = append(into, e)
		}
	}
	return into
}

func entry[T any](list []named[T], name string) *named[T] {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// resolve returns the Config for the current context.
func (f *kubeconfigFile) resolve(p *stdio.Process) (*Config, error) {
	ctx := entry(f.Contexts, f.CurrentContext)
	if ctx == nil {
		return nil, fmt.Errorf("no context named %q (current-context)", f.CurrentContext)
	}
	cluster := entry(f.Clusters, ctx.Context.Cluster)
	if cluster == nil || cluster.Cluster.Server == "" {
		return nil, fmt.Errorf("no server for cluster %q", ctx.Context.Cluster)
	}
	cfg := &Config{
		Server: cluster.Cluster.Server, ServerName: cluster.Cluster.ServerName,
		Insecure: cluster.Cluster.Insecure, Proxy: cluster.Cluster.Proxy,
		Namespace: ctx.Context.Namespace, Socket: cluster.Cluster.socket(),
	}
	if cfg.Namespace == "" {
		cfg.Namespace = "default"
	}
	var err error
	if cfg.CA, err = pemData(p, cluster.dir, cluster.Cluster.CAFile, cluster.Cluster.CAData); err != nil {
		return nil, err
	}
	if user := entry(f.Users, ctx.Context.User); user != nil {
		err = cfg.setUser(p, user.dir, &user.User)
	}
	return cfg, err
}

func (c *Config) setUser(p *stdio.Process, dir string, u *userRef) (err error) {
	if c.Cert, err = pemData(p, dir, u.CertFile, u.CertData); err != nil {
		return err
	}
	if c.Key, err = pemData(p, dir, u.KeyFile, u.KeyData); err != nil {
		return err
	}
	c.Token, c.Username, c.Password, c.Exec = u.Token, u.Username, u.Password, u.Exec
	if c.Exec != nil {
		c.Exec.dir = dir
	}
	if u.TokenFile != "" {
		c.TokenFile = absolute(dir, u.TokenFile)
	}
	return nil
}

// pemData returns the inline data, or else the contents of the file.
func pemData(p *stdio.Process, dir, file, data string) ([]byte, error) {
	if data != "" {
		return base64.StdEncoding.DecodeString(data)
	}
	if file == "" {
		return nil, nil
	}
	return p.ReadFile(absolute(dir, file))
}

func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
