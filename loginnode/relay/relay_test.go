package relay

import (
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// backend is the end of a channel at which a command ends before the answer to its request
// has arrived.
type backend struct {
	ssh.Channel // nil: the methods that are not here are not called
	requests    chan *ssh.Request
	ended       chan struct{}
	closed      <-chan struct{} // the client's channel was closed
}

func (b *backend) Read([]byte) (int, error)    { <-b.ended; return 0, io.EOF }
func (b *backend) Write(p []byte) (int, error) { return len(p), nil }
func (b *backend) Close() error                { return nil }
func (b *backend) CloseWrite() error           { return nil }
func (b *backend) Stderr() io.ReadWriter       { return b }

// SendRequest ends the command, and answers when the client's channel has been closed, or
// when there was time enough to close it.
func (b *backend) SendRequest(string, bool, []byte) (bool, error) {
	close(b.requests)
	close(b.ended)
	select {
	case <-b.closed:
	case <-time.After(100 * time.Millisecond):
	}
	return true, nil
}

// closing is a channel that reports that it is closed.
type closing struct {
	ssh.Channel
	closed chan struct{}
}

func (c *closing) Close() error {
	close(c.closed)
	return c.Channel.Close()
}

// TestAnswerBeforeTheEnd: the client gets the answer to its request also if the command has
// ended meanwhile.
func TestAnswerBeforeTheEnd(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // both ends write first, which a pipe in memory cannot
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	spliced := make(chan struct{})
	go func() {
		defer close(spliced)
		far, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer far.Close()
		config := &ssh.ServerConfig{NoClientAuth: true}
		config.AddHostKey(signer)
		_, chans, reqs, err := ssh.NewServerConn(far, config)
		if err != nil {
			t.Error(err)
			return
		}
		go ssh.DiscardRequests(reqs)
		ch, asked, err := (<-chans).Accept()
		if err != nil {
			t.Error(err)
			return
		}
		client := &closing{ch, make(chan struct{})}
		b := &backend{requests: make(chan *ssh.Request), ended: make(chan struct{}), closed: client.closed}
		Splice(Side{Channel: client, Requests: asked}, Side{Channel: b, Requests: b.requests}, new(Flow))
	}()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	conn, chans, reqs, err := ssh.NewClientConn(near, "", &ssh.ClientConfig{HostKeyCallback: ssh.FixedHostKey(signer.PublicKey())})
	if err != nil {
		t.Fatal(err)
	}
	c := ssh.NewClient(conn, chans, reqs)
	ch, asked, err := c.OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	go ssh.DiscardRequests(asked)
	if ok, err := ch.SendRequest("exec", true, nil); !ok || err != nil {
		t.Errorf("the answer to exec is %v, %v", ok, err)
	}
	_ = ch.Close()
	<-spliced
}
