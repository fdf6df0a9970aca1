package e2e

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	_ "modernc.org/sqlite"             // driver "sqlite"

	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/eventually"
)

// database is a cluster with an accounting database that this test can access.
type database struct {
	*cluster
	t       *testing.T
	driver  string
	address string
}

// run runs one of the commands and returns its exit code and output.
func (d *database) run(name string, args ...string) (code int, out, errs string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(d.bin, name), args...)
	cmd.Env, cmd.Dir = d.environ(d.t.TempDir()), filepath.Dir(d.state)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		d.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// submit submits a job, which must succeed even if the database does not work.
func (d *database) submit() (id string) {
	d.t.Helper()
	code, out, errs := d.run("sbatch", "--parsable", "-n1", "--mem=10", "-o", "/dev/null", "--wrap", "true")
	if code != 0 {
		d.t.Fatalf("sbatch: exit %d: %s", code, errs)
	}
	return strings.TrimSpace(out)
}

// awaitEnd waits until squeue shows that the job has ended.
func (d *database) awaitEnd(id string) {
	d.t.Helper()
	eventually.Holds(d.t, "job "+id+" ends", func() bool {
		_, out, _ := d.run("squeue", "-h", "-t", "all", "-j", id, "-o", "%T")
		return out == "COMPLETED\n"
	})
}

// awaitRecords waits until the database has the records of the ended jobs.
func (d *database) awaitRecords(ids ...string) {
	d.t.Helper()
	db, err := sql.Open(d.driver, d.address)
	if err != nil {
		d.t.Fatal(err)
	}
	defer db.Close()
	eventually.Holds(d.t, "the records of "+strings.Join(ids, ", "), func() bool {
		var n int
		err := db.QueryRow("SELECT count(*) FROM jobs WHERE state = 'COMPLETED' AND job_id IN (" + strings.Join(ids, ", ") + ")").Scan(&n)
		return err == nil && n == len(ids)
	})
}

// duringFailure submits jobs that end between begin and end, during which the database does
// not work. With unreachable, commands that need it must report that in one line.
func (d *database) duringFailure(unreachable bool, begin, end func()) {
	d.t.Helper()
	before := d.submit()
	d.awaitEnd(before)
	d.awaitRecords(before)
	begin()
	ids := []string{d.submit(), d.submit()}
	for _, id := range ids {
		d.awaitEnd(id)
		code, out, errs := d.run("sacct", "-n", "-X", "-P", "-o", "JobID,State", "-j", id)
		if code != 0 || out != id+"|COMPLETED\n" {
			d.t.Errorf("sacct of a job in the queue: exit %d, %q, %q", code, out, errs)
		}
	}
	if unreachable {
		d.failsInOneLine("sacct", "-n", "-j", before+",99999")
		d.failsInOneLine("sreport", "cluster", "Utilization")
		d.failsInOneLine("sacctmgr", "list", "transactions")
	}
	end()
	d.awaitRecords(ids...)
	eventually.Holds(d.t, "sacct works again", func() bool {
		code, _, errs := d.run("sacct", "-n", "-j", "1")
		return code == 0 && errs == ""
	})
}

// failsInOneLine waits until a command fails, and checks that it reports that in one line.
func (d *database) failsInOneLine(name string, args ...string) {
	d.t.Helper()
	eventually.Holds(d.t, name+" reports that the database is unreachable", func() bool {
		code, _, errs := d.run(name, args...)
		if code == 0 {
			return false
		}
		if code != 1 || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, name+": ") || !strings.Contains(errs, "accounting database") {
			d.t.Errorf("%s: exit %d, %q", name, code, errs)
		}
		return true
	})
}

// session opens a session with the database, which ends with the test, and returns a function
// that executes a statement in it.
func (d *database) session() func(statement string) {
	d.t.Helper()
	db, err := sql.Open(d.driver, d.address)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(context.Background())
	if err != nil {
		d.t.Fatal(err)
	}
	if d.driver == "sqlite" { // the recorder may be writing
		if _, err := conn.ExecContext(context.Background(), "PRAGMA busy_timeout = 60000"); err != nil {
			d.t.Fatal(err)
		}
	}
	return func(statement string) {
		d.t.Helper()
		if _, err := conn.ExecContext(context.Background(), statement); err != nil {
			d.t.Fatal(err)
		}
	}
}

// TestDatabaseFailures: jobs can be submitted, run and are listed while SQLite's file cannot be
// written, and all of them are recorded afterwards.
func TestDatabaseFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir).Run() == nil
	if small {
		t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	}
	path := filepath.Join(dir, "acct.db")
	d := &database{start(t, "--nodes", "2", "--cpus", "2", "--accounting-storage", path), t, "sqlite", path}
	t.Run("locked", func(t *testing.T) {
		d.t = t
		do := d.session()
		d.duringFailure(false, func() { do("BEGIN EXCLUSIVE") }, func() { do("ROLLBACK") })
	})
	t.Run("removed", func(t *testing.T) {
		d.t = t
		d.duringFailure(false, func() {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, func() {})
	})
	t.Run("full", func(t *testing.T) {
		d.t = t
		if !small {
			t.Skip("no file system can be mounted")
		}
		ballast := filepath.Join(dir, "ballast")
		d.duringFailure(false, func() {
			f, err := os.Create(ballast)
			for err == nil { // until nothing more fits
				_, err = f.Write(make([]byte, 4096))
			}
			_ = f.Close()
		}, func() {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// TestPostgresFailures: the same with a server, which is also stopped when the cluster
// starts.
func TestPostgresFailures(t *testing.T) {
	t.Parallel()
	server := accttest.Start(t)
	args := []string{"--nodes", "2", "--cpus", "2", "--accounting-storage", server.Address}
	d := &database{start(t, args...), t, "pgx", server.Address}
	t.Run("locked", func(t *testing.T) {
		d.t = t
		do := d.session()
		d.duringFailure(false, func() {
			do("BEGIN")
			do("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
		}, func() { do("ROLLBACK") })
	})
	t.Run("stopped", func(t *testing.T) {
		d.t = t
		d.duringFailure(true, server.Stop, func() { server.Restart(t) })
	})
	t.Run("stopped while the cluster starts", func(t *testing.T) {
		d.t = t
		var last string
		d.duringFailure(true, func() {
			last = d.submit()
			d.awaitEnd(last)
			d.awaitRecords(last)
			d.down(t)
			server.Stop()
			d.up(t, args...)
		}, func() { server.Restart(t) })
		if id := d.submit(); number(t, id) <= number(t, last) {
			t.Errorf("job %s came after %s", id, last)
		}
	})
	t.Run("newer schema", func(t *testing.T) {
		d.t = t
		do := d.session()
		d.down(t)
		do("INSERT INTO berth_schema (version) VALUES (99)")
		d.up(t, args...)
		id := d.submit()
		d.awaitEnd(id)
		d.failsInOneLine("sreport", "cluster", "Utilization")
		d.failsInOneLine("sacct", "-n", "-j", "99999")
		do("DELETE FROM berth_schema WHERE version = 99")
		d.awaitRecords(id)
	})
}

func number(t *testing.T, id string) (n int64) {
	t.Helper()
	if _, err := fmt.Sscan(id, &n); err != nil {
		t.Fatal(err)
	}
	return n
}
