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

// accountFiles writes the passwd(5) and group(5) of a job. The user's lines precede
// those of the image, so that a uid to which the image gives another name, as many
// do for 1000, has the user's name.
type accountFiles struct {
	from, to string   // directories
	user     string   // NAME:UID:GID:HOME:SHELL
	groups   []string // NAME:GID
}

// defaultContents are the contents for an image that has no such file, or whose
// files cannot be read because the agent has an image of its own.
var defaultContents = map[string]string{
	wire.PasswdName: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	wire.GroupName:  "root:x:0:\nnogroup:x:65534:\n",
}

// write writes both files.
func (n *accountFiles) write() error {
	u := strings.Split(n.user, ":")
	if len(u) != 5 {
		return fmt.Errorf("-user=%s: not NAME:UID:GID:HOME:SHELL", n.user)
	}
	groups := ""
	hasPrimary := false // whether n.groups contains the primary group
	for _, g := range n.groups {
		name, gid, _ := strings.Cut(g, ":")
		hasPrimary = hasPrimary || gid == u[2]
		groups += name + ":x:" + gid + ":\n"
	}
	old, err := n.imageFile(wire.GroupName)
	if err != nil {
		return err
	}
	if !hasPrimary && !strings.Contains("\n"+old, ":"+u[2]+":") {
		groups += u[0] + ":x:" + u[2] + ":\n"
	}
	if err := n.writeFile(wire.GroupName, groups+old); err != nil {
		return err
	}
	if old, err = n.imageFile(wire.PasswdName); err != nil {
		return err
	}
	return n.writeFile(wire.PasswdName, fmt.Sprintf("%s:x:%s:%s::%s:%s\n", u[0], u[1], u[2], u[3], u[4])+old)
}

func (n *accountFiles) imageFile(file string) (string, error) {
	data, err := os.ReadFile(filepath.Join(n.from, file))
	if errors.Is(err, fs.ErrNotExist) {
		return defaultContents[file], nil
	}
	return string(data), err
}

func (n *accountFiles) writeFile(file, text string) error {
	return writeFile(strings.NewReader(text), filepath.Join(n.to, file), 0o644)
}
