// Package usersource defines what the sources of users have in common: a source lists the
// users of a site from where the site keeps them, such as an LDAP directory or a file.
package usersource

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Entry is a user in a source. Nothing of it has been checked: a person who may write to the
// source chose every value.
type Entry struct {
	Name        string
	UID, GID    int64
	Groups      []v1alpha1.Group // those with a gid, the primary one too if it is known
	MemberOf    []string         // names of all groups, also of those without a gid
	Home, Shell string           // "": the source does not say
	SSHKeys     []string         // lines of authorized_keys
	// Disabled: the source says that the user may not log in.
	Disabled bool
}

// Listing is the contents of a source.
type Listing struct {
	Entries []Entry
	Groups  int // how many groups the source has
	// Problems are the entries that could not be read, and why.
	Problems []string
}

// Problem adds a problem.
func (l *Listing) Problem(format string, args ...any) {
	l.Problems = append(l.Problems, fmt.Sprintf(format, args...))
}

// Source lists users. Implementations are safe for concurrent use.
type Source interface {
	// List returns all users of the source. If it cannot read all of them, it returns an
	// error and no listing, since a missing user is one who has left.
	List(ctx context.Context) (*Listing, error)
}

// Versioned is a Source of which it is cheap to find out whether it has changed.
type Versioned interface {
	// Version returns a text that differs after a change.
	Version() string
}

// userName matches the names of users: those that useradd(8) accepts and that can be
// names of Kubernetes objects.
var userName = regexp.MustCompile(`^[a-z]([a-z0-9.-]{0,30}[a-z0-9])?$`)

// ValidName reports whether a user can have the name. It becomes the name of an object, and
// part of paths, command lines and lines of passwd(5).
func ValidName(name string) bool {
	return userName.MatchString(name) && !strings.Contains(name, "..") && !strings.Contains(name, ".-") &&
		!strings.Contains(name, "-.")
}

// groupName matches the names of groups that a line of group(5) can have.
var groupName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// ValidGroupName reports whether group(5) can have a group with the name.
func ValidGroupName(name string) bool { return groupName.MatchString(name) }

// Limits of the keys of one user.
const (
	maxKeys     = 64
	maxKeyBytes = 16 << 10
)

// Keys returns the lines of authorized_keys in values of an attribute, each of which may have
// several. dropped is how many lines were left out: too long, too many, or with control
// characters.
func Keys(values []string) (lines []string, dropped int) {
	for _, value := range values {
		for line := range strings.Lines(value) {
			line = strings.TrimSpace(line)
			switch {
			case line == "" || line[0] == '#':
			case len(line) > maxKeyBytes || len(lines) == maxKeys || strings.ContainsFunc(line, isControl):
				dropped++
			default:
				lines = append(lines, line)
			}
		}
	}
	return lines, dropped
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == '\ufffd' }
