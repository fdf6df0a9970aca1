package localcluster

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// PortInUseError reports that another process uses the port that a flag requests.
type PortInUseError struct {
	Port int
	Flag string // "--api-port"
}

func (e *PortInUseError) Error() string {
	return fmt.Sprintf("port %d is in use by another process; choose another one with %s, or leave it out to get a free one",
		e.Port, e.Flag)
}

// listen binds the same port on every host: wanted, the value of flag, if it is not 0;
// otherwise remembered if it is free, or any free port.
func listen(hosts []string, flag string, wanted, remembered int) (net.Listener, error) {
	if wanted != 0 {
		l, err := listenAll(hosts, wanted)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, &PortInUseError{wanted, flag}
		}
		return l, err
	}
	if remembered != 0 {
		if l, err := listenAll(hosts, remembered); err == nil {
			return l, nil
		}
	}
	var err error
	for range 20 { // a port that is free on one address may be used on another
		var l net.Listener
		if l, err = listenAll(hosts, 0); err == nil {
			return l, nil
		}
	}
	return nil, err
}

func listenAll(hosts []string, port int) (net.Listener, error) {
	var all []net.Listener
	for _, h := range hosts {
		l, err := net.Listen("tcp", net.JoinHostPort(h, strconv.Itoa(port)))
		if err != nil {
			for _, l := range all {
				_ = l.Close()
			}
			return nil, err
		}
		port = portOf(l)
		all = append(all, l)
	}
	if len(all) == 1 {
		return all[0], nil
	}
	return join(all), nil
}

func portOf(l net.Listener) int {
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// joined accepts from several listeners; its address is the first one's.
type joined struct {
	all    []net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func join(all []net.Listener) *joined {
	j := &joined{all: all, conns: make(chan net.Conn), closed: make(chan struct{})}
	for _, l := range all {
		go j.accept(l)
	}
	return j
}

func (j *joined) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			var temporary interface{ Temporary() bool }
			if errors.As(err, &temporary) && temporary.Temporary() {
				continue
			}
			_ = j.Close()
			return
		}
		select {
		case j.conns <- c:
		case <-j.closed:
			_ = c.Close()
			return
		}
	}
}

// Accept waits for the next connection of any listener.
func (j *joined) Accept() (net.Conn, error) {
	select {
	case c := <-j.conns:
		return c, nil
	case <-j.closed:
		return nil, net.ErrClosed
	}
}

// Close closes all listeners.
func (j *joined) Close() error {
	var errs []error
	j.once.Do(func() {
		close(j.closed)
		for _, l := range j.all {
			errs = append(errs, l.Close())
		}
	})
	return errors.Join(errs...)
}

// Addr returns the first listener's address.
func (j *joined) Addr() net.Addr { return j.all[0].Addr() }
