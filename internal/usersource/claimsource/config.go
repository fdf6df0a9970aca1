// Package claimsource makes users of those who log in at an OpenID provider. Such a provider lists
// nobody: what is known of a user are the claims in the tokens that the user presents to the API
// server, which verifies them and passes them on.
package claimsource

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Config says which identities of Kubernetes are users of the provider, and which claims are
// theirs. Prefixes and extra keys are those of the API server's AuthenticationConfiguration.
type Config struct {
	// UserPrefix precedes the user's name in the identity: "oidc:".
	UserPrefix string `json:"userPrefix"`
	// Domain is what follows the name after an @; identities of other domains are no users. "":
	// there is no domain.
	Domain string `json:"domain,omitempty"`
	// GroupPrefix precedes the names of groups; groups without it do not count.
	GroupPrefix string `json:"groupPrefix,omitempty"`
	// GIDs are the gids of groups, by name without the prefix. Other groups give accounts and
	// levels, but are no groups of processes.
	GIDs map[string]int64 `json:"groupGIDs,omitempty"`

	// UID, GID, Home, Shell and Keys are keys of the user's extra attributes. A user without a uid
	// there gets one of Allocate.
	UID   string `json:"uid,omitempty"`   // "": berth.hpc/uid
	GID   string `json:"gid,omitempty"`   // "": berth.hpc/gid
	Home  string `json:"home,omitempty"`  // "": berth.hpc/home
	Shell string `json:"shell,omitempty"` // "": berth.hpc/shell
	Keys  string `json:"keys,omitempty"`  // "": berth.hpc/ssh-keys
	// Allocate is the range of uids for users without one; zero: such users are refused.
	Allocate Range `json:"allocate,omitempty"`
	// DefaultGID is the gid of users without one; 0: that of their uid.
	DefaultGID int64 `json:"defaultGID,omitempty"`

	// ValidFor is how long a user stays enabled who presents no token; 0: 30 days.
	ValidFor metav1.Duration `json:"validFor,omitempty"`
}

// Range is a range of uids, both ends included.
type Range struct {
	Min int64 `json:"min,omitempty"`
	Max int64 `json:"max,omitempty"`
}

const (
	defaultValidFor = 30 * 24 * time.Hour
	minValidFor     = time.Minute
)

// Complete checks the configuration and sets the defaults. identities are those that the policy
// gives users; one of them must be the provider's.
func (c *Config) Complete(identities []string) error {
	c.UID, c.GID = cmp.Or(c.UID, "berth.hpc/uid"), cmp.Or(c.GID, "berth.hpc/gid")
	c.Home, c.Shell = cmp.Or(c.Home, "berth.hpc/home"), cmp.Or(c.Shell, "berth.hpc/shell")
	c.Keys = cmp.Or(c.Keys, "berth.hpc/ssh-keys")
	c.ValidFor.Duration = cmp.Or(c.ValidFor.Duration, defaultValidFor)
	switch {
	case c.UserPrefix == "" || strings.HasPrefix(c.UserPrefix, "system:"):
		return errors.New("userPrefix: set the prefix of the provider's users; Kubernetes' own (system:) is none")
	case c.ValidFor.Duration < minValidFor:
		return fmt.Errorf("validFor: at least %v", minValidFor)
	case c.Allocate != Range{} && (c.Allocate.Min < 1 || c.Allocate.Max < c.Allocate.Min):
		return fmt.Errorf("allocate: %d to %d is no range of uids", c.Allocate.Min, c.Allocate.Max)
	case !slices.Contains(identities, c.identity("%u")):
		return fmt.Errorf("identities must contain %q, or nobody's token acts for its user", c.identity("%u"))
	}
	return nil
}

// identity returns the identity of a user in Kubernetes.
func (c *Config) identity(name string) string {
	if c.Domain != "" {
		name += "@" + c.Domain
	}
	return c.UserPrefix + name
}

// name returns the name of the user with an identity; ok is false for other identities.
func (c *Config) name(identity string) (name string, ok bool) {
	if name, ok = strings.CutPrefix(identity, c.UserPrefix); ok && c.Domain != "" {
		name, ok = strings.CutSuffix(name, "@"+c.Domain)
	}
	return name, ok
}
