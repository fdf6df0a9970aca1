package loginnode_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode"
)

// winSCP logs in as WinSCP does, with the algorithms of its kind that Go's
// client has, in its order.
func (n *node) winSCP(p *person) *ssh.Client {
	n.t.Helper()
	c, err := ssh.Dial("tcp", n.addr, &ssh.ClientConfig{
		User: p.Name, Auth: []ssh.AuthMethod{ssh.PublicKeys(p.key)}, HostKeyCallback: ssh.FixedHostKey(n.host.PublicKey()), Timeout: deadline,
		ClientVersion: "SSH-2.0-WinSCP_release_6.3.4",
		Config: ssh.Config{
			KeyExchanges: []string{ssh.KeyExchangeCurve25519, ssh.KeyExchangeECDHP256, ssh.KeyExchangeDHGEXSHA256, ssh.KeyExchangeDH14SHA256},
			Ciphers:      []string{ssh.CipherAES256CTR, ssh.CipherAES192CTR, ssh.CipherAES128CTR, ssh.CipherChaCha20Poly1305, ssh.CipherAES128GCM, ssh.CipherAES256GCM},
			MACs:         []string{ssh.HMACSHA256, ssh.HMACSHA512, ssh.HMACSHA1, ssh.HMACSHA256ETM, ssh.HMACSHA512ETM},
		},
	})
	n.must(err)
	n.t.Cleanup(func() { c.Close() })
	if a := c.Conn.(ssh.AlgorithmsConnMetadata).Algorithms(); a.Write.Cipher != ssh.CipherAES256CTR || a.Write.MAC != ssh.HMACSHA256ETM {
		n.t.Errorf("%+v", a)
	}
	return c
}

// openAsPuTTY opens a session like PuTTY: it announces that there will be one channel,
// and measures the round trip with requests that a server must refuse.
func (n *node) openAsPuTTY(c *ssh.Client) (ssh.Channel, func()) {
	n.t.Helper()
	ch, reqs, err := c.OpenChannel("session", nil)
	n.must(err)
	go ssh.DiscardRequests(reqs)
	_, err = ch.SendRequest("simple@putty.projects.tartarus.org", false, nil)
	n.must(err)
	return ch, func() {
		n.t.Helper()
		if ok, err := ch.SendRequest("winadj@putty.projects.tartarus.org", true, nil); ok || err != nil {
			n.t.Errorf("winadj: %v, %v", ok, err)
		}
	}
}

// Packets of SFTP, version 3.
const (
	sftpInit, sftpVersion, sftpOpen, sftpClose, sftpWrite, sftpSetstat     = 1, 2, 3, 4, 6, 9
	sftpRemove, sftpRealpath, sftpRename, sftpStatus, sftpHandle, sftpName = 13, 16, 18, 101, 102, 104
)

// rawSFTP is a client that sends arbitrary packets.
type rawSFTP struct {
	n    *node
	ch   ssh.Channel
	next uint32
}

// send sends a packet; a number is 4 bytes, or 8 of an uint64, a text has its
// length before it.
func (r *rawSFTP) send(kind byte, fields ...any) {
	r.n.t.Helper()
	body := []byte{kind}
	for _, f := range fields {
		switch v := f.(type) {
		case int:
			body = binary.BigEndian.AppendUint32(body, uint32(v))
		case uint64:
			body = binary.BigEndian.AppendUint64(body, v)
		case string:
			body = append(binary.BigEndian.AppendUint32(body, uint32(len(v))), v...)
		}
	}
	_, err := r.ch.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	r.n.must(err)
}

func (r *rawSFTP) request(kind byte, fields ...any) {
	r.n.t.Helper()
	r.next++
	r.send(kind, append([]any{int(r.next)}, fields...)...)
}

// answer reads a packet of the kind, and returns the bytes after the request's number.
func (r *rawSFTP) answer(kind byte) []byte {
	r.n.t.Helper()
	var length uint32
	r.n.must(binary.Read(r.ch, binary.BigEndian, &length))
	body := make([]byte, length)
	_, err := io.ReadFull(r.ch, body)
	r.n.must(err)
	if body[0] != kind {
		r.n.t.Fatalf("packet %d, not %d: %q", body[0], kind, body)
	}
	return body[5:]
}

// status reads the status code of a response.
func (r *rawSFTP) status() uint32 { return binary.BigEndian.Uint32(r.answer(sftpStatus)) }

