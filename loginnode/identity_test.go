package loginnode

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/auth"
	"github.com/berth-hpc/berth/loginnode/limit"
)

// named is a connection that has logged in under a name.
type named struct {
	ssh.Conn
	user string
}

func (n *named) User() string { return n.user }

// Behind the attempts there is a second check: a connection is not served
// whose identity is missing, or is not that of the name it has logged in with.
func TestS01IdentityIsThatOfTheConnection(t *testing.T) {
	for name, p := range map[string]*ssh.Permissions{
		"none": nil, "an empty one": {}, "somebody else's": auth.Proven(&auth.User{Name: "ann", UID: 1}, "publickey"),
	} {
		here, there := net.Pipe()
		defer there.Close()
		_ = there.SetDeadline(time.Now().Add(10 * time.Second))
		c := &conn{Conn: here, server: &Server{cfg: Config{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, quotas: limit.NewQuotas(9, 9)}}
		if c.bindIdentity(&ssh.ServerConn{Conn: &named{user: "bob"}, Permissions: p}) || c.login != nil {
			t.Errorf("%s: bob is served", name)
		}
		if _, err := there.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: the connection is open: %v", name, err)
		}
		if c.bindIdentity(&ssh.ServerConn{Conn: &named{user: "ann"}, Permissions: p}) {
			t.Errorf("%s: served at the second request", name)
		}
	}
}
