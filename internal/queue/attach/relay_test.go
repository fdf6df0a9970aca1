package attach

import (
	"errors"
	"io"
	"net"
	"testing"
)

// brokenConn is a client's connection to which every write fails, and from which
// nothing can be read until it is closed.
type brokenConn struct{ net.Conn }

func (brokenConn) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// TestRelayReportsWhichSideEnded: a client that has gone away shows in a read or in a
// write, whichever comes first; the end of an agent is no hang-up of the client.
func TestRelayReportsWhichSideEnded(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(client, agent net.Conn)
		broken bool // writes to the client fail
		want   bool
	}{
		{"the client's end is read", func(client, _ net.Conn) { client.Close() }, false, true},
		{"a write to the client fails", func(_, agent net.Conn) { io.WriteString(agent, "beat") }, true, true}, //nolint:errcheck // it is read
		{"the agent ends", func(_, agent net.Conn) { agent.Close() }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			near, far := net.Pipe()
			toAgent, agent := net.Pipe()
			var client io.WriteCloser = near
			if c.broken {
				client = brokenConn{near}
			}
			go c.end(far, agent)
			if got := relayBoth(client, near, toAgent); got != c.want {
				t.Errorf("the client ended: %v, want %v", got, c.want)
			}
		})
	}
}