// Transfers like WinSCP's: it first requests more than it can get, an upload has
// another name until it is complete, and it sends many requests at a time.
func TestWinSCPBySFTP(t *testing.T) {
	have(t, "/usr/lib/openssh/sftp-server")
	n := start(t)
	ch, measure := n.openAsPuTTY(n.winSCP(n.ann()))
	ok, err := ch.SendRequest("subsystem", true, ssh.Marshal(struct{ Name string }{"sftp"}))
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	measure()
	r := &rawSFTP{n: n, ch: ch}
	r.send(sftpInit, 6)
	if version := r.answer(sftpVersion); !bytes.Contains(version, []byte("statvfs@openssh.com")) {
		t.Errorf("version: %q", version)
	}
	r.request(sftpRealpath, ".")
	if name := r.answer(sftpName); !bytes.Contains(name, []byte(n.ann().Home)) {
		t.Errorf("the current directory: %q", name)
	}
	const pieces, size = 40, 32 << 10
	text := make([]byte, pieces*size)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(text)
	r.request(sftpOpen, "a file.filepart", 2|8|16, 0)
	handle := r.answer(sftpHandle)
	id := string(handle[4:])
	for i := range pieces {
		r.request(sftpWrite, id, uint64(i*size), string(text[i*size:(i+1)*size]))
		if i == pieces/2 {
			measure()
		}
	}
	for i := range pieces {
		if code := r.status(); code != 0 {
			t.Fatalf("piece %d: %d", i, code)
		}
	}
	at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	r.request(sftpClose, id)
	r.request(sftpRename, "a file.filepart", "a file")
	r.request(sftpSetstat, "a file", 4|8, 0o640, int(at.Unix()), int(at.Unix()))
	for range 3 {
		if code := r.status(); code != 0 {
			t.Errorf("the end of the upload: %d", code)
		}
	}
	file := filepath.Join(n.ann().Home, "a file")
	got, err := os.ReadFile(file)
	n.must(err)
	st, err := os.Stat(file)
	n.must(err)
	if !bytes.Equal(got, text) || st.Mode() != 0o640 || !st.ModTime().Equal(at) {
		t.Errorf("%d bytes, %v, %v", len(got), st.Mode(), st.ModTime())
	}
	r.request(sftpRemove, "no such file")
	if code := r.status(); code != 2 {
		t.Errorf("the removal of nothing: %d", code)
	}
	measure()
}

// WinSCP without SFTP: a shell without a terminal whose first output must be that of the first
// command, and scp within it.
func TestWinSCPByAShell(t *testing.T) {
	have(t, "scp")
	n := start(t, func(c *loginnode.Config) { c.Session.MOTD.Command = []string{"sh", "-c", "echo a greeting"} })
	n.must(os.WriteFile(filepath.Join(n.ann().Home, "f"), []byte("some\x00text"), 0o644))
	ch, measure := n.openAsPuTTY(n.winSCP(n.ann()))
	ok, err := ch.SendRequest("shell", true, nil)
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	out := bufio.NewReader(ch)
	write := func(text string) {
		t.Helper()
		_, err := io.WriteString(ch, text)
		n.must(err)
	}
	const end = `echo "WinSCP: this is end-of-file:$?"`
	command := func(text string) string {
		t.Helper()
		write(text + " ; " + end + "\n")
		var lines strings.Builder
		for {
			line, err := out.ReadString('\n')
			n.must(err)
			if code, over := strings.CutPrefix(line, "WinSCP: this is end-of-file:"); over {
				return lines.String() + "code " + strings.TrimSpace(code)
			}
			lines.WriteString(line)
		}
	}
	for _, c := range [][2]string{
		{`echo "WinSCP: this is begin-of-file"`, "WinSCP: this is begin-of-file\ncode 0"}, {"unalias ls", "code 1"}, {"unset nothing", "code 0"},
		{"pwd", n.ann().Home + "\ncode 0"}, {"ls -1 f", "f\ncode 0"}, {"cd /nowhere", "code 1"}, {"(exit 7)", "code 7"},
	} {
		if got := command(c[0]); got != c[1] {
			t.Errorf("%s: %q, not %q", c[0], got, c[1])
		}
	}
	measure()
	write("scp -r -p -d -f f ; " + end + "\n\x00")
	expect := func(want string) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := io.ReadFull(out, got); err != nil || string(got) != want {
			t.Fatalf("%q, not %q: %v", got, want, err)
		}
	}
	times, err := out.ReadString('\n')
	if n.must(err); !strings.HasPrefix(times, "T") {
		t.Errorf("%q", times)
	}
	write("\x00")
	expect("C0644 9 f\n")
	write("\x00")
	expect("some\x00text\x00")
	write("\x00")
	expect("WinSCP: this is end-of-file:0\n")
	n.must(ch.CloseWrite())
	if rest, err := io.ReadAll(out); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
}
