package main

import (
	"context"

	"github.com/berth-hpc/berth/internal/loginkube"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/daemon"
	"github.com/berth-hpc/berth/loginnode/session"
)

// connect connects the login node to the cluster.
func connect(ctx context.Context, c daemon.Cluster, pods *daemon.Pods, log func(string)) (*daemon.Connected, error) {
	k, err := loginkube.Connect(ctx, stdio.System(), loginkube.Options{
		Kubeconfig:    c.Kubeconfig,
		KeysNamespace: c.KeysNamespace,
		Server:        c.Server,
		TokenLife:     c.TokenLife.Duration,
		Log:           log,
		Nodes:         !c.NoNodes,
		Pods:          podOptions(pods),
	})
	if err != nil {
		return nil, err
	}
	return &daemon.Connected{
		Server: k.Server(), Nodes: nodes(k, c.NoNodes), Pods: connectedPods(k),
		Lookup: func(ctx context.Context, name string) (*auth.User, error) {
			p, err := k.Lookup(ctx, name)
			if err != nil {
				return nil, err
			}
			if p == nil {
				return nil, auth.ErrUnknownUser
			}
			return &auth.User{
				Name:       p.Name,
				UID:        p.UID,
				GID:        p.GID,
				Groups:     p.Groups,
				GroupNames: p.GroupNames,
				Home:       p.Home,
				Shell:      p.Shell,
				Keys:       p.Keys,
				Source:     "User " + p.Name,
			}, nil
		},
		Revoked: k.Revoked,
		Credential: func(ctx context.Context, u *auth.User) (*loginnode.Credential, error) {
			cred, err := k.Credential(ctx, u.Name, u.UID)
			if cred == nil {
				return nil, err
			}
			return &loginnode.Credential{Files: cred.Files, Env: cred.Env, Renew: cred.Renew}, err
		},
	}, nil
}

// nodes returns the login node's access to compute nodes; nil: none.
func nodes(k *loginkube.Cluster, off bool) *loginnode.Nodes {
	if off {
		return nil
	}
	return &loginnode.Nodes{
		Has: k.IsNode,
		Place: func(ctx context.Context, u *auth.User, node string) (*loginnode.Place, error) {
			p, err := k.Place(ctx, u.Name, u.UID, u.Home, node)
			if p == nil || err != nil {
				return nil, err
			}
			return &loginnode.Place{
				Job:     p.Job,
				Address: p.Address,
				Inside: session.Inside{
					Command:  p.Command(),
					Terminal: []string{loginkube.Terminal},
					Connect:  loginkube.IntoJob,
				},
			}, nil
		},
	}
}

// podOptions returns the configuration of users' pods; nil: there are none.
func podOptions(p *daemon.Pods) *loginkube.Pods {
	if p == nil {
		return nil
	}
	return &loginkube.Pods{Namespace: p.Namespace, Spec: p.Spec}
}

// connectedPods returns the login node's functions for users' pods.
func connectedPods(k *loginkube.Cluster) *daemon.ConnectedPods {
	pod := func(p *loginkube.LoginPod) *loginnode.Pod {
		return &loginnode.Pod{Name: p.Name, User: p.User, UID: p.UID, Address: p.Address}
	}
	return &daemon.ConnectedPods{
		Start: func(ctx context.Context, r *daemon.PodRequest, state func(string)) (*loginnode.Pod, error) {
			u := r.User
			p, err := k.StartPod(ctx, &loginkube.PodRequest{
				User: u.Name, UID: u.UID, GID: u.GID, Groups: u.Groups, Command: r.Command, Prepare: r.Prepare,
				NamesDir: r.NamesDir, Env: r.Env, Port: r.Port, RunDir: r.RunDir,
			}, state)
			if err != nil {
				return nil, err
			}
			return pod(p), nil
		},
		List: func(ctx context.Context) (all []*loginnode.Pod, err error) {
			found, err := k.LoginPods(ctx)
			for _, p := range found {
				all = append(all, pod(p))
			}
			return all, err
		},
		Remove: k.RemovePod,
	}
}
