package loginnode_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/sftp"

	"github.com/berth-hpc/berth/loginnode"
	"github.com/berth-hpc/berth/loginnode/auth"
)

// noise writes a file of random bytes.
func (n *node) noise(name string, size int) string {
	n.t.Helper()
	file := filepath.Join(n.dir, name)
	data := make([]byte, size)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(data)
	n.must(os.WriteFile(file, data, 0o644))
	return file
}

func (n *node) same(a, b string) {
	n.t.Helper()
	x, err := os.ReadFile(a)
	n.must(err)
	y, err := os.ReadFile(b)
	n.must(err)
	if sha256.Sum256(x) != sha256.Sum256(y) {
		n.t.Errorf("%s and %s differ", a, b)
	}
}

func (n *node) owner(name string, p *person) {
	n.t.Helper()
	if got := n.output2(exec.Command("stat", "-c", "%u %g", name)); got != fmt.Sprintf("%d %d\n", p.UID, p.GID) {
		n.t.Errorf("%s belongs to %s", name, got)
	}
}

// Users that exist only in the cluster have no name on the system, without which
// OpenSSH's sftp-server exits at once.
func TestSFTPWithoutAName(t *testing.T) {
	needRoot(t)
	var n *node
	n = start(t, func(c *loginnode.Config) {
		inner := c.Auth.Users
		c.Auth.Users = auth.DirectoryFunc(func(ctx context.Context, name string) (*auth.User, error) {
			u, err := inner.Lookup(ctx, "ann")
			if err == nil {
				u.Name, u.UID, u.GID, u.Home, u.Groups = name, firstUID+50, firstUID+50, "/tmp", nil
				u.Keys = []string{string(marshalKey(n.ann().key.PublicKey()))}
			}
			return u, err
		})
	})
	c, err := n.dial("nameless", n.ann().key)
	n.must(err)
	defer c.Close()
	client, err := sftp.NewClient(c)
	n.must(err)
	defer client.Close()
	if dir, err := client.Getwd(); err != nil || dir != "/tmp" {
		t.Errorf("%q, %v", dir, err)
	}
}

func TestS13CopyingFiles(t *testing.T) {
	for _, internal := range []bool{false, true} {
		t.Run(fmt.Sprintf("internal=%v", internal), func(t *testing.T) {
			n := start(t, func(c *loginnode.Config) {
				if internal {
					c.Session.SFTPServer = ""
				}
			})
			file := n.noise("noise", 5<<20)
			ann, back := n.ann(), filepath.Join(n.dir, "back")
			copies := map[string][]string{"scp": nil, "scp -O": {"-O"}}
			for name, extra := range copies {
				t.Run(name, func(t *testing.T) {
					have(t, "scp")
					remote := "ann@127.0.0.1:copy"
					args := append(extra, "-P", n.port())
					n.output2(n.tool("scp", ann, append(args, file, remote)...))
					n.same(file, filepath.Join(ann.Home, "copy"))
					n.owner(filepath.Join(ann.Home, "copy"), ann)
					n.output2(n.tool("scp", ann, append(args, remote, back)...))
					n.same(file, back)
				})
			}
			t.Run("sftp", func(t *testing.T) {
				have(t, "sftp")
				cmd := n.tool("sftp", ann, "-b", "-", "-P", n.port(), "ann@127.0.0.1")
				cmd.Stdin = strings.NewReader("mkdir d\nput " + file + " d/x\nrename d/x d/y\nget d/y " + back + "2\nchmod 600 d/y\nls -l d\nrm d/y\nrmdir d\n")
				n.output2(cmd)
				n.same(file, back+"2")
				if !isRoot() {
					return
				}
				n.checkRights(t)
				cmd = n.tool("sftp", ann, "-b", "-", "-P", n.port(), "ann@127.0.0.1")
				cmd.Stdin = strings.NewReader("get ../bob/.ssh/authorized_keys " + back + "3\n")
				if out, err := cmd.CombinedOutput(); err == nil {
					t.Errorf("read bob's file: %s", out)
				}
				n.must(os.Symlink(filepath.Join(n.bob().Home, ".ssh", "authorized_keys"), filepath.Join(ann.Home, "link")))
				cmd = n.tool("sftp", ann, "-b", "-", "-P", n.port(), "ann@127.0.0.1")
				cmd.Stdin = strings.NewReader("get link " + back + "3\n")
				if out, err := cmd.CombinedOutput(); err == nil {
					t.Errorf("read bob's file by a link: %s", out)
				}
			})
		})
	}
}

