package forward

import (
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/flow"
)

// Stream is a stream whose directions can be closed separately.
type Stream interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Bytes counts the bytes of forwardings.
type Bytes struct{ In, Out atomic.Int64 }

// splice copies between a channel and a stream until both directions have ended. The
// end of one direction closes only that direction: the peer may still answer.
func (f *Forwarder) splice(ch ssh.Channel, conn Stream) {
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		defer both.Done()
		defer f.contain()
		if oneWay(conn, ch, &f.Bytes.In) == nil {
			_ = conn.CloseWrite()
		} else {
			conn.Close() // the peer does not read: end the other direction too
		}
	}()
	go func() {
		defer both.Done()
		defer f.contain()
		if oneWay(ch, conn, &f.Bytes.Out) == nil {
			_ = ch.CloseWrite()
		} else {
			_ = ch.Close()
		}
	}()
	both.Wait()
	conn.Close()
	_ = ch.Close()
}

func oneWay(to io.Writer, from io.Reader, n *atomic.Int64) error {
	return flow.Copy(to, from, n, make([]byte, flow.Small), nil)
}

// discard refuses the requests on a forwarded channel.
func discard(requests <-chan *ssh.Request) { go ssh.DiscardRequests(requests) }
