package usersync

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/usersource"
	"github.com/berth-hpc/berth/internal/usersource/claimsource"
	"github.com/berth-hpc/berth/internal/usersource/filesource"
	"github.com/berth-hpc/berth/internal/usersource/ldapsource"
	"github.com/berth-hpc/berth/internal/usersource/scimsource"
)

// Config is the file of --directory. Only Sources is required.
type Config struct {
	// Interval between two listings; 0: 5 minutes. A change of a file is noticed at once.
	Interval metav1.Duration `json:"interval,omitempty"`
	Sources  []SourceConfig  `json:"sources"`
	// HomeProgram, if set, is run once for each user, with name, uid, gid and home.
	HomeProgram string `json:"homeProgram,omitempty"`
	Policy      `json:",inline"`
}

// SourceConfig is one source. The first source that has a user decides.
type SourceConfig struct {
	// Name is the value of v1alpha1.LabelSource.
	Name string             `json:"name"`
	LDAP *ldapsource.Config `json:"ldap,omitempty"`
	File *filesource.Config `json:"file,omitempty"`
	SCIM *scimsource.Config `json:"scim,omitempty"`
	// OpenID makes users of those whose tokens the API server verifies.
	OpenID *claimsource.Config `json:"openid,omitempty"`
}

// Policy says which users of the sources become users of the cluster, and how.
type Policy struct {
	// UIDs and GIDs are the accepted ids; zero: 1000 to 4294967293.
	UIDs Range `json:"uids,omitempty"`
	GIDs Range `json:"gids,omitempty"`
	// AllowGroups: only members of one of these groups are users; empty: everybody is.
	AllowGroups []string `json:"allowGroups,omitempty"`
	// Home, if set, replaces the sources' homes; %u is the name.
	Home string `json:"home,omitempty"`
	// Shell, if set, replaces the sources' shells, except those that permit no login.
	Shell string `json:"shell,omitempty"`
	// NamespacePrefix precedes the user's name in that of the namespace; "": user-.
	NamespacePrefix string `json:"namespacePrefix,omitempty"`
	// Identities are the names of users in Kubernetes, with %u; empty: the user's name.
	Identities []string `json:"identities,omitempty"`
	// Administrators and Operators are groups whose members have that level. Empty: the
	// sources have no influence on levels.
	Administrators []string `json:"administrators,omitempty"`
	Operators      []string `json:"operators,omitempty"`
	// Accounts gives members of groups associations. Empty: the sources have no influence
	// on the accounts of users.
	Accounts []AccountRule `json:"accounts,omitempty"`
	// Coordinators makes the members of groups the coordinators of accounts.
	Coordinators []AccountRule `json:"coordinators,omitempty"`
	// MaxRemoved is how many percent of a source's users may vanish from one listing to the
	// next; 0: 10. A few may always. If more are missing, nobody is disabled.
	MaxRemoved int `json:"maxRemovedPercent,omitempty"`
}

// Range is a range of ids, both ends included.
type Range struct {
	Min int64 `json:"min,omitempty"`
	Max int64 `json:"max,omitempty"`
}

func (r Range) has(id int64) bool { return id >= r.Min && id <= r.Max }

// AccountRule is about the members of a group and an account.
type AccountRule struct {
	Group   string `json:"group"`
	Account string `json:"account"`
}

const (
	defaultInterval = 5 * time.Minute
	minInterval     = time.Second
	defaultPrefix   = "user-"
	defaultRemoved  = 10

	// The ids of ordinary users, from Debian's first one; 65534 is nobody's, and the
	// greatest two are no ids for the kernel or for name services.
	minID    = 1000
	maxID    = 1<<32 - 3
	nobodyID = 65534
)

