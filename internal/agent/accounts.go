package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/accounts"
)

// accountFiles writes the passwd(5) and group(5) of a job.
type accountFiles struct {
	from, to string   // directories
	user     string   // NAME:UID:GID:HOME:SHELL
	groups   []string // NAME:GID
	message  string   // file to which the image's accounts are written; "": none
}

// defaultContents are the contents for an image that has no such file, or whose
// files cannot be read because the agent has an image of its own.
var defaultContents = map[string]string{
	wire.PasswdName: "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	wire.GroupName:  "root:x:0:\nnogroup:x:65534:\n",
}

// write writes the files.
func (n *accountFiles) write() error {
	u, err := n.parse()
	if err != nil {
		return err
	}
	passwd, err1 := n.imageFile(wire.PasswdName)
	group, err2 := n.imageFile(wire.GroupName)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	image := accounts.Files{Passwd: passwd, Group: group}
	files := image.With(u)
	err1, err2 = n.writeFile(wire.GroupName, files.Group), n.writeFile(wire.PasswdName, files.Passwd)
	if err := errors.Join(err1, err2); err != nil || n.message == "" {
		return err
	}
	// Truncated and not replaced: the kubelet has mounted this file.
	return os.WriteFile(n.message, []byte(image.Message()), 0o644)
}

// parse reads the user and the groups.
func (n *accountFiles) parse() (accounts.User, error) {
	f := strings.Split(n.user, ":")
	if len(f) != 5 {
		return accounts.User{}, fmt.Errorf("-user=%s: not NAME:UID:GID:HOME:SHELL", n.user)
	}
	uid, err1 := strconv.ParseInt(f[1], 10, 64)
	gid, err2 := strconv.ParseInt(f[2], 10, 64)
	u := accounts.User{Name: f[0], UID: uid, GID: gid, Home: f[3], Shell: f[4]}
	err := errors.Join(err1, err2)
	for _, g := range n.groups {
		name, text, _ := strings.Cut(g, ":")
		gid, err1 := strconv.ParseInt(text, 10, 64)
		u.Groups, err = append(u.Groups, accounts.Group{Name: name, GID: gid}), errors.Join(err, err1)
	}
	return u, err
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
