package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/berth-hpc/berth/internal/processnode"
	"github.com/berth-hpc/berth/internal/wire"
)

// account is a user of this machine during a test.
type account struct{ name, home, uid, gid string }

// newAccount creates a user with a home; the end of the test removes both.
func newAccount(t *testing.T, name string) account {
	t.Helper()
	name = fmt.Sprintf("%s%d", name, os.Getpid())
	if out, err := exec.Command("useradd", "--create-home", "--shell", "/bin/bash", name).CombinedOutput(); err != nil {
		t.Fatalf("useradd: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("userdel", "--remove", "--force", name).CombinedOutput(); err != nil {
			t.Logf("userdel: %v\n%s", err, out)
		}
	})
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return account{name: u.Username, home: u.HomeDir, uid: u.Uid, gid: u.Gid}
}

// command is args as the user runs it after logging in: in the home directory,
// with nothing of the caller's environment.
func (a account) command(bin string, args ...string) []string {
	return append([]string{"/usr/sbin/runuser", "-u", a.name, "--", "env", "-i", "-C", a.home, "HOME=" + a.home,
		"USER=" + a.name, "LOGNAME=" + a.name, "LANG=C.UTF-8", "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin"}, args...)
}

// shared is a cluster of several users with a slurm.conf.
type shared struct {
	*cluster
	alice, bob account
}

// newShared starts such a cluster for alice, bob and more.
func newShared(t *testing.T, more ...func(*testing.T) account) *shared {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("several users need root: run these tests as root")
	}
	s := &shared{alice: newAccount(t, "alice"), bob: newAccount(t, "bob")}
	text, err := os.ReadFile("testdata/users.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "slurm.conf")
	if err := os.WriteFile(conf, []byte(strings.ReplaceAll(string(text), "=ALICE", "="+s.alice.name)), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--user", s.alice.name, "--user", s.bob.name, "--slurm-conf", conf}
	for _, a := range more {
		args = append(args, "--user", a(t).name)
	}
	s.cluster = start(t, args...)
	return s
}

// as is the script command `as USER COMMAND...`, USER being alice or bob.
func (s *shared) as(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: as USER COMMAND...")
	}
	err := s.exec(ts, args[0], args[1:]...)
	if neg && err == nil {
		ts.Fatalf("unexpected success")
	}
	if !neg {
		ts.Check(err)
	}
}

func (s *shared) exec(ts *testscript.TestScript, who string, args ...string) error {
	a, ok := map[string]account{"alice": s.alice, "bob": s.bob}[who]
	if !ok {
		ts.Fatalf("no user %s", who)
	}
	line := a.command(s.bin, args...)
	return ts.Exec(line[0], line[1:]...)
}

// submit is the script command `job USER VAR ARGS...`: submit as that user.
func (s *shared) submit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: job USER VAR sbatch-arguments...")
	}
	ts.Check(s.exec(ts, args[0], append([]string{"sbatch", "--parsable"}, args[2:]...)...))
	ts.Setenv(args[1], strings.TrimSpace(ts.ReadFile("stdout")))
}

func (s *shared) scripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/users",
		Setup: func(e *testscript.Env) error {
			e.Vars = append(e.Vars, s.environ(e.WorkDir)...)
			for name, a := range map[string]account{"ALICE": s.alice, "BOB": s.bob} {
				e.Vars = append(e.Vars, name+"="+a.name, name+"_HOME="+a.home, name+"_UID="+a.uid, name+"_GID="+a.gid)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"as": s.as, "job": s.submit, "ends": ends, "until": until,
		},
		Condition: func(name string) (bool, error) {
			if name != "limits" {
				return false, fmt.Errorf("no condition %q", name)
			}
			lacks, _ := processnode.Capabilities()
			return !slices.ContainsFunc(lacks, func(s string) bool { return strings.Contains(s, "nothing enforces limits") }), nil
		},
	})
}

func TestUsers(t *testing.T) {
	s := newShared(t)
	t.Run("kubeconfig", s.private)
	t.Run("by uid", s.byUID)
	t.Run("scripts", s.scripts)
	t.Run("attacks", s.attacks)
	t.Run("REST", s.rest)
	t.Run("hidden agent", s.hiddenAgent)
	t.Run("unwritable output", s.unwritable)
}

// hiddenAgent: a job cannot read the memory of its agent, which runs as the same user and
// has the job's token.
func (s *shared) hiddenAgent(t *testing.T) {
	const look = `cat /proc/$PPID/comm; stat -c %u /proc/$PPID/mem; cat /proc/$PPID/environ 2>&1 | head -c 100`
	line := s.bob.command(s.bin, "srun", "-n1", "sh", "-c", look)
	out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
	got := strings.SplitN(string(out), "\n", 3)
	if err != nil || len(got) != 3 || got[0] != "agent" || got[1] != "0" || !strings.Contains(got[2], "Permission denied") {
		t.Errorf("the agent, the owner of its memory, and its environment are %q, %v", got, err)
	}
}

// byUID: commands find the cluster independently of HOME, as under cron or in programs that
// set another HOME; root finds a cluster that is not in the default directory.
func (s *shared) byUID(t *testing.T) {
	for _, home := range []string{"HOME=/nonexistent", "HOME="} {
		line := s.bob.command(s.bin, "env", home, "squeue", "-h")
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Errorf("bob's squeue with %s: %v\n%s", home, err, out)
		}
	}
	c := exec.Command(filepath.Join(s.bin, "scontrol"), "show", "config")
	c.Env = []string{"HOME=/nonexistent", "PATH=/usr/bin:/bin"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("root's scontrol: %v\n%s", err, out)
	}
	line := s.bob.command(s.bin, "cat", wire.MachineKubeconfigs(0)[0])
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err == nil || !strings.Contains(string(out), "Permission denied") {
		t.Errorf("bob reads root's file: %v %.80s", err, out)
	}
}

// private: each user can read their own kubeconfig, and no other user's.
func (s *shared) private(t *testing.T) {
	for _, a := range []account{s.alice, s.bob} {
		file := filepath.Join(a.home, ".local/state/berth/user.kubeconfig")
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file, info.Mode())
		}
		line := a.command(s.bin, "cat", file)
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
			t.Errorf("its owner cannot read %s: %s", file, out)
		}
	}
	for _, file := range []string{filepath.Join(s.alice.home, ".local/state/berth/user.kubeconfig"),
		filepath.Join(s.state, "kubeconfig"), filepath.Join(s.state, "pki/ca.key"), filepath.Join(s.state, "log")} {
		line := s.bob.command(s.bin, "cat", file)
		if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err == nil || !strings.Contains(string(out), "Permission denied") {
			t.Errorf("bob reads %s: %v %.80s", file, err, out)
		}
	}
}
