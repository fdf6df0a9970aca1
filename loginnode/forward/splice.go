package forward

import (
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"
)

// Stream is a stream whose directions end one by one.
type Stream interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// Bytes counts what forwardings carry.
type Bytes struct{ In, Out atomic.Int64 }

// splice connects a channel and a stream until both directions have ended. An
// end of one direction is passed on as just that: the peer may still answer.
func (f *Forwarder) splice(ch ssh.Channel, conn Stream) {
	var both sync.WaitGroup
	both.Add(2)
	go func() {
		defer both.Done()
		defer f.contain()
		if oneWay(conn, ch, &f.Bytes.In) {
			_ = conn.CloseWrite()
		} else {
			conn.Close() // nobody reads there: stop the other direction too
		}
	}()
	go func() {
		defer both.Done()
		defer f.contain()
		if oneWay(ch, conn, &f.Bytes.Out) {
			_ = ch.CloseWrite()
		} else {
			_ = ch.Close()
		}
	}()
	both.Wait()
	conn.Close()
	_ = ch.Close()
}

// oneWay copies until the end of from (true) or until to takes no more.
func oneWay(to io.Writer, from io.Reader, n *atomic.Int64) bool {
	buffer := make([]byte, 32<<10)
	for {
		k, err := from.Read(buffer)
		if k > 0 {
			n.Add(int64(k))
			if _, werr := to.Write(buffer[:k]); werr != nil {
				return false
			}
		}
		if err != nil {
			return true
		}
	}
}

// discard answers what nobody expects on a forwarded channel.
func discard(requests <-chan *ssh.Request) { go ssh.DiscardRequests(requests) }
