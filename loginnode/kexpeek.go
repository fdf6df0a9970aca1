package loginnode

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/cpu"
)

// hasFastAES reports whether AES-GCM is much faster than ChaCha20 here. Of the
// ciphers that both sides have, the client's first one is chosen (RFC 4253, 7.1).
// With OpenSSH that is ChaCha20, for which Go has no fast code on these processors;
// with AES-GCM, for which they have instructions, bulk data cost half as much. So the
// server offers only AES-GCM to a client that prefers ChaCha20 and has both. It has to
// read the client's list before it sends its own, so it peeks at the client's first
// message, unless the client waits for the server's.
var hasFastAES = cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ

// Bounds of peekKexInit. A client that takes longer or sends more is offered all
// ciphers.
const (
	peekTimeout    = 250 * time.Millisecond
	maxVersionLine = 255 // the longest first line, RFC 4253, 4.2
	maxKexInit     = 8 << 10
)

// peekKexInit sends the server's version line and reads what the client has sent. Read
// returns all of it to package ssh, and Write discards the second version line.
func (c *conn) peekKexInit() {
	if !hasFastAES {
		return
	}
	c.versionLine = []byte("SSH-2.0-" + version + "\r\n")
	if _, err := c.Conn.Write(c.versionLine); err != nil {
		return // package ssh gets the same error
	}
	_ = c.SetReadDeadline(time.Now().Add(peekTimeout))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	buffer := make([]byte, 4<<10)
	for {
		n, err := c.Conn.Read(buffer)
		c.peeked = append(c.peeked, buffer[:n]...)
		message, more := firstMessage(c.peeked)
		if message != nil {
			c.ciphers = preferredCiphers(message)
		}
		if !more || err != nil {
			return
		}
	}
}

// firstMessage returns the payload of the packet after the client's version line.
// more reports that it is not complete yet.
func firstMessage(text []byte) (payload []byte, more bool) {
	end := bytes.IndexByte(text[:min(len(text), maxVersionLine)], '\n')
	if end < 0 {
		return nil, len(text) < maxVersionLine
	}
	packet := text[end+1:]
	if len(packet) < 5 {
		return nil, true
	}
	length, padding := binary.BigEndian.Uint32(packet), uint32(packet[4])
	if length > maxKexInit || length <= padding+1 {
		return nil, false
	}
	if uint32(len(packet)-4) < length {
		return nil, true
	}
	return packet[5 : 4+length-padding], false
}

// keyExchangeInit is SSH_MSG_KEXINIT.
type keyExchangeInit struct {
	Cookie                  [16]byte `sshtype:"20"`
	KeyExchanges, HostKeys  []string
	CiphersIn, CiphersOut   []string // as the server sees it
	MACsIn, MACsOut         []string
	CompressIn, CompressOut []string
	LanguageIn, LanguageOut []string
	Follows                 bool
	Reserved                uint32
}

// preferredCiphers returns the ciphers to offer to a client; nil: all.
func preferredCiphers(message []byte) []string {
	var m keyExchangeInit
	if ssh.Unmarshal(message, &m) != nil {
		return nil
	}
	gcm := []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM}
	for _, theirs := range [][]string{m.CiphersIn, m.CiphersOut} {
		first := slices.IndexFunc(theirs, func(name string) bool { return slices.Contains(ciphers, name) })
		prefersChaCha := first >= 0 && theirs[first] == ssh.CipherChaCha20Poly1305
		hasGCM := slices.ContainsFunc(theirs, func(name string) bool { return slices.Contains(gcm, name) })
		if !prefersChaCha || !hasGCM {
			return nil
		}
	}
	return gcm
}

// offeredCiphers returns the ciphers for this client.
func (c *conn) offeredCiphers() []string {
	if c.ciphers != nil {
		return c.ciphers
	}
	return ciphers
}

// Read returns what peekKexInit has read, and then what the client sends.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.peeked) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.peeked)
	c.peeked = c.peeked[n:]
	if len(c.peeked) == 0 {
		c.peeked = nil
	}
	return n, nil
}
