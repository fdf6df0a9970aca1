package loginnode_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/binary"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// The server offers exactly these algorithms, as read from the wire, the post-quantum
// key exchange first.
func TestS05WhatIsOffered(t *testing.T) {
	n := start(t)
	conn := dialRaw(t, n.addr)
	_, err := io.WriteString(conn, "SSH-2.0-reader\r\n")
	n.must(err)
	r := bufio.NewReader(conn)
	greeting, err := r.ReadString('\n')
	n.must(err)
	if greeting != "SSH-2.0-OpenSSH.compatible Berth\r\n" {
		t.Errorf("%q", greeting)
	}
	var length uint32
	n.must(binary.Read(r, binary.BigEndian, &length))
	packet := make([]byte, length)
	_, err = io.ReadFull(r, packet)
	n.must(err)
	packet = packet[1+1+16:] // padding, type, cookie
	list := func() []string {
		size := binary.BigEndian.Uint32(packet)
		text := string(packet[4 : 4+size])
		packet = packet[4+size:]
		return strings.Split(text, ",")
	}
	ciphers := "chacha20-poly1305@openssh.com,aes128-gcm@openssh.com,aes256-gcm@openssh.com,aes256-ctr,aes192-ctr,aes128-ctr"
	macs := "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com"
	for _, want := range []struct{ what, list string }{
		{"key exchanges", "mlkem768x25519-sha256,curve25519-sha256,curve25519-sha256@libssh.org,kex-strict-s-v00@openssh.com"},
		{"host keys", "ssh-ed25519"}, {"ciphers in", ciphers}, {"ciphers out", ciphers}, {"MACs in", macs}, {"MACs out", macs},
	} {
		if got := strings.Join(list(), ","); got != want.list {
			t.Errorf("%s: %s, not %s", want.what, got, want.list)
		}
	}
}

// No signature with SHA-1 by a user's key is accepted or requested; an RSA key signs
// with SHA-2.
func TestS05SignaturesOfUsers(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	n.must(err)
	block, err := ssh.MarshalPrivateKey(key, "")
	n.must(err)
	s, err := ssh.NewSignerFromKey(key)
	n.must(err)
	file := filepath.Join(n.dir, "key-rsa")
	n.must(os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	n.authorize(n.ann(), string(ssh.MarshalAuthorizedKey(s.PublicKey())))
	old := *n.ann()
	old.keyFile = file
	out, err := n.ssh(&old, "-v", "-o", "LogLevel=DEBUG", "echo in").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nin") {
		t.Fatalf("%v\n%s", err, out)
	}
	m := regexp.MustCompile(`server-sig-algs=<(.*)>`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("the server does not announce its signature algorithms:\n%s", out)
	}
	accepted := strings.Split(string(m[1]), ",")
	for _, bad := range []string{"ssh-rsa", "ssh-dss", "ssh-rsa-cert-v01@openssh.com"} {
		if slices.Contains(accepted, bad) {
			t.Errorf("%s is accepted: %v", bad, accepted)
		}
	}
	for _, good := range []string{"ssh-ed25519", "sk-ssh-ed25519@openssh.com", "rsa-sha2-512"} {
		if !slices.Contains(accepted, good) {
			t.Errorf("%s is not accepted: %v", good, accepted)
		}
	}
	sha1, err := ssh.NewSignerWithAlgorithms(s.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	n.must(err)
	if c, err := n.dial("ann", sha1); err == nil {
		c.Close()
		t.Error("a login with a SHA-1 signature is accepted")
	}
}

// A client that sends its list at once, or byte by byte, or waits for that of the
// server: it logs in, with the faster one of the ciphers that it prefers.
func TestClientsThatSpeakFirstOrLast(t *testing.T) {
	have(t, "ssh")
	n := start(t)
	for option, want := range map[string]string{
		"-v": "", "-cchacha20-poly1305@openssh.com": "chacha20-poly1305@openssh.com",
		"-caes256-ctr,chacha20-poly1305@openssh.com,aes128-gcm@openssh.com": "aes256-ctr",
	} {
		out := combined(t, n.ssh(n.ann(), "-v", "-o", "LogLevel=DEBUG", option, "echo in"))
		if !strings.Contains(out, "\nin") || !strings.Contains(out, "server->client cipher: "+want) {
			t.Errorf("%s: not by %q:\n%s", option, want, out)
		}
	}
	for what, pace := range map[string]func(net.Conn) net.Conn{
		"byte by byte": func(c net.Conn) net.Conn { return &dripping{c} },
		"last":         func(c net.Conn) net.Conn { return &listening{Conn: c, received: make(chan struct{})} },
	} {
		c, chans, reqs, err := ssh.NewClientConn(pace(dialRaw(t, n.addr)), n.addr, &ssh.ClientConfig{
			User: "ann", Auth: []ssh.AuthMethod{ssh.PublicKeys(n.ann().key)}, HostKeyCallback: ssh.FixedHostKey(n.host.PublicKey()), Timeout: deadline,
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		client := ssh.NewClient(c, chans, reqs)
		if got := run(t, client, "echo in"); got != "in" {
			t.Errorf("%s: %q", what, got)
		}
		client.Close()
	}
}

// dripping sends byte by byte.
type dripping struct{ net.Conn }

func (d *dripping) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := d.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// listening sends nothing after its first line until it has received the first message of the
// server.
type listening struct {
	net.Conn
	greeted, lines bool
	received       chan struct{}
}

func (l *listening) Write(p []byte) (int, error) {
	if l.greeted {
		<-l.received
	}
	l.greeted = true
	return l.Conn.Write(p)
}

func (l *listening) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	switch {
	case l.lines && n > 1: // what is read at a time: package ssh takes the line byte by byte
		l.lines = false
		close(l.received)
	case bytes.HasSuffix(p[:n], []byte("\n")) && !l.closed():
		l.lines = true
	}
	return n, err
}

func (l *listening) closed() bool {
	select {
	case <-l.received:
		return true
	default:
		return false
	}
}
