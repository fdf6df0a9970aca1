package api

import (
	"errors"
	"io"
	"net"
	"testing"
)

// broken is a client's connection: what is written to it fails, and nothing
// comes from it until it is closed.
type broken struct{ net.Conn }

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A client that is gone shows where it is read from or where it is written to,
// whichever comes first; an agent that is gone is not a client that hung up.
func TestBothTellsWhoLeft(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(client, agent net.Conn)
		dead bool // what is written to the client fails
		left bool
	}{
		{"the client's end is read", func(client, _ net.Conn) { client.Close() }, false, true},
		{"a write to the client fails", func(_, agent net.Conn) { io.WriteString(agent, "beat") }, true, true}, //nolint:errcheck // it is read
		{"the agent ends", func(_, agent net.Conn) { agent.Close() }, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			near, far := net.Pipe()
			toAgent, agent := net.Pipe()
			var client io.WriteCloser = near
			if c.dead {
				client = broken{near}
			}
			go c.end(far, agent)
			if left := both(client, near, toAgent); left != c.left {
				t.Errorf("left = %v, not %v", left, c.left)
			}
		})
	}
}
