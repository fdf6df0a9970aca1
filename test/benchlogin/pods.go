package main

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
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/daemon"
	"github.com/berth-hpc/berth/loginnode/limit"
	"github.com/berth-hpc/berth/loginnode/session"
)

// gatewayArg is the first argument that makes this program a login node whose users have
// pods. In place of a pod it starts the program of the pod as a process of the user.
const gatewayArg = "gateway"

// gatewayConfig configures a gateway, which has one user.
type gatewayConfig struct {
	Port, PodPort   int
	Dir, User, Home string
	UID, GID        int
}

// startPods starts the gateway.
func (r *rig) startPods() error {
	p := gatewayConfig{Port: freePort(), PodPort: freePort(), Dir: r.dir, User: r.user, Home: r.home}
	var st syscall.Stat_t
	if err := syscall.Stat(r.home, &st); err != nil {
		return err
	}
	p.UID, p.GID = int(st.Uid), int(st.Gid)
	r.uid = strconv.Itoa(p.UID)
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	t := &target{
		name: "pods", addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)),
		cmd: exec.Command("/proc/self/exe", gatewayArg, string(text)),
	}
	t.cmd.Stderr = os.Stderr
	if err := t.cmd.Start(); err != nil {
		return err
	}
	r.pods, r.started = t, append(r.started, t)
	return retry(func() error {
		c, err := net.Dial("tcp", t.addr)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// gateway serves until it is killed.
func gateway(args []string) error {
	var p gatewayConfig
	if len(args) != 1 {
		return errors.New("benchlogin itself starts the gateway")
	}
	if err := json.Unmarshal([]byte(args[0]), &p); err != nil {
		return err
	}
	return p.serve()
}

func (p *gatewayConfig) serve() error {
	data, err := os.ReadFile(filepath.Join(p.Dir, "hostkey"))
	if err != nil {
		return err
	}
	host, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return err
	}
	keys, err := os.ReadFile(filepath.Join(p.Dir, "key.pub"))
	if err != nil {
		return err
	}
	unlimited := limit.Rate{PerSecond: 1e5, Burst: 1e5}
	u := auth.User{Name: p.User, UID: p.UID, GID: p.GID, Home: p.Home, Shell: "/bin/bash", Keys: []string{string(keys)}}
	secret := make([]byte, 32)
	s, err := loginnode.New(loginnode.Config{
		Auth: &auth.Config{Remote: true, Users: auth.DirectoryFunc(func(context.Context, string) (*auth.User, error) {
			own := u
			return &own, nil
		})},
		Session:  session.Config{Child: []string{"/proc/self/exe"}}, // not used: sessions are in pods
		HostKeys: []ssh.Signer{host}, RunDir: filepath.Join(p.Dir, "gateway-run"),
		Penalties: limit.Penalties{Off: true},
		LoginRate: unlimited, SessionRate: unlimited,
		Pods: &loginnode.Pods{
			Secret: secret,
			Start: func(ctx context.Context, u *auth.User, _ func(string)) (*loginnode.Pod, error) {
				return p.start(ctx, u, secret)
			},
			List:   func(context.Context) ([]*loginnode.Pod, error) { return nil, nil },
			Remove: func(context.Context, string) error { return nil },
		},
	})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Port)))
	if err != nil {
		return err
	}
	return s.Serve(l)
}

// start starts the program of the user's pod.
func (p *gatewayConfig) start(ctx context.Context, u *auth.User, secret []byte) (*loginnode.Pod, error) {
	program, err := filepath.Abs("bin/loginnode")
	if err != nil {
		return nil, err
	}
	run := filepath.Join(p.Dir, "pod-run")
	f := daemon.File{Pods: &daemon.Pods{Program: program, Port: p.PodPort, RunDir: run}}
	q, err := f.PodRequest(u, secret, false)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(run, 0o700), os.Chown(run, u.UID, u.GID)); err != nil {
		return nil, err
	}
	cmd := exec.Command(q.Command[0], q.Command[1:]...)
	for name, value := range q.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}, Pdeathsig: syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(p.PodPort))
	for {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
			return &loginnode.Pod{Name: "bench", User: u.Name, UID: u.UID, Address: addr}, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the pod does not answer: %w", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// coldPod returns the time of a user's first login, in ms.
func (r *rig) coldPod(*target) (float64, error) {
	at := time.Now()
	err := r.once(r.pods, "true")
	return millisecondsSince(at), err
}

// warmPod returns the ratio of the median times of a login to a pod and one without pods.
func (r *rig) warmPod(t *target) (float64, error) {
	var all [2][]float64
	for range 60 {
		for i, one := range []*target{r.pods, t} {
			at := time.Now()
			if err := r.once(one, "true"); err != nil {
				return 0, err
			}
			all[i] = append(all[i], time.Since(at).Seconds())
		}
	}
	return median(all[0]) / median(all[1]), nil
}
