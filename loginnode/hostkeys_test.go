package loginnode_test

import (
	"crypto/rand"
	"crypto/rsa"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/loginnode"
)

// A client that trusts the present key receives the next one with a proof and accepts it without
// a question: OpenSSH with UpdateHostKeys.
func TestHostKeysRotate(t *testing.T) {
	have(t, "ssh")
	next := newKey(t)
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := ssh.NewSignerFromKey(old)
	if err != nil {
		t.Fatal(err)
	}
	modern, err := ssh.NewSignerWithAlgorithms(rsaKey.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256})
	if err != nil {
		t.Fatal(err)
	}
	n := start(t, func(c *loginnode.Config) { c.NextHostKeys = []ssh.Signer{next, modern} })
	known := filepath.Join(n.dir, "known")
	line := func(k ssh.Signer) string { return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.PublicKey()))) }
	n.must(os.WriteFile(known, []byte("login "+line(n.host)+"\n"), 0o600))
	enter := func(n *node, command string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "ssh", "-F", "/dev/null", "-i", n.ann().keyFile, "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes",
			"-o", "StrictHostKeyChecking=yes", "-o", "UserKnownHostsFile="+known, "-o", "GlobalKnownHostsFile=/dev/null",
			"-o", "HostKeyAlias=login", "-o", "UpdateHostKeys=yes", "-p", n.port(), "ann@127.0.0.1", command)
	}
	session := enter(n, "cat")
	in, err := session.StdinPipe()
	n.must(err)
	n.must(session.Start())
	eventually.Holds(t, "the new keys are known", func() bool {
		data, err := os.ReadFile(known)
		return err == nil && strings.Contains(string(data), line(next)) && strings.Contains(string(data), line(modern))
	})
	n.must(in.Close())
	n.must(session.Wait())

	tomorrow := start(t, func(c *loginnode.Config) { c.HostKeys = []ssh.Signer{next} })
	combined(t, enter(tomorrow, "true"))
	other := start(t)
	if out, err := enter(other, "true").CombinedOutput(); err == nil {
		t.Errorf("a key that was never announced: %s", out)
	}
}

// The server signs for no other keys.
func TestOnlyOwnHostKeysAreProven(t *testing.T) {
	n := start(t)
	c := n.login(n.ann())
	blob := func(k ssh.PublicKey) string { b := k.Marshal(); return str(uint32(len(b)), string(b)) }
	own, foreign := blob(n.host.PublicKey()), blob(n.ann().key.PublicKey())
	for name, payload := range map[string]string{
		"nothing": "", "a user's key": foreign, "its own and another": own + foreign, "too many": strings.Repeat(own, 3),
		"cut off": own[:20], "no key": str(4, "junk"),
	} {
		if ok, answer, err := c.SendRequest("hostkeys-prove-00@openssh.com", true, []byte(payload)); ok || err != nil || len(answer) > 0 {
			t.Errorf("%s: %v, %v, %d bytes", name, ok, err, len(answer))
		}
	}
	ok, answer, err := c.SendRequest("hostkeys-prove-00@openssh.com", true, []byte(own))
	if !ok || err != nil {
		t.Fatalf("its own: %v, %v", ok, err)
	}
	var m struct{ Signature []byte }
	n.must(ssh.Unmarshal(answer, &m))
	var sig ssh.Signature
	n.must(ssh.Unmarshal(m.Signature, &sig))
	signed := ssh.Marshal(struct {
		Name         string
		Session, Key []byte
	}{"hostkeys-prove-00@openssh.com", c.SessionID(), n.host.PublicKey().Marshal()})
	n.must(n.host.PublicKey().Verify(signed, &sig))
}
