package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/usersource/ldaptest"
)

// site is a cluster whose users are in an LDAP directory.
type site struct {
	*testing.T
	*cluster
	server *ldaptest.Server
	name   string // of the user
	key    string // file
	home   string
	port   string // of the login node
}

// newSite starts a directory with one user, who has a key, and a cluster.
func newSite(t *testing.T) *site {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("several users need root: run these tests as root")
	}
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("needs ssh")
	}
	s := &site{T: t, server: ldaptest.Start(t), name: fmt.Sprint("lda", os.Getpid())}
	dir, err := os.MkdirTemp("", "berth-e2e-ldap-") // the user's home is below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // others pass through
		t.Fatal(err)
	}
	s.home, s.key = filepath.Join(dir, s.name), filepath.Join(dir, "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(s.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	uid := 70000 + os.Getpid()%10000
	s.server.AddGroup("users", uid)
	s.server.AddUser(s.name, uid, uid, "sshPublicKey: "+strings.TrimSpace(string(public)))
	s.server.Set(ldaptest.UserDN(s.name), "homeDirectory", s.home)
	config := filepath.Join(dir, "directory.yaml")
	text := "interval: 1s" + s.server.Sources()
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.port = freePort(t)
	s.cluster = start(t, "--login", "--login-port", s.port, "--directory", config, "--nodes", "1", "--cpus", "2")
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// ssh returns a command line of OpenSSH's client, as the user of the directory.
func (s *site) ssh(args ...string) *exec.Cmd {
	return exec.Command("ssh", append([]string{"-F", "none", "-i", s.key, "-p", s.port, "-o", "BatchMode=yes",
		"-o", "IdentitiesOnly=yes", "-o", "UserKnownHostsFile=" + filepath.Join(s.state, "login", "known_hosts"),
		s.name + "@127.0.0.1"}, args...)...)
}

// awaitState waits until a job has this state and reason.
func (s *site) awaitState(id, want string) {
	s.Helper()
	eventually.Succeeds(s.T, "job "+id+" is "+want, func() error {
		out, err := command(s.environ(s.TempDir()), "squeue -h -t all -o '%T %r' -j "+id)
		if err == nil && out != want {
			err = errors.New("it is " + out)
		}
		return err
	})
}

// output runs a command line on the login node.
func (s *site) output(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := s.ssh(args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

// awaitDoctor waits until berth doctor says something, as the administrator of the cluster.
func (s *site) awaitDoctor(want string) {
	s.Helper()
	eventually.Succeeds(s.T, "berth doctor says: "+want, func() error {
		out, _ := command(s.environ(s.TempDir()), "berth doctor") // it fails if anything is wrong
		if !strings.Contains(out, want) {
			return errors.New(out)
		}
		return nil
	})
}

// TestUserOfADirectory logs in with a key that the directory holds, also while the directory is
// away, submits a job, and is
// disabled in the directory: the session ends, there is no login and no submission, the
// running job goes on, and the pending one waits.
func TestUserOfADirectory(t *testing.T) {
	s := newSite(t)
	eventually.Succeeds(t, "the user logs in", func() error {
		out, err := s.output("id -un; pwd")
		if err == nil && !strings.HasSuffix(out, s.home) {
			err = fmt.Errorf("logged in to %q", out)
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
	s.awaitDoctor("ok       the source ldap has 1 users")
	s.server.Stop()
	s.awaitDoctor("wrong    the source ldap of users could not be read")
	if out, err := s.output("sbatch --test-only --wrap true"); err != nil {
		t.Errorf("the directory is away: %v: %s", err, out)
	}
	s.server.Run()
	s.awaitDoctor("ok       the source ldap has 1 users")
	submit := func(options string) string {
		t.Helper()
		var id string
		eventually.Succeeds(t, "a job is submitted", func() error {
			out, err := s.output("sbatch --parsable " + options + " --wrap '" +
				"while [ ! -e end ]; do sleep 0.2; done; sbatch --wrap true >submitted 2>&1; echo done >ended'")
			if id = out; err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
		return id
	}
	running := submit("-n1")
	s.awaitState(running, "RUNNING None")
	pending := submit("-n2")

	session := s.ssh("sleep 1000")
	if err := session.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- session.Wait() }()
	s.server.Set(ldaptest.UserDN(s.name), "shadowExpire", "1")
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the session succeeded")
		}
	case <-time.After(eventually.Timeout):
		t.Fatal("the session of a disabled user goes on")
	}
	if out, err := s.output("true"); err == nil || !strings.Contains(out, "Permission denied") {
		t.Errorf("a disabled user logs in: %v, %s", err, out)
	}
	s.awaitState(pending, "PENDING InvalidAccount")
	s.awaitState(running, "RUNNING None")
	if err := os.WriteFile(filepath.Join(s.home, "end"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the running job ends by itself", func() bool {
		_, err := os.Stat(filepath.Join(s.home, "ended"))
		return err == nil
	})
	refused, err := os.ReadFile(filepath.Join(s.home, "submitted"))
	if want := "Invalid user id: the user " + s.name + " is disabled"; err != nil || !strings.Contains(string(refused), want) {
		t.Errorf("a submission from the job of a disabled user: %v, %q, want %q", err, refused, want)
	}
	s.awaitState(pending, "PENDING InvalidAccount")

	s.server.Set(ldaptest.UserDN(s.name), "shadowExpire")
	s.awaitState(pending, "COMPLETED None")
	if out, err := s.output("squeue --version"); err != nil {
		t.Errorf("the user is back: %v, %s", err, out)
	}
}
