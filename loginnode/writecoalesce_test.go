package loginnode_test

import (
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// The beginning of a packet is held until the rest is written. For any length and
// cipher, packets are sent, and completely.
func TestPacketsOfEveryLengthGoOut(t *testing.T) {
	n := start(t)
	for _, cipher := range []string{ssh.CipherChaCha20Poly1305, ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherAES128CTR, ssh.CipherAES256CTR} {
		t.Run(cipher, func(t *testing.T) {
			c, err := ssh.Dial("tcp", n.addr, &ssh.ClientConfig{
				User: "ann", Auth: []ssh.AuthMethod{ssh.PublicKeys(n.ann().key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
				Timeout: deadline, Config: ssh.Config{Ciphers: []string{cipher}},
			})
			n.must(err)
			defer c.Close()
			late := time.AfterFunc(deadline, func() { _ = c.Close() }) // a read fails then
			defer late.Stop()
			s, err := c.NewSession()
			n.must(err)
			in, err := s.StdinPipe()
			n.must(err)
			out, err := s.StdoutPipe()
			n.must(err)
			n.must(s.Start("exec cat"))
			text, back := make([]byte, 64<<10), make([]byte, 64<<10)
			_, _ = rand.NewChaCha8([32]byte{1}).Read(text)
			try := func(size int) {
				if _, err := in.Write(text[:size]); err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
				if _, err := io.ReadFull(out, back[:size]); err != nil || string(back[:size]) != string(text[:size]) {
					t.Fatalf("%d bytes: %v", size, err)
				}
			}
			for _, around := range []int{4 << 10, 8 << 10, 12 << 10, 32 << 10} {
				for size := around - 100; size <= around+20; size++ {
					try(size)
				}
			}
			try(64 << 10)
		})
	}
}
