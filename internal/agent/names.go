package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/berth-hpc/berth/internal/wire"
)

// names makes the passwd(5) and group(5) of a job: the image's, and in front of
// their lines the user's, so that a uid that the image has given to somebody
// (many have one at 1000) is the user's all the same.
type names struct {
	from, to string   // folders
	user     string   // NAME:UID:GID:HOME:SHELL
	groups   []string // NAME:GID
}

// bare is what there is of an image that has no such file, or cannot be looked
// into because the agent comes by one of its own.
var bare = map[string]string{
	wire.PasswdName: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	wire.GroupName:  "root:x:0:\nnogroup:x:65534:\n",
}

func (n *names) write() error {
	u := strings.Split(n.user, ":")
	if len(u) != 5 {
		return fmt.Errorf("-user=%s: not NAME:UID:GID:HOME:SHELL", n.user)
	}
	groups := ""
	own := false // the primary group's name is among them
	for _, g := range n.groups {
		name, gid, _ := strings.Cut(g, ":")
		own = own || gid == u[2]
		groups += name + ":x:" + gid + ":\n"
	}
	old, err := n.image(wire.GroupName)
	if err != nil {
		return err
	}
	if !own && !strings.Contains("\n"+old, ":"+u[2]+":") {
		groups += u[0] + ":x:" + u[2] + ":\n"
	}
	if err := n.put(wire.GroupName, groups+old); err != nil {
		return err
	}
	if old, err = n.image(wire.PasswdName); err != nil {
		return err
	}
	return n.put(wire.PasswdName, fmt.Sprintf("%s:x:%s:%s::%s:%s\n", u[0], u[1], u[2], u[3], u[4])+old)
}

func (n *names) image(file string) (string, error) {
	data, err := os.ReadFile(filepath.Join(n.from, file))
	if errors.Is(err, fs.ErrNotExist) {
		return bare[file], nil
	}
	return string(data), err
}

func (n *names) put(file, text string) error {
	return writeFile(strings.NewReader(text), filepath.Join(n.to, file), 0o644)
}
