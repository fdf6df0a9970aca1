package main

import (
	"context"

	"github.com/berth-hpc/berth/internal/loginkube"
	"github.com/berth-hpc/berth/internal/stdio"
	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/daemon"
)

// connect lets the login node follow the cluster.
func connect(ctx context.Context, c daemon.Cluster, log func(string)) (*daemon.Connected, error) {
	k, err := loginkube.Connect(ctx, stdio.System(), loginkube.Options{
		Kubeconfig: c.Kubeconfig, KeysNamespace: c.KeysNamespace, Server: c.Server, TokenLife: c.TokenLife.Duration, Log: log,
	})
	if err != nil {
		return nil, err
	}
	return &daemon.Connected{
		Server: k.Server(),
		Lookup: func(ctx context.Context, name string) (*auth.User, error) {
			p, err := k.Lookup(ctx, name)
			if err != nil {
				return nil, err
			}
			if p == nil {
				return nil, auth.ErrUnknownUser
			}
			return &auth.User{
				Name: p.Name, UID: p.UID, GID: p.GID, Groups: p.Groups, Home: p.Home, Shell: p.Shell,
				Keys: p.Keys, Source: "User " + p.Name,
			}, nil
		},
		Credential: func(ctx context.Context, u *auth.User) (*loginnode.Credential, error) {
			cred, err := k.Credential(ctx, u.Name, u.UID)
			if cred == nil {
				return nil, err
			}
			return &loginnode.Credential{Files: cred.Files, Env: cred.Env, Renew: cred.Renew}, err
		},
	}, nil
}
