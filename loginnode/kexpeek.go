package loginnode

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/cpu"
)

// Of the ciphers that both sides have the client's first is taken (RFC 4253,
// 7.1). With OpenSSH that is ChaCha20, for which Go has no fast code on these
// processors, while AES-GCM is the processor's own work: bulk data cost half as
// much. So a client that would take ChaCha20 and has AES-GCM too is offered that
// alone. Its list has to be known before the server sends its own, so its first
// message is read ahead, unless it waits for the server's.
var hasFastAES = cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ

// Bounds of what is read ahead. Who takes longer, or says more, is offered all
// ciphers.
const (
	peekTimeout    = 250 * time.Millisecond
	maxVersionLine = 255 // the longest first line, RFC 4253, 4.2
	maxKexInit     = 8 << 10
)

// lookAhead sends the server's first line, and reads what the client has to say
// at once. Package ssh sees all of it, and sends no second line (Write).
func (c *conn) peekKexInit() {
	if !hasFastAES {
		return
	}
	c.versionLine = []byte("SSH-2.0-" + version + "\r\n")
	if _, err := c.Conn.Write(c.versionLine); err != nil {
		return // package ssh will see that too
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

// firstMessage finds the payload of the packet that follows the client's first
// line; more tells that it is not complete yet, and may be read on.
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

// offer is what a client is offered; nil: everything.
func preferredCiphers(message []byte) []string {
	var m keyExchangeInit
	if ssh.Unmarshal(message, &m) != nil {
		return nil
	}
	gcm := []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM}
	for _, theirs := range [][]string{m.CiphersIn, m.CiphersOut} {
		first := slices.IndexFunc(theirs, func(name string) bool { return slices.Contains(ciphers, name) })
		if first < 0 || theirs[first] != ssh.CipherChaCha20Poly1305 || !slices.ContainsFunc(theirs, func(name string) bool { return slices.Contains(gcm, name) }) {
			return nil
		}
	}
	return gcm
}

// offered are the ciphers for this client.
func (c *conn) offeredCiphers() []string {
	if c.ciphers != nil {
		return c.ciphers
	}
	return ciphers
}

// Read begins with what was read ahead.
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
