package daemon

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// ConnectedPods are the functions that start, list and remove users' pods in the cluster.
type ConnectedPods struct {
	Start  func(ctx context.Context, r *PodRequest, state func(string)) (*loginnode.Pod, error)
	List   func(ctx context.Context) ([]*loginnode.Pod, error)
	Remove func(ctx context.Context, name string) error
}

// PodRequest is a pod that is to run for a user.
type PodRequest struct {
	User    *auth.User
	Command []string
	// Prepare runs first, with the same environment, and writes passwd and
	// group into NamesDir, which are mounted in /etc.
	Prepare  []string
	NamesDir string
	Env      map[string]string
	Port     int
	RunDir   string
}

// PodCommand is the first argument that makes the program the server of a user's pod,
// which EnvPod describes; NamesCommand, with a directory, makes it write the names for
// that pod.
const (
	PodCommand   = "user-pod"
	NamesCommand = "user-pod-names"
	EnvPod       = "BERTH_LOGIN_POD"
)

// Defaults of pods.
const (
	podProgram   = "/berth/bin/loginnode"
	podPort      = 2222
	podRunDir    = "/run/berth-login"
	podNamesDir  = "/run/berth-login-names"
	podNamespace = "berth-login-pods"
)

func (p *Pods) complete() {
	p.Namespace, p.Program = cmp.Or(p.Namespace, podNamespace), cmp.Or(p.Program, podProgram)
	p.Port, p.RunDir = cmp.Or(p.Port, podPort), cmp.Or(p.RunDir, podRunDir)
}

// podFile is the configuration of the server in a pod.
type podFile struct {
	User       auth.User
	GatewayKey string // a line of authorized_keys
	HostSeed   []byte // of the pod's own key
	Credential bool
	Listen     string
	// File has the settings of sessions.
	File *File
}

// pods returns the configuration of users' pods.
func (f *File) pods(cluster *Connected) (*loginnode.Pods, error) {
	if cluster == nil || cluster.Pods == nil {
		return nil, errors.New("pods: there is no `cluster:` in the file")
	}
	secret, err := podSecret(f.HostKeys)
	if err != nil {
		return nil, fmt.Errorf("pods: %w", err)
	}
	start := func(ctx context.Context, u *auth.User, state func(string)) (*loginnode.Pod, error) {
		r, err := f.PodRequest(u, secret, cluster.Credential != nil)
		if err != nil {
			return nil, err
		}
		return cluster.Pods.Start(ctx, r, state)
	}
	return &loginnode.Pods{
		Start: start, List: cluster.Pods.List, Remove: cluster.Pods.Remove, Secret: secret,
		Idle: f.Pods.Idle.Duration, StartTimeout: f.Pods.StartTimeout.Duration,
	}, nil
}

// PodRequest returns the request for a user's pod. credential reports whether the gateway
// will send the pod a credential for the cluster.
func (f *File) PodRequest(u *auth.User, secret []byte, credential bool) (*PodRequest, error) {
	gateway, host, err := loginnode.PodKeys(secret, u.UID)
	if err != nil {
		return nil, err
	}
	key, err := ssh.NewPublicKey(gateway.Public())
	if err != nil {
		return nil, err
	}
	who := *u
	who.Keys, who.Source = nil, ""
	text, err := json.Marshal(podFile{
		User: who, GatewayKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), HostSeed: host.Seed(),
		Credential: credential, Listen: ":" + strconv.Itoa(f.Pods.Port), File: f.sessionsOnly(),
	})
	if err != nil {
		return nil, err
	}
	return &PodRequest{
		User:    u,
		Command: []string{f.Pods.Program, PodCommand},
		Prepare: []string{
			f.Pods.Program,
			NamesCommand,
			podNamesDir,
		},
		NamesDir: podNamesDir,
		Env:      map[string]string{EnvPod: base64.StdEncoding.EncodeToString(text)},
		Port:     f.Pods.Port,
		RunDir:   f.Pods.RunDir,
	}, nil
}

// sessionsOnly returns the part of the file that concerns sessions.
func (f *File) sessionsOnly() *File {
	return &File{
		// A directory of its own in it: the volume itself is the kubelet's.
		RunDir:          filepath.Join(f.Pods.RunDir, "server"),
		MaxSessions:     f.MaxSessions,
		MaxUserConns:    f.MaxUserConns,
		MaxUserChans:    f.MaxUserChans,
		AliveInterval:   f.AliveInterval,
		AliveCountMax:   f.AliveCountMax,
		AcceptEnv:       f.AcceptEnv,
		Path:            f.Path,
		LoginPath:       f.LoginPath,
		Env:             f.Env,
		UserEnvironment: f.UserEnvironment,
		MakeHome:        f.MakeHome,
		Skeleton:        f.Skeleton,
		SFTP:            f.SFTP,
		Limits:          f.Limits,
		MOTD:            f.MOTD,
		MOTDCommand:     f.MOTDCommand,
		Forwarding:      f.Forwarding,
	}
}

// podSecret returns a secret that is derived from the Ed25519 host key, which only the
// replicas have.
func podSecret(hostKeys string) ([]byte, error) {
	entries, err := os.ReadDir(hostKeys)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(hostKeys, e.Name()))
		if err != nil {
			continue // a directory; readHostKeys has reported errors of keys
		}
		raw, err := ssh.ParseRawPrivateKey(data)
		if err != nil {
			continue
		}
		var key ed25519.PrivateKey
		switch k := raw.(type) {
		case *ed25519.PrivateKey:
			key = *k
		case ed25519.PrivateKey:
			key = k
		default:
			continue
		}
		return hkdf.Key(sha256.New, key.Seed(), nil, "berth login pods", sha256.Size)
	}
	return nil, errors.New("an Ed25519 host key is required")
}
