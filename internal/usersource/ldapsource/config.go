package ldapsource

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Config is the configuration of a directory. Only URLs and the two bases are required.
type Config struct {
	// URLs of the servers, tried in order: ldaps://host, or ldap://host with StartTLS.
	URLs     []string `json:"urls"`
	StartTLS bool     `json:"startTLS,omitempty"`
	// CAFile has the authorities that sign the servers' certificates; "": the machine's.
	CAFile string `json:"caFile,omitempty"`
	// AllowPlaintext accepts ldap:// without StartTLS from other machines. Everybody on the
	// path can then change keys and groups.
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
	// BindDN and the password in a file; "": anonymous. The file is read at each use.
	BindDN           string `json:"bindDN,omitempty"`
	BindPasswordFile string `json:"bindPasswordFile,omitempty"`

	// Schema has the defaults of everything below: rfc2307 (the default), rfc2307bis or ad.
	Schema string `json:"schema,omitempty"`
	Users  Users  `json:"users"`
	Groups Groups `json:"groups"`
	// LowercaseNames converts the names of users, for directories that ignore case.
	LowercaseNames *bool `json:"lowercaseNames,omitempty"`

	Timeout  metav1.Duration `json:"timeout,omitempty"`  // of each request; 0: 30 s
	PageSize int             `json:"pageSize,omitempty"` // 0: 500
}

// Users says where users are, and which attributes have what.
type Users struct {
	Base   string `json:"base"`
	Filter string `json:"filter,omitempty"`
	// Disabled is a filter that matches those who may not log in, in addition to those
	// that are marked in a usual way (see isDisabled).
	Disabled string `json:"disabled,omitempty"`
	Name     string `json:"name,omitempty"`
	UID      string `json:"uid,omitempty"`
	GID      string `json:"gid,omitempty"`
	Home     string `json:"home,omitempty"`
	Shell    string `json:"shell,omitempty"`
	Keys     string `json:"keys,omitempty"`
}

// Groups says where groups are. Base "": there are none.
type Groups struct {
	Base   string `json:"base,omitempty"`
	Filter string `json:"filter,omitempty"`
	Name   string `json:"name,omitempty"`
	GID    string `json:"gid,omitempty"`
	// Member is the attribute with the members: names in memberUid, else DNs.
	Member string `json:"member,omitempty"`
}

// attrMemberUID is the attribute with names of members instead of DNs.
const attrMemberUID = "memberUid"

const (
	defaultTimeout  = 30 * time.Second
	defaultPageSize = 500
)

// complete fills in the defaults and checks the configuration.
func (c *Config) complete() error {
	u, g := &c.Users, &c.Groups
	u.Name, u.UID, u.GID = cmp.Or(u.Name, "uid"), cmp.Or(u.UID, "uidNumber"), cmp.Or(u.GID, "gidNumber")
	g.Name, g.GID, g.Member = cmp.Or(g.Name, "cn"), cmp.Or(g.GID, "gidNumber"), cmp.Or(g.Member, attrMemberUID)
	u.Filter, g.Filter = cmp.Or(u.Filter, "(objectClass=posixAccount)"), cmp.Or(g.Filter, "(objectClass=posixGroup)")
	u.Home, u.Shell, u.Keys = cmp.Or(u.Home, "homeDirectory"), cmp.Or(u.Shell, "loginShell"),
		cmp.Or(u.Keys, "sshPublicKey")
	c.Timeout.Duration = cmp.Or(c.Timeout.Duration, defaultTimeout)
	c.PageSize = cmp.Or(c.PageSize, defaultPageSize)
	return c.check()
}

// schema sets the defaults that differ from those of RFC 2307.
func (c *Config) schema() error {
	u, g := &c.Users, &c.Groups
	switch c.Schema {
	case "", "rfc2307":
	case "rfc2307bis":
		g.Member = cmp.Or(g.Member, "member")
	case "ad":
		u.Filter = cmp.Or(u.Filter, "(&(objectCategory=person)(objectClass=user)(uidNumber=*))")
		u.Name, u.Home = cmp.Or(u.Name, "sAMAccountName"), cmp.Or(u.Home, "unixHomeDirectory")
		g.Filter, g.Member = cmp.Or(g.Filter, "(objectClass=group)"), cmp.Or(g.Member, "member")
		if c.LowercaseNames == nil {
			c.LowercaseNames = new(true)
		}
	default:
		return fmt.Errorf("schema %q is none of rfc2307, rfc2307bis, ad", c.Schema)
	}
	return nil
}

func (c *Config) check() error {
	if len(c.URLs) == 0 {
		return errors.New("urls: no server is named")
	}
	for _, u := range c.URLs {
		if err := c.checkURL(u); err != nil {
			return err
		}
	}
	if c.Users.Base == "" {
		return errors.New("users.base is not set")
	}
	if (c.BindDN == "") != (c.BindPasswordFile == "") {
		return errors.New("set bindDN and bindPasswordFile together")
	}
	if c.PageSize < 0 {
		return errors.New("pageSize is negative")
	}
	for name, filter := range map[string]string{
		"users.filter": c.Users.Filter, "groups.filter": c.Groups.Filter, "users.disabled": c.Users.Disabled,
	} {
		if filter == "" {
			continue
		}
		if _, err := ldap.CompileFilter(filter); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	_, err := c.tls("")
	return err
}

func (c *Config) checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return fmt.Errorf("urls: %w", err)
	}
	switch {
	case u.Host == "" && u.Scheme != "ldapi":
		return fmt.Errorf("urls: %q names no host", text)
	case u.Scheme == "ldaps", u.Scheme == "ldapi":
		return nil
	case u.Scheme != "ldap":
		return fmt.Errorf("urls: %q begins with none of ldaps://, ldap://, ldapi://", text)
	case !c.StartTLS && !c.AllowPlaintext && !isLoopback(u.Hostname()):
		return fmt.Errorf("urls: %s is not encrypted: set startTLS, or use ldaps://", text)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// tls returns the configuration for connections to a host.
func (c *Config) tls(host string) (*tls.Config, error) {
	t := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if c.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("caFile: %w", err)
	}
	t.RootCAs = x509.NewCertPool()
	if !t.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("caFile: %s has no certificate", c.CAFile)
	}
	return t, nil
}

// password returns the password of BindDN.
func (c *Config) password() (string, error) {
	text, err := os.ReadFile(c.BindPasswordFile)
	if err != nil {
		return "", fmt.Errorf("bindPasswordFile: %w", err)
	}
	p := strings.TrimRight(string(text), "\r\n")
	if p == "" { // the server would accept it as an anonymous bind
		return "", fmt.Errorf("bindPasswordFile: %s is empty", c.BindPasswordFile)
	}
	return p, nil
}
