package controlplane

import (
	"net"
	"sync"
)

// connections is a listener that can close the connections that it has accepted,
// because the server cancels requests of closed connections.
type connections struct {
	net.Listener

	mu   sync.Mutex
	open map[*connection]struct{}
	shut bool
}

type connection struct {
	net.Conn
	of *connections
}

func newConnections(l net.Listener) *connections {
	return &connections{Listener: l, open: map[*connection]struct{}{}}
}

// Accept waits for the next connection; after cut it returns an error.
func (c *connections) Accept() (net.Conn, error) {
	n, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &connection{n, c}
	c.mu.Lock()
	shut := c.shut
	if !shut {
		c.open[conn] = struct{}{}
	}
	c.mu.Unlock()
	if shut {
		_ = n.Close()
	}
	return conn, nil
}

// Close closes the connection and removes it.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// cut closes all connections, and those that are accepted later.
func (c *connections) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shut = true
	for conn := range c.open {
		_ = conn.Conn.Close()
	}
}
