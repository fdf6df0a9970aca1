package daemon

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/oidc"
)

// config has people log in at a provider; nil: there is none.
func (o *OIDC) config(c *loginnode.Config) error {
	if o == nil {
		return nil
	}
	cfg := oidc.Config{
		Issuer: o.Issuer, ClientID: o.ClientID, Scopes: o.Scopes, UsernameClaim: o.UsernameClaim,
		Groups: o.RequiredGroups, GroupsClaim: o.GroupsClaim,
	}
	if o.ClientSecretFile != "" {
		secret, err := os.ReadFile(o.ClientSecretFile)
		if err != nil {
			return fmt.Errorf("oidc: %w", err)
		}
		cfg.ClientSecret = strings.TrimSpace(string(secret))
	}
	if o.UsernamePattern != "" {
		var err error
		if cfg.UsernamePattern, err = regexp.Compile(o.UsernamePattern); err != nil {
			return fmt.Errorf("oidc: %w", err)
		}
	}
	client, err := oidc.New(cfg)
	if err != nil {
		return fmt.Errorf("oidc: %w", err)
	}
	c.DeviceLogin = func(ctx context.Context, u *auth.User, tell func(string) error) error {
		return client.Login(ctx, u.Name, tell)
	}
	c.DeviceGrace = o.Timeout.Duration
	return nil
}
