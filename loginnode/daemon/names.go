package daemon

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// names writes users that exist only in the cluster to passwd(5) and group(5): without
// a name whoami, ssh, git and many other programs fail. It is safe for concurrent use.
type names struct {
	dir  string // usually /etc
	warn func(string)

	mu sync.Mutex
}

// mark is in the comment of lines that are this program's, which it may change.
const mark = "Berth"

// add ensures that a user and the user's group have names.
func (n *names) add(u *auth.User) {
	n.mu.Lock()
	defer n.mu.Unlock()
	uid, gid := strconv.Itoa(u.UID), strconv.Itoa(u.GID)
	err := n.put("passwd", 0o644, []string{u.Name, "x", uid, gid, mark, u.Home, u.Shell})
	for _, g := range groupsOf(u) {
		if err == nil {
			err = n.put("group", 0o644, g)
		}
	}
	if err == nil {
		err = n.put("group", 0o644, []string{u.Name, "x", gid, ""})
	}
	if err != nil {
		n.warn(fmt.Sprintf("cannot add user %s to passwd and group: %v", u.Name, err))
	}
}

// groupsOf returns the lines of the user's groups whose names are known.
func groupsOf(u *auth.User) [][]string {
	var lines [][]string
	for _, gid := range slices.Sorted(maps.Keys(u.GroupNames)) {
		if name := u.GroupNames[gid]; name != "" {
			lines = append(lines, []string{name, "x", strconv.Itoa(gid), ""})
		}
	}
	return lines
}

// put writes a line, unless another line has the name or the number.
func (n *names) put(file string, mode os.FileMode, line []string) error {
	text := strings.Join(line, ":")
	if strings.Count(text, ":") != len(line)-1 || strings.ContainsAny(text, "\n\r\x00") {
		return fmt.Errorf("%s: %q is not a valid line", file, text)
	}
	name := filepath.Join(n.dir, file)
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var out strings.Builder
	for old := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimRight(old, "\n"), ":")
		if len(f) < 3 || f[0] != line[0] && f[2] != line[2] {
			out.WriteString(strings.TrimRight(old, "\n") + "\n")
			continue
		}
		if strings.Join(f, ":") == text || len(f) < 5 || f[4] != mark {
			return nil
		}
	}
	out.WriteString(text + "\n")
	return replace(name, out.String(), mode)
}

// replace replaces a file atomically.
func replace(name, text string, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".berth-")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(mode)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
