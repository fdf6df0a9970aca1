package loginnode

import (
	"bytes"
	"errors"
	"net"
)

// libraryBuffer is the size of the buffer through which package ssh writes (bufio's
// default). It writes a larger packet in two parts.
const libraryBuffer = 4 << 10

// Write sends with one system call a packet that package ssh writes in two parts: the
// first part would wake the client, which cannot decrypt it yet. So Write keeps the
// first part until the second follows.
//
// It always follows: after the login, the length of a packet with any of the ciphers
// is 4 more than a multiple of 8, so that a full buffer is never the end of a packet.
// Package ssh writes one packet at a time.
func (c *conn) Write(b []byte) (int, error) {
	if c.versionLine != nil {
		return c.discardVersionLine(b)
	}
	if len(c.heldPacket) == 0 {
		if len(b) != libraryBuffer || !c.authenticated.Load() || !c.tcp {
			return c.Conn.Write(b)
		}
		c.heldPacket = append(c.heldPacket, b...)
		return len(b), nil
	}
	first := int64(len(c.heldPacket))
	n, err := (&net.Buffers{c.heldPacket, b}).WriteTo(c.Conn)
	c.heldPacket = c.heldPacket[:0]
	return int(max(n-first, 0)), err
}

// discardVersionLine discards the version line of package ssh, which peekKexInit has
// already sent.
func (c *conn) discardVersionLine(b []byte) (int, error) {
	if !bytes.Equal(b, c.versionLine) {
		return 0, errors.New("package ssh writes an unexpected version line")
	}
	c.versionLine = nil
	return len(b), nil
}
