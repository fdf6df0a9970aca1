// Package filesource reads users from files: a YAML file, or files like passwd(5) and
// group(5).
package filesource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/usersource"
)

// Config names the files: either Path, or Passwd and perhaps Group.
type Config struct {
	Path   string `json:"path,omitempty"`
	Passwd string `json:"passwd,omitempty"`
	Group  string `json:"group,omitempty"`
}

// Source is a usersource.Source and usersource.Versioned.
type Source struct{ cfg Config }

// New returns the source for a configuration.
func New(c Config) (*Source, error) {
	if (c.Path == "") == (c.Passwd == "") || c.Path != "" && c.Group != "" {
		return nil, errors.New("file: set either path, or passwd and group")
	}
	return &Source{c}, nil
}

// file is the YAML file.
type file struct {
	Users []struct {
		Name     string   `json:"name"`
		UID      int64    `json:"uid"`
		GID      int64    `json:"gid"`
		Groups   []string `json:"groups,omitempty"` // names
		Home     string   `json:"home,omitempty"`
		Shell    string   `json:"shell,omitempty"`
		SSHKeys  []string `json:"sshKeys,omitempty"`
		Disabled bool     `json:"disabled,omitempty"`
	} `json:"users"`
	Groups []group `json:"groups,omitempty"`
}

type group struct {
	Name    string   `json:"name"`
	GID     int64    `json:"gid,omitempty"` // 0: none
	Members []string `json:"members,omitempty"`
}

// Version returns the times and sizes of the files.
func (s *Source) Version() string {
	text := ""
	for _, name := range []string{s.cfg.Path, s.cfg.Passwd, s.cfg.Group} {
		if st, err := os.Stat(name); err == nil {
			text += fmt.Sprintf("%d/%d ", st.ModTime().UnixNano(), st.Size())
		}
	}
	return text
}

// List reads the files.
func (s *Source) List(context.Context) (*usersource.Listing, error) {
	if s.cfg.Path == "" {
		return s.passwd()
	}
	text, err := os.ReadFile(s.cfg.Path)
	if err != nil {
		return nil, err
	}
	var f file
	if err := yaml.UnmarshalStrict(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", s.cfg.Path, err)
	}
	l := &usersource.Listing{Groups: len(f.Groups)}
	for i := range f.Users {
		u := &f.Users[i]
		e := usersource.Entry{
			Name: u.Name, UID: u.UID, GID: u.GID, Home: u.Home, Shell: u.Shell, Disabled: u.Disabled,
		}
		var dropped int
		if e.SSHKeys, dropped = usersource.Keys(u.SSHKeys); dropped > 0 {
			l.Problem("user %q: %d keys are left out: too long, too many or not text", u.Name, dropped)
		}
		addGroups(&e, f.Groups, u.Groups)
		for _, name := range u.Groups {
			if !slices.Contains(e.MemberOf, name) {
				l.Problem("user %q: the file has no group %q", u.Name, name)
			}
		}
		l.Entries = append(l.Entries, e)
	}
	return l, nil
}

// addGroups adds the groups that the user is in: by a group's members, by the user's list of
// names, or as the primary one.
func addGroups(e *usersource.Entry, groups []group, names []string) {
	for _, g := range groups {
		primary := g.GID != 0 && g.GID == e.GID
		if !primary && !slices.Contains(g.Members, e.Name) && !slices.Contains(names, g.Name) {
			continue
		}
		e.MemberOf = append(e.MemberOf, g.Name)
		if g.GID != 0 {
			e.Groups = append(e.Groups, v1alpha1.Group{Name: g.Name, GID: g.GID})
		}
	}
}

// Fields of the lines of passwd(5) and group(5).
const (
	passwdFields = 7
	groupFields  = 4
)

func (s *Source) passwd() (*usersource.Listing, error) {
	l := &usersource.Listing{}
	groups, err := s.groups(l)
	if err != nil {
		return nil, err
	}
	l.Groups = len(groups)
	err = eachLine(s.cfg.Passwd, passwdFields, func(f []string) error {
		uid, err1 := strconv.ParseInt(f[2], 10, 64)
		gid, err2 := strconv.ParseInt(f[3], 10, 64)
		if err := errors.Join(err1, err2); err != nil {
			l.Problem("user %q: %v", f[0], err)
			return nil
		}
		e := usersource.Entry{Name: f[0], UID: uid, GID: gid, Home: f[5], Shell: f[6]}
		addGroups(&e, groups, nil)
		l.Entries = append(l.Entries, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (s *Source) groups(l *usersource.Listing) (groups []group, err error) {
	if s.cfg.Group == "" {
		return nil, nil
	}
	err = eachLine(s.cfg.Group, groupFields, func(f []string) error {
		gid, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			l.Problem("group %q: %v", f[0], err)
			return nil
		}
		members := strings.FieldsFunc(f[3], func(r rune) bool { return r == ',' || r == ' ' })
		groups = append(groups, group{Name: f[0], GID: gid, Members: members})
		return nil
	})
	return groups, err
}

// eachLine calls f with the fields of each line that has that many. Another line is an error:
// the file may have been read while it was written.
func eachLine(name string, fields int, f func([]string) error) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		list := strings.Split(line, ":")
		if len(list) != fields {
			return fmt.Errorf("%s: line %d has %d fields, not %d", name, n, len(list), fields)
		}
		if err := f(list); err != nil {
			return err
		}
	}
	return nil
}
