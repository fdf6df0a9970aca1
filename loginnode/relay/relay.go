// Package relay connects channels and requests of two SSH connections, so that a server
// can pass to another what it does not serve itself.
package relay

import (
	"io"
	"sync"
	"sync/atomic"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/flow"
)

// Flow counts the bytes of relayed channels.
type Flow struct{ In, Out atomic.Int64 }

// Watch is called with each relayed request; it must return at once.
type Watch func(r *ssh.Request)

// Side is one end of a channel.
type Side struct {
	Channel  ssh.Channel
	Requests <-chan *ssh.Request
	Watch    Watch // called with the requests of this end; may be nil
}

// Splice relays everything between the two ends of a channel until both have ended.
// client is the end that opened it.
func Splice(client, backend Side, n *Flow) {
	var outputs, all sync.WaitGroup
	run := func(wg *sync.WaitGroup, f func()) {
		wg.Add(1)
		go func() { defer wg.Done(); f() }()
	}
	run(&all, func() {
		copyCounting(backend.Channel, client.Channel, &n.In)
		_ = backend.Channel.CloseWrite()
	})
	run(&outputs, func() { copyCounting(client.Channel, backend.Channel, &n.Out) })
	run(&outputs, func() { copyCounting(client.Channel.Stderr(), backend.Channel.Stderr(), &n.Out) })
	run(&all, func() {
		outputs.Wait()
		_ = client.Channel.CloseWrite()
	})
	unread := make(chan struct{})
	var answering, unused sync.Mutex
	run(&all, func() {
		requests(client.telling(requestEOW, unread), backend.Channel, &answering)
		_ = backend.Channel.Close() // the client has closed
	})
	requests(backend, client.Channel, &unused)
	// Output of the backend is delivered before the end, unless the client does not read.
	select {
	case <-ended(&outputs):
	case <-unread:
	}
	// A short command may have ended before the client has the backend's answer to its exec.
	answering.Lock()
	_ = client.Channel.Close()
	answering.Unlock()
	all.Wait()
}

// requestEOW is the request by which OpenSSH says that it reads no more output.
const requestEOW = "eow@openssh.com"

// telling returns the side with a Watch that also closes seen at the first request of a
// kind.
func (s Side) telling(kind string, seen chan<- struct{}) Side {
	var once sync.Once
	watch := s.Watch
	s.Watch = func(r *ssh.Request) {
		if r.Type == kind {
			once.Do(func() { close(seen) })
		}
		if watch != nil {
			watch(r)
		}
	}
	return s
}

func ended(wg *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	return done
}

// requests relays the requests of one end until it closes. It holds answering while it
// waits for the answer to a request and passes it on.
func requests(from Side, to ssh.Channel, answering sync.Locker) {
	for r := range from.Requests {
		if from.Watch != nil {
			from.Watch(r)
		}
		answering.Lock()
		ok, err := to.SendRequest(r.Type, r.WantReply, r.Payload)
		if r.WantReply {
			_ = r.Reply(ok && err == nil, nil)
		}
		answering.Unlock()
	}
}

// copyCounting copies until the end of from. If to accepts no more, it still reads the
// rest: unread data would block the end of the connection.
func copyCounting(to io.Writer, from io.Reader, n *atomic.Int64) {
	if flow.Copy(to, from, n, make([]byte, flow.Small), nil) != nil {
		_, _ = io.Copy(io.Discard, from)
	}
}

// Open serves a channel of one connection by opening the same channel on another.
func Open(nc ssh.NewChannel, at ssh.Conn, n *Flow) {
	far, requests, err := at.OpenChannel(nc.ChannelType(), nc.ExtraData())
	if err != nil {
		Reject(nc, err)
		return
	}
	near, asked, err := nc.Accept()
	if err != nil {
		_ = far.Close()
		return
	}
	Splice(Side{Channel: near, Requests: asked}, Side{Channel: far, Requests: requests}, n)
}

// Reject rejects a channel with the reason of the other connection.
func Reject(nc ssh.NewChannel, err error) {
	if o, ok := err.(*ssh.OpenChannelError); ok { //nolint:errorlint // package ssh returns it as it is
		_ = nc.Reject(o.Reason, o.Message)
		return
	}
	_ = nc.Reject(ssh.ConnectionFailed, "the connection behind this one is lost")
}
