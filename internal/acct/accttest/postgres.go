// Package accttest starts a private PostgreSQL server for tests.
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

// Postgres starts a server in a folder of its own that listens on a socket
// there and nowhere else, and gives its URL. The test is skipped where
// PostgreSQL is not installed, unless BERTH_TEST_POSTGRES is set: then it
// fails. The server runs as an ordinary user, which it insists on.
func Postgres(t testing.TB) string {
	t.Helper()
	bin := serverFolder()
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
	as := ordinary(t, dir)
	run(t, as, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "berth", "-A", "trust", "-N", "--locale=C.UTF-8", "-E", "UTF8")
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=64MB")
	server.SysProcAttr = as
	server.Dir = dir
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT) // fast shutdown
		_ = server.Wait()
	})
	address := (&url.URL{Scheme: "postgres", User: url.User("berth"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode()}).String()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if answers(t.Context(), address) {
			return address
		}
		if time.Now().After(deadline) {
			t.Fatalf("PostgreSQL does not start:\n%s", log.String())
		}
	}
}

func answers(ctx context.Context, address string) bool {
	db, err := sql.Open("pgx", address)
	if err != nil {
		return false
	}
	defer db.Close() //nolint:errcheck // it was only asked
	return db.PingContext(ctx) == nil
}

// serverFolder has initdb and postgres; "": nowhere.
func serverFolder() string {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Sort(folders)
	slices.Reverse(folders)
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	for _, f := range folders {
		if _, err := os.Stat(filepath.Join(f, "initdb")); err == nil {
			return f
		}
	}
	return ""
}

// ordinary gives the folder to a user that is not root, and says how to run as
// that user.
func ordinary(t testing.TB, dir string) *syscall.SysProcAttr {
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
