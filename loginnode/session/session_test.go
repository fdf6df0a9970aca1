package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth/loginnode/auth"
)

func FuzzSetModes(f *testing.F) {
	f.Add([]byte{53, 0, 0, 0, 0, 0})
	f.Add([]byte{129, 0, 0, 0x96, 0, 91, 0, 0, 0, 1, 255})
	f.Fuzz(func(_ *testing.T, data []byte) {
		var t unix.Termios
		setModes(&t, data)
	})
}

func FuzzRequests(f *testing.F) {
	f.Add("pty-req", []byte("\xff\xff\xff\xff"))
	f.Add("env", []byte("\x00\x00\x00\x01A\x00\x00\x00\x01b"))
	f.Add("signal", []byte("\x00\x00\x00\x04TERM"))
	f.Add("window-change", make([]byte, 16))
	f.Fuzz(func(_ *testing.T, kind string, payload []byte) {
		if kind == "shell" || kind == "exec" || kind == "subsystem" {
			return // would start processes
		}
		s := &Session{cfg: &Config{}, Conn: &Conn{Login: &auth.Login{User: &auth.User{UID: os.Geteuid()}}}}
		s.request(&ssh.Request{Type: kind, Payload: payload})
		if s.tty != nil {
			s.tty.close()
		}
	})
}

// A directory of an ordinary file system has no cgroup files, and they must not be created
// there.
func TestCgroupsReportMissingLimits(t *testing.T) {
	dir := t.TempDir()
	c := Cgroups{Parent: dir, Memory: "1G"}
	if _, _, err := c.Place(&auth.User{Name: "ann", UID: 7}); err == nil {
		t.Error("there is no error about a limit that is not enforced")
	}
	c = Cgroups{Parent: dir}
	fd, done, err := c.Place(&auth.User{Name: "ann", UID: 8})
	if err != nil || fd < 0 {
		t.Fatal(err)
	}
	done()
	if _, err := os.Stat(filepath.Join(dir, "user-8")); !os.IsNotExist(err) {
		t.Errorf("left: %v", err)
	}
	if err := (&Cgroups{Parent: dir, Memory: "1G"}).Ready(); err == nil || !strings.Contains(err.Error(), "cgroup2") {
		t.Errorf("an ordinary directory is accepted: %v", err)
	}
}

// The files of a cgroup are written once for each session, and the cgroup is removed
// after the last process that kept it.
func TestCgroupsWriteTheLimits(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "user-7")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"cpu.max": "200000 100000", "memory.max": "1G", "pids.max": "64"}
	for file := range want {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := Cgroups{Parent: parent, CPU: want["cpu.max"], Memory: want["memory.max"], PIDs: want["pids.max"]}
	u := &auth.User{Name: "ann", UID: 7}
	_, first, err1 := c.Place(u)
	_, second, err2 := c.Place(u)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for file, value := range want {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != value {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	first()
	if len(c.users) != 1 || len(c.left) != 0 {
		t.Errorf("one session is left: %v, %v", c.users, c.left)
	}
	second() // the files keep the directory, as processes would
	if len(c.users) != 0 || !c.left[7] || !c.sweeps {
		t.Errorf("processes are left: %v, %v", c.users, c.left)
	}
	for file := range want {
		if err := os.Remove(filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	c.remove()
	if _, err := os.Stat(dir); !os.IsNotExist(err) || len(c.left) != 0 {
		t.Errorf("left: %v, %v", err, c.left)
	}
}

func TestSystemEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "environment")
	if err := os.WriteFile(file, []byte("# c\nexport A=1\nB=\"two words\"\nbad name=x\n\nC='q'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := systemEnvironment(file)
	if len(got) != 3 || got[0] != "A=1" || got[1] != "B=two words" || got[2] != "C=q" {
		t.Errorf("%q", got)
	}
}
