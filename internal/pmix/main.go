//go:build pmix

package pmix

import (
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/berth-hpc/berth/internal/step"
)

// agentFD is the descriptor of the socket to the agent.
const agentFD = 3

// Main runs the server and returns its exit code. With --version it prints the
// version of the library, which also shows that the program can run.
func Main(args []string, out, errs io.Writer) int {
	if len(args) == 2 && args[1] == "--version" {
		fmt.Fprintln(out, Version())
		return 0
	}
	// The server must outlive the tasks, so only the agent ends it, by closing the socket.
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	c, err := net.FileConn(os.NewFile(agentFD, "agent"))
	if err != nil {
		fmt.Fprintln(errs, "the PMIx server is started by the agent, not on the command line")
		return 2
	}
	conn := step.NewConn(c)
	defer conn.Close()
	s, err := newServer(conn)
	if err != nil {
		// If it cannot be sent, the end of the process reports the failure.
		_ = conn.Send(&step.Frame{Type: step.FrameRefused, Data: []byte(err.Error())})
		return 1
	}
	s.serve(conn)
	return 0
}

// newServer receives the step from the agent, starts the library, and sends the agent
// the environments of the tasks.
func newServer(conn *step.Conn) (*server, error) {
	var job step.PMIxJob
	if err := conn.Expect(step.FramePMIx, &job); err != nil {
		return nil, err
	}
	s, err := open(&job, conn.Send)
	if err != nil {
		return nil, err
	}
	var ready step.PMIxReady
	for _, rank := range s.localTasks {
		environ, err := s.environ(rank)
		if err != nil {
			return nil, err
		}
		ready.Env = append(ready.Env, environ)
	}
	return s, conn.SendJSON(step.FramePMIxReady, &ready)
}

// serve handles frames from other nodes until the agent closes the connection.
func (s *server) serve(conn *step.Conn) {
	for {
		f, err := conn.Receive()
		if err != nil {
			return
		}
		switch f.Type {
		case step.FrameCollected:
			if c, err := step.ReadCollective(f); err == nil {
				s.endFence(c)
			}
		case step.FrameModex:
			if m, err := step.ReadModex(f); err == nil {
				s.handleModex(m)
			}
		}
	}
}

// hash returns a hash of a key.
func hash(key string) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, key) // never fails
	return h.Sum64()
}
