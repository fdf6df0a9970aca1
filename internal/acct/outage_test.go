package acct_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct/accttest"
	"github.com/berth-hpc/berth/internal/acct/store"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/translate/status"
)

// survives checks that a Recorder survives a failure of its database, which fail causes
// and repair ends: a job that ends meanwhile is listed and is not counted as stored, the error has
// one line, and the job is stored after the repair.
func survives(t *testing.T, address string, fail, repair func()) {
	t.Helper()
	c := fake.Cluster(interceptor.Funcs{})
	r, _ := recorder(t, c, address)
	first := batchJob(1, v1alpha1.StateCompleted)
	fake.Feed(c, first)
	eventually.Holds(t, "the first record", func() bool { return r.Stored(first) })
	fail()
	second := batchJob(2, v1alpha1.StateCompleted)
	fake.Feed(c, second)
	eventually.Holds(t, "the error of the database", func() bool { return r.Err() != nil })
	if r.Stored(second) {
		t.Error("a job counts as stored that is not")
	}
	if err := r.Err(); strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %v", err)
	}
	list, _, err := r.List(t.Context(), &status.RecordQuery{Jobs: []string{"2"}})
	if err != nil || len(list) != 1 {
		t.Errorf("%d jobs are listed, error %v; want the one that is not stored yet", len(list), err)
	}
	repair()
	eventually.Holds(t, "the second record", func() bool { return r.Stored(second) })
	checkAllStored(t, c, address)
}

// checkAllStored waits until the database, as another process reads it, has a record of
// each job.
func checkAllStored(t *testing.T, c *control.Cluster, address string) {
	t.Helper()
	s, err := store.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	eventually.Holds(t, "both records", func() bool {
		return len(accttest.Find(t, s, status.RecordQuery{})) == c.Jobs.Len()
	})
}

func TestFileRemoved(t *testing.T) {
	for name, remove := range map[string]func(path string) error{
		"the file": os.Remove,
		"the file and its logs": func(path string) error {
			return errors.Join(os.Remove(path), os.Remove(path+"-wal"), os.Remove(path+"-shm"))
		},
		"replaced by an empty one": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			c := fake.Cluster(interceptor.Funcs{})
			r, _ := recorder(t, c, path)
			first, second := batchJob(1, v1alpha1.StateCompleted), batchJob(2, v1alpha1.StateCompleted)
			fake.Feed(c, first)
			eventually.Holds(t, "the first record", func() bool { return r.Stored(first) })
			if err := remove(path); err != nil {
				t.Fatal(err)
			}
			fake.Feed(c, second)
			eventually.Holds(t, "the second record", func() bool { return r.Stored(second) && r.Stored(first) })
			checkAllStored(t, c, path) // the first job was still in the queue
		})
	}
}

func TestDirectoryMovedAwayAndBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	rename := func(from, to string) func() {
		return func() {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
	}
	survives(t, filepath.Join(dir, "a.db"), rename(dir, dir+".away"), rename(dir+".away", dir))
}

// mount mounts a small file system and returns a function that mounts it again with other
// options. It skips the test where mounting is forbidden.
func mount(t *testing.T) (dir string, remount func(options string)) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir, func(options string) {
		t.Helper()
		if out, err := exec.Command("mount", "-o", "remount,"+options, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
}

func TestFullFileSystem(t *testing.T) {
	dir, _ := mount(t)
	ballast := filepath.Join(dir, "ballast")
	survives(t, filepath.Join(dir, "a.db"), func() {
		f, err := os.Create(ballast)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for err == nil { // until nothing more fits
			_, err = f.Write(make([]byte, 4096))
		}
	}, func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
	})
}

func TestReadOnlyFileSystem(t *testing.T) {
	dir, remount := mount(t)
	path := filepath.Join(dir, "a.db")
	c := fake.Cluster(interceptor.Funcs{})
	r, stop := recorder(t, c, path)
	first := batchJob(1, v1alpha1.StateCompleted)
	fake.Feed(c, first)
	eventually.Holds(t, "the first record", func() bool { return r.Stored(first) })
	stop()
	remount("ro") // the recorder has stopped: no file may be open for writing
	c = fake.Cluster(interceptor.Funcs{})
	r, _ = recorder(t, c, path)
	second := batchJob(2, v1alpha1.StateCompleted)
	fake.Feed(c, second)
	eventually.Holds(t, "the error of the database", func() bool { return r.Err() != nil })
	if r.Stored(second) {
		t.Error("a job counts as stored that is not")
	}
	remount("rw")
	eventually.Holds(t, "the second record", func() bool { return r.Stored(second) })
}

