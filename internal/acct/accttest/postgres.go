// Package accttest helps to test accounting: it starts a private PostgreSQL
// server, and makes and stores records.
package accttest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
)

// Postgres starts a server as Start does and returns its URL.
func Postgres(t testing.TB) string { return Start(t).Address }

// Server is a private PostgreSQL.
type Server struct {
	Address string // its URL

	bin, dir string
	as       *syscall.SysProcAttr
	process  *exec.Cmd // nil while it is stopped
	log      bytes.Buffer
}

// Start starts a server in a directory of its own, which listens on a socket there
// and nowhere else. If PostgreSQL is not installed the test is skipped, or fails
// if BERTH_TEST_POSTGRES is set. The server does not run as root, which it
// refuses, and stops at the end of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	bin := serverDir()
	if bin == "" {
		if os.Getenv("BERTH_TEST_POSTGRES") != "" {
			t.Fatal("PostgreSQL is not installed (Debian: postgresql)")
		}
		t.Skip("PostgreSQL is not installed")
	}
	// A socket's path is short, and the server's user must reach it.
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{bin: bin, dir: dir, as: unprivileged(t, dir)}
	address := url.URL{
		Scheme:   "postgres",
		User:     url.User("berth"),
		Path:     "/postgres",
		RawQuery: url.Values{"host": {dir}}.Encode(),
	}
	s.Address = address.String()
	run(t, s.as, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "berth", "-A", "trust", "-N",
		"--locale=C.UTF-8", "-E", "UTF8")
	s.Restart(t)
	t.Cleanup(s.Stop)
	return s
}

// Restart starts the server after Stop, and returns when it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.process = exec.Command(filepath.Join(s.bin, "postgres"), "-D", filepath.Join(s.dir, "data"), "-k", s.dir,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=64MB")
	s.process.SysProcAttr, s.process.Dir = s.as, s.dir
	s.process.Stdout, s.process.Stderr = &s.log, &s.log
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); !answers(t.Context(),
		s.Address); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Stop()
			t.Fatalf("PostgreSQL does not start:\n%s", s.log.String())
		}
	}
}

// Stop stops the server and closes every connection to it.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGINT) // fast shutdown
	_ = s.process.Wait()
	s.process = nil
}

func answers(ctx context.Context, address string) bool {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return false
	}
	defer db.Close() //nolint:errcheck // it was only pinged
	return db.PingContext(ctx) == nil
}

// serverDir returns the directory of initdb and postgres, or "".
func serverDir() string {
	directories, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Sort(directories)
	slices.Reverse(directories)
	if path, err := exec.LookPath("initdb"); err == nil {
		directories = append(directories, filepath.Dir(path))
	}
	for _, f := range directories {
		if _, err := os.Stat(filepath.Join(f, "initdb")); err == nil {
			return f
		}
	}
	return ""
}

// unprivileged gives the directory to a user other than root, and returns the
// attributes of processes of that user.
func unprivileged(t testing.TB, dir string) *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func run(t testing.TB, as *syscall.SysProcAttr, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = as
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%s: %w\n%s", name, err, out))
	}
}
