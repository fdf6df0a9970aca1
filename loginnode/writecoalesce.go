package loginnode

import (
	"bytes"
	"errors"
	"net"
)

// libraryBuffer is the size of the buffer through which package ssh writes
// (bufio's usual one). Of a larger packet it writes what fits, and then the
// rest.
const libraryBuffer = 4 << 10

// Write sends a packet by one system call that package ssh writes in two: a
// client that is woken by the first of them has nothing to decrypt yet. So the
// first is held until the other comes.
//
// It always comes: once somebody has logged in all ciphers are such that a
// packet's length is no multiple of 8 (4 bytes more than one), so that a full
// buffer is never the end of a packet. Package ssh writes one packet at a time.
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

// greeted takes the first line of package ssh, which lookAhead has sent.
func (c *conn) discardVersionLine(b []byte) (int, error) {
	if !bytes.Equal(b, c.versionLine) {
		return 0, errors.New("package ssh begins with another line than expected")
	}
	c.versionLine = nil
	return len(b), nil
}
