// Package accounts makes the passwd(5) and group(5) of a job's container: those of its image,
// with the job's user. Programs that call getpwuid(3), such as whoami, ssh and git, fail for a
// uid without a name, and no image knows the uids of a site.
package accounts

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Files are the contents of both files.
type Files struct {
	Passwd string `json:"passwd"`
	Group  string `json:"group"`
}

// User is a user of the site.
type User struct {
	Name        string
	UID, GID    int64
	Home, Shell string
	Groups      []Group // whose names are known
}

// Group is a group of the site.
type Group struct {
	Name string
	GID  int64
}

// With returns the files with the lines of the user and the user's groups before the others,
// so that a uid to which the image gives another name, as many do for 1000, has the user's
// name. The primary group gets the user's name if it has none.
func (f Files) With(u User) Files {
	var groups strings.Builder
	named := strings.Contains("\n"+f.Group, ":"+strconv.FormatInt(u.GID, 10)+":")
	for _, g := range u.Groups {
		named = named || g.GID == u.GID
		fmt.Fprintf(&groups, "%s:x:%d:\n", g.Name, g.GID)
	}
	if !named {
		fmt.Fprintf(&groups, "%s:x:%d:\n", u.Name, u.GID)
	}
	return Files{
		Passwd: fmt.Sprintf("%s:x:%d:%d::%s:%s\n", u.Name, u.UID, u.GID, u.Home, u.Shell) + f.Passwd,
		Group:  groups.String() + f.Group,
	}
}

// maxMessage is the maximum length of a container's termination message in bytes; kubelets cut
// off the rest.
const maxMessage = 4096

// Message returns the files in the form of a container's termination message, or "" if they
// are too large for one.
func (f Files) Message() string {
	text, err := json.Marshal(f)
	if err != nil || len(text) > maxMessage {
		return ""
	}
	return string(text)
}

// OfMessage returns the files of a message. ok is false if it is not one.
func OfMessage(text string) (f Files, ok bool) {
	if !strings.HasPrefix(text, "{") {
		return Files{}, false
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil || f.Passwd == "" {
		return Files{}, false
	}
	return f, true
}
