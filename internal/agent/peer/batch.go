package peer

import (
	"crypto/tls"
	"net"
	"sync"
)

// Sizes in bytes: of the records after which a batch is sent early, of a read by package tls that
// shows that more is waiting, and of the buffer from which it reads then.
const (
	maxBatch  = 256 << 10
	largeRead = 8 << 10
	readAhead = 128 << 10
)

// conn is a TLS connection that sends all records of one Write with one system call. Package
// tls makes a call for each record of 16 KiB, and each call wakes the receiver.
type conn struct {
	*tls.Conn
	out *batch
}

// Write encrypts and sends b. It may not be called by several goroutines at once.
func (c *conn) Write(b []byte) (int, error) {
	c.out.start()
	n, err := c.Conn.Write(b)
	if e := c.out.end(); err == nil && e != nil {
		return 0, e
	}
	return n, err
}

// NetConn returns the connection below TLS.
func (c *conn) NetConn() net.Conn { return c.out.Conn }

// batch is the connection below TLS. Between start and end it collects what is written. Reads may
// be called by one goroutine at a time.
type batch struct {
	net.Conn
	ahead  []byte // buffer; nil until much arrives at once, because most connections carry little
	unread []byte // part of ahead

	mu      sync.Mutex
	open    bool
	pending []byte
}

func (b *batch) start() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = true
}

// end sends what was collected since start.
func (b *batch) end() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = false
	return b.flush()
}

// Write sends p, or keeps a copy of it between start and end.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, p...)
	if b.open && len(b.pending) < maxBatch {
		return len(p), nil
	}
	if err := b.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush sends what is pending. The caller holds b.mu.
func (b *batch) flush() error {
	if len(b.pending) == 0 {
		return nil
	}
	_, err := b.Conn.Write(b.pending)
	b.pending = b.pending[:0]
	return err
}

// Read reads into p what is in the buffer or on the connection.
func (b *batch) Read(p []byte) (int, error) {
	if b.ahead == nil {
		n, err := b.Conn.Read(p)
		if n == len(p) && n >= largeRead {
			b.ahead = make([]byte, readAhead)
		}
		return n, err
	}
	if len(b.unread) == 0 {
		n, err := b.Conn.Read(b.ahead)
		if n == 0 {
			return 0, err
		}
		b.unread = b.ahead[:n]
	}
	n := copy(p, b.unread)
	b.unread = b.unread[n:]
	return n, nil
}
