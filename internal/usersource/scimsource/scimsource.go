// Package scimsource reads users and groups from a SCIM service (RFC 7643, RFC 7644), which
// identity providers offer. SCIM has no uids: they come from attributes that the site names.
package scimsource

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/usersource"
)

// Config is the configuration of a service. Attributes are in SCIM's notation: a name, or the
// URN of an extension, a colon and a name.
type Config struct {
	URL string `json:"url"` // https://host/scim/v2
	// TokenFile has the bearer token; it is read at each use.
	TokenFile string `json:"tokenFile"`
	// CAFile has the authorities that sign the server's certificate; "": the machine's.
	CAFile string `json:"caFile,omitempty"`

	Name     string `json:"name,omitempty"` // "": userName
	UID      string `json:"uid"`
	GID      string `json:"gid"`
	Home     string `json:"home,omitempty"`
	Shell    string `json:"shell,omitempty"`
	Keys     string `json:"keys,omitempty"`
	GroupGID string `json:"groupGID,omitempty"` // of groups

	PageSize int `json:"pageSize,omitempty"` // 0: 200
}

// Source is a usersource.Source.
type Source struct {
	cfg    Config
	client *http.Client
}

const (
	defaultPageSize = 200
	timeout         = 30 * time.Second // of a request
	maxPage         = 64 << 20         // bytes
)

// New checks a configuration and returns the source.
func New(c Config) (*Source, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("scim: url: %q is not the address of a service: https://", c.URL)
	case c.TokenFile == "":
		return nil, errors.New("scim: tokenFile is not set")
	case c.UID == "" || c.GID == "":
		return nil, errors.New("scim: set uid and gid to the attributes with these numbers")
	case c.PageSize < 0:
		return nil, errors.New("scim: pageSize is negative")
	}
	c.Name, c.PageSize = cmp.Or(c.Name, "userName"), cmp.Or(c.PageSize, defaultPageSize)
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("scim: caFile: %w", err)
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("scim: caFile: %s has no certificate", c.CAFile)
		}
	}
	// The token must not go elsewhere.
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Source{c, &http.Client{
		Timeout: timeout, CheckRedirect: noRedirect,
		Transport: &http.Transport{TLSClientConfig: secure, Proxy: http.ProxyFromEnvironment},
	}}, nil
}

// resource is a user or a group.
type resource map[string]any

// List reads all users and groups.
func (s *Source) List(ctx context.Context) (*usersource.Listing, error) {
	users, err := s.all(ctx, "Users")
	if err != nil {
		return nil, err
	}
	groups, err := s.all(ctx, "Groups")
	if err != nil {
		return nil, err
	}
	l := &usersource.Listing{Groups: len(groups)}
	m := s.members(l, groups)
	for _, r := range users {
		if e, ok := s.entry(l, r); ok {
			for _, g := range m[r.text("id")] {
				addGroup(&e, g)
			}
			l.Entries = append(l.Entries, e)
		}
	}
	return l, nil
}

// all returns all resources of a kind, page by page.
func (s *Source) all(ctx context.Context, kind string) (list []resource, err error) {
	seen := map[string]bool{}
	for total := 1; len(list) < total; {
		var page struct {
			Total     int        `json:"totalResults"`
			Resources []resource `json:"Resources"`
		}
		q := url.Values{"startIndex": {strconv.Itoa(len(list) + 1)}, "count": {strconv.Itoa(s.cfg.PageSize)}}
		if err := s.get(ctx, kind+"?"+q.Encode(), &page); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		if total = page.Total; len(page.Resources) == 0 && len(list) < total {
			return nil, fmt.Errorf("%s: the service returned %d of %d", kind, len(list), total)
		}
		for _, r := range page.Resources { // a change between two pages may move resources
			if id := r.text("id"); seen[id] {
				return nil, fmt.Errorf("%s: the service returned %q twice", kind, id)
			} else if id != "" {
				seen[id] = true
			}
		}
		list = append(list, page.Resources...)
	}
	return list, nil
}

func (s *Source) get(ctx context.Context, path string, to any) error {
	token, err := os.ReadFile(s.cfg.TokenFile)
	if err != nil {
		return fmt.Errorf("tokenFile: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(s.cfg.URL, "/")+"/"+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/scim+json")
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the service answered %s", answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxPage)).Decode(to)
}

// entry returns the entry of a user without its groups; ok is false if it is not one.
func (s *Source) entry(l *usersource.Listing, r resource) (e usersource.Entry, ok bool) {
	c := &s.cfg
	e = usersource.Entry{Name: r.text(c.Name), Home: r.text(c.Home), Shell: r.text(c.Shell)}
	var err1, err2 error
	e.UID, err1 = strconv.ParseInt(r.text(c.UID), 10, 64)
	e.GID, err2 = strconv.ParseInt(r.text(c.GID), 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		l.Problem("user %q: %s or %s is not a number: %q, %q", e.Name, c.UID, c.GID, r.text(c.UID), r.text(c.GID))
		return e, false
	}
	active, given := r["active"].(bool)
	e.Disabled = given && !active
	var dropped int
	if e.SSHKeys, dropped = usersource.Keys(r.texts(c.Keys)); dropped > 0 {
		l.Problem("user %q: %d keys are left out: too long, too many or not text", e.Name, dropped)
	}
	return e, true
}

// members returns the groups of each user, by the user's id. Groups that share a name are
// left out, because a rule that names one of them could mean either.
func (s *Source) members(l *usersource.Listing, groups []resource) map[string][]v1alpha1.Group {
	names := map[string]int{}
	for _, r := range groups {
		names[r.text("displayName")]++
	}
	out := map[string][]v1alpha1.Group{}
	for _, r := range groups {
		g := v1alpha1.Group{Name: r.text("displayName")}
		if names[g.Name] > 1 {
			l.Problem("the group %q is left out: another one has the same name", g.Name)
			continue
		}
		g.GID, _ = strconv.ParseInt(r.text(s.cfg.GroupGID), 10, 64) // 0: none
		list, _ := r["members"].([]any)
		for _, m := range list {
			member, _ := m.(map[string]any)
			id := resource(member).text("value")
			out[id] = append(out[id], g)
		}
	}
	return out
}

func addGroup(e *usersource.Entry, g v1alpha1.Group) {
	e.MemberOf = append(e.MemberOf, g.Name)
	if g.GID != 0 {
		e.Groups = append(e.Groups, g)
	}
}

// value returns the value of an attribute; nil: there is none.
func (r resource) value(attribute string) any {
	if i := strings.LastIndexByte(attribute, ':'); i >= 0 {
		extension, _ := r[attribute[:i]].(map[string]any)
		return extension[attribute[i+1:]]
	}
	return r[attribute]
}

// text returns the value of an attribute as text.
func (r resource) text(attribute string) string {
	switch v := r.value(attribute).(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}

// texts returns the values of an attribute that may have several, each a text or an object
// with a value.
func (r resource) texts(attribute string) (out []string) {
	list, ok := r.value(attribute).([]any)
	if !ok {
		if text := r.text(attribute); text != "" {
			out = append(out, text)
		}
		return out
	}
	for _, v := range list {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case map[string]any:
			out = append(out, resource(v).text("value"))
		}
	}
	return out
}