// ReadConfig reads a configuration file. Unknown fields are errors. Relative paths of files in
// it are relative to its directory.
func ReadConfig(path string) (*Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &Config{}
	if err := yaml.UnmarshalStrict(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	c.resolve(filepath.Dir(path))
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// resolve makes the paths of files absolute.
func (c *Config) resolve(dir string) {
	for i := range c.Sources {
		var paths []*string
		if l := c.Sources[i].LDAP; l != nil {
			paths = append(paths, &l.CAFile, &l.BindPasswordFile)
		}
		if s := c.Sources[i].SCIM; s != nil {
			paths = append(paths, &s.CAFile, &s.TokenFile)
		}
		if f := c.Sources[i].File; f != nil {
			paths = append(paths, &f.Path, &f.Passwd, &f.Group)
		}
		for _, p := range paths {
			if *p != "" && !filepath.IsAbs(*p) {
				*p = filepath.Join(dir, *p)
			}
		}
	}
}

func (c *Config) complete() error {
	c.Interval.Duration = cmp.Or(c.Interval.Duration, defaultInterval)
	c.NamespacePrefix = cmp.Or(c.NamespacePrefix, defaultPrefix)
	c.MaxRemoved = cmp.Or(c.MaxRemoved, defaultRemoved)
	for _, r := range []*Range{&c.UIDs, &c.GIDs} {
		r.Min, r.Max = cmp.Or(r.Min, minID), cmp.Or(r.Max, maxID)
	}
	if c.HomeProgram != "" && !filepath.IsAbs(c.HomeProgram) {
		return fmt.Errorf("homeProgram: %q is not an absolute path", c.HomeProgram)
	}
	if c.Interval.Duration < minInterval {
		return fmt.Errorf("interval: at least %v", minInterval)
	}
	return errors.Join(c.checkSources(), c.checkPolicy())
}

func (c *Config) checkSources() error {
	if len(c.Sources) == 0 {
		return errors.New("sources: there is none")
	}
	seen := map[string]bool{}
	for i := range c.Sources {
		s := &c.Sources[i]
		if len(validation.IsValidLabelValue(s.Name)) > 0 || s.Name == "" || seen[s.Name] {
			return fmt.Errorf("sources: the name %q is not one of a label, or there twice", s.Name)
		}
		seen[s.Name] = true
		kinds := 0
		for _, set := range []bool{s.LDAP != nil, s.File != nil, s.SCIM != nil, s.OpenID != nil} {
			if set {
				kinds++
			}
		}
		if kinds != 1 {
			return fmt.Errorf("sources: %s: set one of ldap, file, scim and openid", s.Name)
		}
		if s.OpenID != nil {
			if err := s.OpenID.Complete(c.Identities); err != nil {
				return fmt.Errorf("sources: %s: %w", s.Name, err)
			}
		}
	}
	return nil
}

func (c *Config) checkPolicy() error {
	p := &c.Policy
	for name, r := range map[string]Range{"uids": p.UIDs, "gids": p.GIDs} {
		if r.Min < 1 || r.Max > maxID || r.Min > r.Max {
			return fmt.Errorf("%s: %d to %d is not a range within 1 to %d", name, r.Min, r.Max, maxID)
		}
	}
	if p.Home != "" && !filepath.IsAbs(p.Home) {
		return fmt.Errorf("home: %q is not an absolute path", p.Home)
	}
	if len(validation.IsDNS1123Label(p.NamespacePrefix+"a")) > 0 {
		return fmt.Errorf("namespacePrefix: %q cannot begin the name of a namespace", p.NamespacePrefix)
	}
	if p.MaxRemoved < 0 || p.MaxRemoved > 100 {
		return fmt.Errorf("maxRemovedPercent: %d is not in 1 to 100", p.MaxRemoved)
	}
	for _, identity := range p.Identities {
		if !strings.Contains(identity, "%u") || strings.HasPrefix(identity, "system:") {
			return fmt.Errorf("identities: %q is without %%u, or one of Kubernetes' own", identity)
		}
	}
	for _, r := range append(append([]AccountRule{}, p.Accounts...), p.Coordinators...) {
		if r.Group == "" || r.Account == "" {
			return errors.New("accounts, coordinators: set both group and account")
		}
	}
	return nil
}

// open returns the sources.
func (c *Config) open(cluster *control.Cluster, now func() time.Time) ([]namedSource, error) {
	var out []namedSource
	for _, s := range c.Sources {
		var source usersource.Source
		var err error
		switch {
		case s.LDAP != nil:
			source, err = ldapsource.New(*s.LDAP, now)
		case s.SCIM != nil:
			source, err = scimsource.New(*s.SCIM)
		case s.OpenID != nil:
			source = c.openClaims(cluster, &s, claimsource.Options{Now: now})
		default:
			source, err = filesource.New(*s.File)
		}
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", s.Name, err)
		}
		out = append(out, namedSource{s.Name, source})
	}
	return out, nil
}

// level returns the level of a member of groups; "": the policy says nothing about levels.
func (p *Policy) level(memberOf []string) string {
	switch {
	case len(p.Administrators)+len(p.Operators) == 0:
		return ""
	case intersect(p.Administrators, memberOf):
		return directory.LevelAdministrator
	case intersect(p.Operators, memberOf):
		return directory.LevelOperator
	}
	return "None"
}

// describe returns a range as text.
func (r Range) String() string {
	return strconv.FormatInt(r.Min, 10) + " to " + strconv.FormatInt(r.Max, 10)
}