// sqlOf returns a connection to the database, as another program has one, and a function
// that executes a statement on it.
func sqlOf(t *testing.T, driver, address string) (*sql.Conn, func(statement string)) {
	t.Helper()
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, func(statement string) {
		t.Helper()
		if _, err := conn.ExecContext(context.Background(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLockedByAnotherProcess(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.db")
		var do func(string)
		survives(t, path, func() {
			_, do = sqlOf(t, "sqlite", path)
			do("BEGIN EXCLUSIVE")
		}, func() { do("ROLLBACK") })
	})
	t.Run("postgres", func(t *testing.T) {
		address := accttest.Postgres(t)
		var do func(string)
		survives(t, address, func() {
			_, do = sqlOf(t, "pgx", address)
			do("BEGIN")
			do("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
		}, func() { do("ROLLBACK") })
	})
}

func TestPostgresStopped(t *testing.T) {
	s := accttest.Start(t)
	survives(t, s.Address, s.Stop, func() { s.Restart(t) })
}

func TestPostgresReadOnly(t *testing.T) {
	address := accttest.Postgres(t)
	_, do := sqlOf(t, "pgx", address)
	set := func(value string) func() {
		return func() {
			do("ALTER SYSTEM SET default_transaction_read_only = " + value)
			do("SELECT pg_reload_conf()")
		}
	}
	survives(t, address, set("on"), func() {
		do("SET default_transaction_read_only = off")
		set("off")()
	})
}

// After the tables were dropped, as by restoring a backup without them, the jobs in the queue
// are written again.
func TestPostgresTablesDropped(t *testing.T) {
	address := accttest.Postgres(t)
	_, do := sqlOf(t, "pgx", address)
	c := fake.Cluster(interceptor.Funcs{})
	r, _ := recorder(t, c, address)
	first, second := batchJob(1, v1alpha1.StateCompleted), batchJob(2, v1alpha1.StateCompleted)
	fake.Feed(c, first)
	eventually.Holds(t, "the first record", func() bool { return r.Stored(first) })
	do("DROP SCHEMA public CASCADE")
	do("CREATE SCHEMA public")
	fake.Feed(c, second)
	eventually.Holds(t, "both records", func() bool { return r.Stored(second) && r.Stored(first) })
	checkAllStored(t, c, address)
}

// Data of a newer version is not changed: neither the schema nor records, and a job
// whose record is newer stays in the queue.
func TestNewerSchemaAndRecord(t *testing.T) {
	test := func(t *testing.T, driver, address string) {
		s, err := store.Open(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		_, do := sqlOf(t, driver, address)
		do("INSERT INTO berth_schema (version) VALUES (99)")
		c := fake.Cluster(interceptor.Funcs{})
		r, _ := recorder(t, c, address)
		b := batchJob(1, v1alpha1.StateRunning)
		fake.Feed(c, b)
		eventually.Holds(t, "the newer schema to be noticed", func() bool { return errors.Is(r.Err(), store.ErrNewer) })
		list, warning, err := r.List(t.Context(), &status.RecordQuery{})
		if err != nil || len(list) != 1 || !strings.Contains(warning, "newer version") {
			t.Errorf("%d jobs are listed, with the warning %q, error %v", len(list), warning, err)
		}
		do("DELETE FROM berth_schema WHERE version = 99")
		eventually.Holds(t, "the record", func() bool { return r.Backlog() == 0 && r.Err() == nil })
		do("UPDATE jobs SET version = 99, body = 'of a newer version'")
		done := batchJob(1, v1alpha1.StateCompleted)
		done.ResourceVersion = "9"
		c.Jobs.Apply(done)
		other := batchJob(2, v1alpha1.StateCompleted)
		fake.Feed(c, other)
		eventually.Holds(t, "the other job", func() bool { return r.Stored(other) })
		if r.Stored(done) {
			t.Error("the end of job 1 counts as stored, and its record was not replaced")
		}
		if _, _, err := r.List(t.Context(), &status.RecordQuery{Jobs: []string{"1"}}); !errors.Is(err, store.ErrNewer) {
			t.Errorf("the record of a newer version: %v, want ErrNewer", err)
		}
		if list, _, err := r.List(t.Context(), &status.RecordQuery{Jobs: []string{"2"}}); err != nil || len(list) != 1 {
			t.Errorf("job 2: %d records, %v", len(list), err)
		}
	}
	t.Run("sqlite", func(t *testing.T) { test(t, "sqlite", filepath.Join(t.TempDir(), "a.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, "pgx", accttest.Postgres(t)) })
}

// A file that is not a database is not changed.
func TestTextFileInPlaceOfDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	text := []byte(strings.Repeat("this is a text\n", 1000))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	c := fake.Cluster(interceptor.Funcs{})
	r, _ := recorder(t, c, path)
	fake.Feed(c, batchJob(1, v1alpha1.StateCompleted))
	eventually.Holds(t, "the error of the database", func() bool { return r.Err() != nil })
	message := fmt.Sprint(r.Err())
	if !strings.Contains(message, path) || !strings.Contains(message, "not a database") || strings.Contains(message, "\n") {
		t.Errorf("the error is %q", message)
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != string(text) {
		t.Errorf("the file was changed: %v", err)
	}
}