// checkRights checks that the process of sftp has only the permissions of the user:
// it cannot write where the user may not, nor create a set-uid program of another user
// or a device.
func (n *node) checkRights(t *testing.T) {
	t.Helper()
	ann := n.ann()
	client, err := sftp.NewClient(n.login(ann))
	n.must(err)
	defer client.Close()
	uids := map[string]bool{}
	for _, stat := range childrenOf(os.Getpid()) {
		pid, _, _ := strings.Cut(stat, " ")
		status, _ := os.ReadFile("/proc/" + pid + "/status")
		for line := range strings.Lines(string(status)) {
			if f := strings.Fields(line); f[0] == "Uid:" || f[0] == "Gid:" {
				uids[strings.Join(f[1:], " ")] = true
			}
		}
	}
	if own := strings.TrimSpace(strings.Repeat(itoa(ann.UID)+" ", 4)); len(uids) != 1 || !uids[own] {
		t.Errorf("sftp is served with the rights %v, not %s", uids, own)
	}
	for _, name := range []string{filepath.Join(n.bob().Home, "x"), filepath.Join(n.dir, "x"), "/etc/lnt-x", "../bob/x", "../../x"} {
		if f, err := client.Create(name); err == nil {
			f.Close()
			t.Errorf("%s: written", name)
		}
	}
	if err := client.Chown("key", 0, 0); err == nil {
		t.Error("the owner of a file was changed")
	}
	f, err := client.Create("program")
	n.must(err)
	n.must(f.Close())
	n.must(client.Chmod("program", os.ModeSetuid|0o755))
	n.owner(filepath.Join(ann.Home, "program"), ann)
	if _, err := client.Open("/dev/mem"); err == nil {
		t.Error("/dev/mem can be opened")
	}
}

func TestRsync(t *testing.T) {
	have(t, "rsync", "ssh")
	n := start(t)
	src := filepath.Join(n.dir, "tree")
	n.must(os.Mkdir(src, 0o755))
	for i := range 200 {
		n.must(os.WriteFile(filepath.Join(src, itoa(i)), []byte(strings.Repeat(itoa(i), i)), 0o644))
	}
	shell := "ssh -p " + n.port() + " " + strings.Join(n.options(n.ann()), " ")
	n.output2(exec.Command("rsync", "-a", "-e", shell, src+"/", "ann@127.0.0.1:tree"))
	n.output2(exec.Command("rsync", "-a", "-e", shell, "ann@127.0.0.1:tree/", src+".back"))
	n.output2(exec.Command("diff", "-r", src, src+".back"))
}

func TestSSHFS(t *testing.T) {
	have(t, "sshfs", "fusermount")
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("needs /dev/fuse")
	}
	n := start(t)
	at := filepath.Join(n.dir, "mount")
	n.must(os.Mkdir(at, 0o700))
	args := append([]string{"-p", n.port(), "ann@127.0.0.1:", at, "-o", "IdentityFile=" + n.ann().keyFile}, n.options(n.ann())[4:]...)
	if out, err := exec.Command("sshfs", args...).CombinedOutput(); err != nil {
		t.Skipf("this machine does not let sshfs mount: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("fusermount", "-u", at).Run() })
	n.must(os.WriteFile(filepath.Join(at, "written"), []byte("through the mount"), 0o644))
	got, err := os.ReadFile(filepath.Join(n.ann().Home, "written"))
	if err != nil || string(got) != "through the mount" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLftp(t *testing.T) {
	have(t, "lftp", "ssh")
	n := start(t)
	n.must(os.WriteFile(filepath.Join(n.ann().Home, "f"), []byte("by lftp"), 0o644))
	connect := "ssh -a -x " + strings.Join(n.options(n.ann()), " ")
	got := n.output2(exec.Command("lftp", "-c", "set net:timeout 10; set net:max-retries 1; set cmd:interactive no; set sftp:auto-confirm yes; set sftp:connect-program \""+connect+"\"; open -p "+n.port()+" -u ann, sftp://127.0.0.1; cat f"))
	if got != "by lftp" {
		t.Errorf("%q", got)
	}
}
