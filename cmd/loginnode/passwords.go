package main

import (
	"context"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/usersource/ldapsource"
)

// passwords returns the function that verifies passwords at an LDAP directory.
func passwords(config []byte) (func(ctx context.Context, user, password string) error, error) {
	var c ldapsource.Config
	if err := yaml.UnmarshalStrict(config, &c); err != nil {
		return nil, err
	}
	s, err := ldapsource.New(c, time.Now)
	if err != nil {
		return nil, err
	}
	return s.Verify, nil
}
