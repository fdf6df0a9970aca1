package loginnode

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// first returns a client's first line and message.
func first(in, out string) []byte {
	message := ssh.Marshal(keyExchangeInit{CiphersIn: strings.Split(in, ","), CiphersOut: strings.Split(out, ",")})
	packet := binary.BigEndian.AppendUint32([]byte("SSH-2.0-x\r\n"), uint32(1+len(message)+4))
	packet = append(packet, 4)
	packet = append(packet, message...)
	return append(packet, 0, 0, 0, 0)
}

func TestFasterCipherIsOfferedToClientsWithBoth(t *testing.T) {
	const chacha, gcm, both = "chacha20-poly1305@openssh.com", "aes256-gcm@openssh.com", "aes128-gcm@openssh.com,aes256-gcm@openssh.com"
	for _, c := range []struct{ in, out, want string }{
		{"unknown@x," + chacha + ",aes128-ctr," + gcm, chacha + "," + gcm, both},
		{chacha + ",aes128-ctr", chacha + "," + gcm, ""},
		{chacha, chacha, ""},
		{gcm + "," + chacha, gcm + "," + chacha, ""},
		{"aes256-ctr," + chacha + "," + gcm, chacha + "," + gcm, ""},
		{"", "", ""},
	} {
		text := first(c.in, c.out)
		message, more := firstMessage(text)
		if more || message == nil {
			t.Fatalf("%q: no message", c.in)
		}
		if got := strings.Join(preferredCiphers(message), ","); got != c.want {
			t.Errorf("%q, %q: %q", c.in, c.out, got)
		}
		for i := range text {
			if message, more := firstMessage(text[:i]); message != nil || !more {
				t.Errorf("%d bytes of %d: %q, more %v", i, len(text), message, more)
			}
		}
	}
}

func FuzzFirstMessage(f *testing.F) {
	f.Add(first("chacha20-poly1305@openssh.com", "aes128-gcm@openssh.com"))
	f.Add([]byte("SSH-2.0-x\n\x00\x00\x00\x05\xff\x14\x00\x00\x00"))
	f.Add(bytes.Repeat([]byte("x"), 300))
	f.Fuzz(func(t *testing.T, text []byte) {
		message, more := firstMessage(text)
		if more && message != nil {
			t.Error("an incomplete message is returned")
		}
		if more && len(text) > maxVersionLine+4+maxKexInit {
			t.Errorf("%d bytes are not enough", len(text))
		}
		if message != nil {
			preferredCiphers(message)
		}
	})
}
