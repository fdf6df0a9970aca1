package forward

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"
)

// tcpForward is the payload of tcpip-forward and cancel-tcpip-forward.
type tcpForward struct {
	Host string
	Port uint32
}

// Listen serves a tcpip-forward request (ssh -R). It listens on the loopback interface,
// whatever address the client names.
func (f *Forwarder) Listen(payload []byte) (bool, []byte) {
	var m tcpForward
	if ssh.Unmarshal(payload, &m) != nil {
		return false, nil
	}
	l, port, err := f.listenTCP(m)
	f.reportKept(
		tcpName(m.Host, port),
		"tcpip-forward",
		net.JoinHostPort(m.Host, strconv.FormatUint(uint64(m.Port), 10)),
		err,
	)
	if err != nil {
		return false, nil
	}
	go f.accept(l, "forwarded-tcpip", func(c net.Conn) []byte {
		d := directTCP{Host: m.Host, Port: port}
		if from, ok := c.RemoteAddr().(*net.TCPAddr); ok {
			d.OriginHost, d.OriginPort = from.IP.String(), uint32(from.Port)
		}
		return ssh.Marshal(d)
	})
	if m.Port == 0 {
		return true, ssh.Marshal(struct{ Port uint32 }{port})
	}
	return true, nil
}

// listenTCP returns a registered listener and its port.
func (f *Forwarder) listenTCP(m tcpForward) (net.Listener, uint32, error) {
	if err := f.allowed(); err != nil {
		return nil, 0, err
	}
	if m.Port > 65535 || m.Port != 0 && m.Port < 1024 || !permitted(f.Login.Options.PermitListen, m.Host, m.Port) {
		return nil, 0, ErrForbidden
	}
	host := "127.0.0.1"
	if m.Host == "::1" {
		host = m.Host
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(m.Port))))
	if err != nil {
		return nil, 0, err
	}
	port := uint32(l.Addr().(*net.TCPAddr).Port)
	return l, port, f.keep(tcpName(m.Host, port), l)
}

func tcpName(host string, port uint32) string { return fmt.Sprintf("tcp %s %d", host, port) }

// keep registers a listener of this connection.
func (f *Forwarder) keep(name string, l net.Listener) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.listeners[name]; taken || f.closed || len(f.listeners) >= maxListeners {
		l.Close()
		return errors.New("too many forwardings, or this one already exists")
	}
	if f.listeners == nil {
		f.listeners = map[string]net.Listener{}
	}
	f.listeners[name] = l
	return nil
}

// Cancel serves cancel-tcpip-forward, for listeners of this connection only.
func (f *Forwarder) Cancel(payload []byte) bool {
	var m tcpForward
	return ssh.Unmarshal(payload, &m) == nil && f.drop(tcpName(m.Host, m.Port))
}

func (f *Forwarder) drop(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.listeners[name]
	if ok {
		l.Close()
		delete(f.listeners, name)
	}
	return ok
}

// acceptPause is the time between attempts to accept a connection.
const acceptPause = 100 * time.Millisecond

// accept opens a channel to the client for each connection until the listener is closed.
func (f *Forwarder) accept(l net.Listener, kind string, header func(net.Conn) []byte) {
	defer f.contain()
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(acceptPause) // most likely there are no free descriptors at the moment
			continue
		}
		if !f.enter() {
			c.Close()
			continue
		}
		go f.deliver(c, kind, header)
	}
}

func (f *Forwarder) deliver(c net.Conn, kind string, header func(net.Conn) []byte) {
	defer f.contain()
	defer f.leave()
	defer c.Close()
	ch, requests, err := f.SSH.OpenChannel(kind, header(c))
	if err != nil {
		return
	}
	discard(requests)
	f.splice(ch, c.(Stream))
}
