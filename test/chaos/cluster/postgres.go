package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Postgres is a private PostgreSQL, which listens on a socket.
type Postgres struct {
	Address string // its URL

	tally    *tally
	bin, dir string
	as       *syscall.SysProcAttr
	cmd      *exec.Cmd
}

// HasPostgres reports whether PostgreSQL's server is installed.
func HasPostgres() bool { return postgresDir() != "" }

// postgresDir returns the directory of initdb and postgres, or "".
func postgresDir() string {
	directories, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Sort(directories)
	slices.Reverse(directories)
	for _, f := range directories {
		if _, err := os.Stat(filepath.Join(f, "initdb")); err == nil {
			return f
		}
	}
	return ""
}

// startPostgres makes a database and starts its server, which refuses to run as root.
func startPostgres(dir string, t *tally) (*Postgres, error) {
	p := &Postgres{tally: t, bin: postgresDir(), dir: filepath.Join(dir, "pg"), as: &syscall.SysProcAttr{}}
	if p.bin == "" {
		return nil, errors.New("PostgreSQL is not installed")
	}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 {
		u, err := user.Lookup("nobody")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(p.dir, uid, gid); err != nil {
			return nil, err
		}
		p.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	address := url.URL{Scheme: "postgres", User: url.User("berth"), Path: "/postgres",
		RawQuery: url.Values{"host": {p.dir}}.Encode()}
	p.Address = address.String()
	cmd := exec.Command(filepath.Join(p.bin, "initdb"), "-D", filepath.Join(p.dir, "data"), "-U", "berth",
		"-A", "trust", "-N", "--locale=C.UTF-8", "-E", "UTF8")
	cmd.SysProcAttr, cmd.Dir = p.as, "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return p, p.Start()
}

// Start starts the server, also after Kill, and returns when it listens.
func (p *Postgres) Start() error {
	// A killed server's children may outlive it for a moment, and hold the shared memory.
	var err error
	for range 100 {
		p.cmd = exec.Command(filepath.Join(p.bin, "postgres"), "-D", filepath.Join(p.dir, "data"), "-k", p.dir,
			"-c", "listen_addresses=", "-c", "shared_buffers=32MB")
		p.cmd.SysProcAttr, p.cmd.Dir = p.as, p.dir
		if err = p.cmd.Start(); err != nil {
			return err
		}
		ended := make(chan error, 1)
		go func() { ended <- p.cmd.Wait() }()
		select {
		case err = <-ended:
		case <-time.After(time.Second):
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("PostgreSQL does not start: %w", err)
}

// Kill kills the server; its children notice and end.
func (p *Postgres) Kill() error {
	p.tally.add(Killed, "PostgreSQL")
	return p.cmd.Process.Signal(syscall.SIGKILL)
}

func (p *Postgres) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // immediate shutdown, with the children
	for i := 0; i < 500 && syscall.Kill(p.cmd.Process.Pid, 0) == nil; i++ {
		time.Sleep(10 * time.Millisecond)
	}
}
