package realnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-hpc/berth/internal/localcluster/pki"
)

// Files of a local cluster's state directory. Their names are written here again
// because the package that owns them links all of Kubernetes.
const (
	stateProcess = "process.json"
	stateAdmin   = "kubeconfig"
	stateArgs    = "scheduler.args"
	statePKI     = "pki"
)

// plane is the control plane: berth-local without Berth.
type plane struct {
	state string // its state directory
	*process
}

// startPlane starts the control plane, without anything of Berth, and returns
// when it is ready.
func startPlane(ctx context.Context, bin, state, log string) (*plane, error) {
	args := []string{"run", "--foreground", "--nodes=0", "--scheduler=none", "--state-dir", state}
	child, err := start(exec.Command(filepath.Join(bin, "berth-local"), args...), log)
	if err != nil {
		return nil, err
	}
	p := &plane{state: state, process: child}
	err = waitFor(ctx, time.Minute, func() bool { return p.ended() || p.ready() })
	if err == nil && p.ended() {
		err = errors.New(p.cmd.ProcessState.String() + ": " + lastWords(log))
	}
	if err != nil {
		return nil, fmt.Errorf("control plane: %w", err)
	}
	return p, nil
}

func (p *plane) ready() bool {
	var process struct{ Ready bool }
	b, err := os.ReadFile(filepath.Join(p.state, stateProcess))
	return err == nil && json.Unmarshal(b, &process) == nil && process.Ready
}

// kubeconfig is the administrator's.
func (p *plane) kubeconfig() string { return filepath.Join(p.state, stateAdmin) }

// schedulerArgs are the flags of cmd/scheduler for this control plane.
func (p *plane) schedulerArgs() ([]string, error) {
	b, err := os.ReadFile(filepath.Join(p.state, stateArgs))
	return strings.Fields(string(b)), err
}

// podServer is the API server's URL as nodes and pods reach it.
func (p *plane) podServer() (string, error) {
	args, err := p.schedulerArgs()
	if err != nil {
		return "", err
	}
	for _, a := range args {
		if url, ok := strings.CutPrefix(a, "--kube-url="); ok {
			return url, nil
		}
	}
	return "", errors.New("the control plane does not say where pods reach it")
}

// admit writes a kubelet's kubeconfig and server certificate. The control
// plane has no node authorizer, so a kubelet acts as administrator.
func (p *plane) admit(spec *nodeSpec, dir string) error {
	server, err := p.podServer()
	if err != nil {
		return err
	}
	store, err := pki.Open(filepath.Join(p.state, statePKI), time.Now, pki.LeafLife)
	if err != nil {
		return err
	}
	client, err := store.CA.Sign(pki.Leaf{CommonName: "system:node:" + spec.Name,
		Organizations: []string{"system:masters"}})
	if err != nil {
		return err
	}
	serving, err := store.CA.Sign(pki.Leaf{CommonName: "system:node:" + spec.Name,
		Hosts: []string{spec.Name, spec.address()}})
	if err != nil {
		return err
	}
	spec.Kubeconfig = filepath.Join(dir, "kubeconfig")
	spec.Cert, spec.Key = filepath.Join(dir, "kubelet.crt"), filepath.Join(dir, "kubelet.key")
	return errors.Join(
		os.WriteFile(spec.Kubeconfig,
			pki.Kubeconfig(server, store.CA.CertPEM, client, spec.Name, "", pki.Direct{}), 0o600),
		os.WriteFile(spec.Cert, serving.Cert, 0o600),
		os.WriteFile(spec.Key, serving.Key, 0o600),
	)
}
