package auth

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth/loginnode/asuser"
)

// ErrUnknownUser reports that a directory does not have the user. After any other error
// the login is refused.
var ErrUnknownUser = errors.New("no such user")

// User is a user who may log in.
type User struct {
	Name     string
	UID, GID int
	Groups   []int // supplementary; the primary may be among them
	// GroupNames are the names of groups that the system may not have.
	GroupNames map[int]string `json:",omitempty"`
	Home       string
	Shell      string // "": /bin/sh, as in passwd(5)
	// Keys are lines of authorized_keys from the source of the user, in addition to the
	// files.
	Keys []string
	// Source is the source of the record, for the log.
	Source string
}

// Rights returns the user's rights for package asuser.
func (u *User) Rights() asuser.User {
	return asuser.User{UID: u.UID, GID: u.GID, Groups: u.Groups}
}

// Directory looks up users. Implementations are safe for concurrent use and return when
// ctx is done.
type Directory interface {
	// Lookup returns the user, ErrUnknownUser, or the error of a failed look-up.
	Lookup(ctx context.Context, name string) (*User, error)
}

// DirectoryFunc is a function as a Directory.
type DirectoryFunc func(ctx context.Context, name string) (*User, error)

// Lookup calls f.
func (f DirectoryFunc) Lookup(ctx context.Context, name string) (*User, error) { return f(ctx, name) }

// First looks up a user in several directories, in order. The first one that has the
// user decides. If one fails, the login is refused: otherwise a later source could
// define the user.
type First []Directory

// Lookup implements Directory.
func (d First) Lookup(ctx context.Context, name string) (*User, error) {
	for _, one := range d {
		u, err := one.Lookup(ctx, name)
		if !errors.Is(err, ErrUnknownUser) {
			return u, err
		}
	}
	return nil, ErrUnknownUser
}

// userName matches the names that useradd(8) accepts, and dots and capitals.
var userName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// ValidName reports whether a name may be looked up at all. Names become parts of paths
// and command lines.
func ValidName(name string) bool { return userName.MatchString(name) }

// maxID is the largest uid or gid; the one above means "no change" to the kernel.
const maxID = 1<<32 - 2

// ParsePasswd parses a line of passwd(5).
func ParsePasswd(line string) (*User, error) {
	f := strings.Split(line, ":")
	if len(f) != 7 || !ValidName(f[0]) {
		return nil, fmt.Errorf("not a line of passwd(5): %.200q", line)
	}
	uid, err1 := strconv.ParseUint(f[2], 10, 32)
	gid, err2 := strconv.ParseUint(f[3], 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if uid > maxID || gid > maxID {
		return nil, fmt.Errorf("user %s: uid or gid out of range", f[0])
	}
	return &User{Name: f[0], UID: int(uid), GID: int(gid), Home: f[5], Shell: f[6]}, nil
}

// Getent looks up users in the machine's name service by getent(1), so that SSSD and
// LDAP work without libc.
type Getent struct {
	Program string // "": getent, from PATH
}

// Lookup implements Directory.
func (g Getent) Lookup(ctx context.Context, name string) (*User, error) {
	if !ValidName(name) {
		return nil, ErrUnknownUser
	}
	line, err := g.run(ctx, "passwd", name)
	if err != nil {
		return nil, err
	}
	u, err := ParsePasswd(line)
	if err != nil {
		return nil, err
	}
	u.Source = "getent"
	// Some name services ignore case; the user must log in under the authenticated name.
	if u.Name != name {
		return nil, fmt.Errorf("looked up user %q, the name service returned %q", name, u.Name)
	}
	list, err := g.run(ctx, "initgroups", name)
	if err != nil {
		return nil, err
	}
	u.Groups = []int{u.GID}
	for _, f := range strings.Fields(list)[1:] {
		gid, err := strconv.ParseUint(f, 10, 32)
		if err != nil || gid > maxID {
			return nil, fmt.Errorf("getent initgroups %s: %q is not a gid", name, f)
		}
		if !slices.Contains(u.Groups, int(gid)) {
			u.Groups = append(u.Groups, int(gid))
		}
	}
	return u, nil
}

// notFound is getent's exit code for an unknown key.
const notFound = 2

func (g Getent) run(ctx context.Context, database, key string) (string, error) {
	program := g.Program
	if program == "" {
		program = "getent"
	}
	cmd := exec.CommandContext(ctx, program, database, key)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.WaitDelay = time.Second // a child of it may keep its output open
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == notFound {
		return "", ErrUnknownUser
	}
	if err != nil {
		return "", fmt.Errorf("getent %s: %w", database, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	if line == "" {
		return "", ErrUnknownUser
	}
	return line, nil
}
