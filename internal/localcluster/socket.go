package localcluster

import (
	"crypto/rand"
	"encoding/csv"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/berth-hpc/berth/internal/localcluster/pki"
)

// Files of the state directory for requests without TLS.
const (
	fileSocket = "api.sock"
	fileTokens = "control/tokens.csv"
)

// maxSocketPath is the length of a Unix socket's path that every system accepts, in bytes
// (unix(7): 108 with the final null byte).
const maxSocketPath = 107

// listenSocket binds the socket through which the commands of people on this machine reach the
// API server. Every user of the machine may connect; the token in a kubeconfig says which user it
// is. There is no socket if the path of the state directory is too long for one: commands use
// the API server's address then.
func (k *cluster) listenSocket() error {
	path := k.state.path(fileSocket)
	if len(path) > maxSocketPath {
		return nil
	}
	// The lock of the state directory says that no other process uses it.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	k.socket = l
	return os.Chmod(path, 0o666)
}

// issueTokens makes new tokens of the administrator, of the users, and of the parts of this
// process, and writes them where the API server reads them (--token-auth-file). They are valid
// until the cluster stops, so a copy of an old kubeconfig falls back on its certificate.
func (k *cluster) issueTokens() error {
	var text strings.Builder
	w := csv.NewWriter(&text)
	k.tokens = map[string]string{}
	add := func(user, group string) {
		k.tokens[user] = rand.Text() + rand.Text() // 256 bits
		_ = w.Write([]string{k.tokens[user], user, "", group})
	}
	for _, part := range []string{identityKCM, identityJobSet, identityLocal} {
		add(part, masters)
	}
	add(identityScheduler, "")
	add(k.Admin.Name, masters)
	for _, u := range k.Users {
		if u.Name != k.Admin.Name {
			add(u.Name, groupUsers)
		}
	}
	if w.Flush(); w.Error() != nil {
		return w.Error()
	}
	if err := os.MkdirAll(k.state.path("control"), 0o700); err != nil {
		return err
	}
	return k.state.write(fileTokens, []byte(text.String()))
}

// direct returns what a user's kubeconfig says about the socket.
func (k *cluster) direct(user string) pki.Direct {
	if k.socket == nil {
		return pki.Direct{}
	}
	return pki.Direct{Socket: k.state.path(fileSocket), Token: k.tokens[user]}
}
