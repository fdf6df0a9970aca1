// Package store is the accounting database, SQLite or PostgreSQL: the records of
// jobs and steps, the events of nodes, the changes by sacctmgr, and the
// reservations of the past.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite" // driver "sqlite" as well
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrNewer is returned if a newer version of Berth has written the database or a
// record in it. This version would misread it and leaves it as it is.
var ErrNewer = errors.New("written by a newer version of Berth")

// ErrMoved is returned if the file of the database was removed or replaced: what
// is written to the open file is lost.
var ErrMoved = errors.New("the file was removed or replaced")

// Store is the database. Safe for concurrent use.
type Store struct {
	write *sql.DB // one connection where the database takes one writer
	read  *sql.DB
	pg    bool
	name  string // for messages: the address without a password

	path string      // of SQLite's file
	file os.FileInfo // of the open file
}

// lockTimeout is how long a statement waits for another process's lock, dialTimeout
// how long a connection to PostgreSQL may take.
const (
	lockTimeout = 5 * time.Second
	dialTimeout = 5 * time.Second
)

// Open opens the database at address, a path of a SQLite file (also as
// sqlite:PATH) or a postgres:// URL, and brings its tables up to date. The error wraps
// ErrNewer if a newer version of Berth has written the database. The caller closes it.
func Open(ctx context.Context, address string) (*Store, error) {
	s := &Store{}
	var err error
	if u, perr := url.Parse(address); perr == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") {
		s.name, s.pg = u.Redacted(), true
		err = s.openPostgres(address)
	} else {
		path := strings.TrimPrefix(address, "sqlite:")
		s.name = path
		err = s.openSQLite(path)
	}
	if err == nil {
		err = s.migrate(ctx)
	}
	if err == nil && !s.pg {
		s.file, err = os.Stat(s.path)
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("accounting database %s: %w", s.name, err)
	}
	return s, nil
}

// writers is how many connections to PostgreSQL write, readers how many read.
const (
	writers = 2
	readers = 8
)

// openPostgres opens PostgreSQL. A statement fails if it waits for a lock or a
// connection for too long.
func (s *Store) openPostgres(address string) error {
	c, err := pgx.ParseConfig(address)
	if err != nil {
		return err
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = dialTimeout
	}
	withLockTimeout := stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET lock_timeout = "+strconv.FormatInt(lockTimeout.Milliseconds(), 10))
		return err
	})
	s.write, s.read = stdlib.OpenDB(*c, withLockTimeout), stdlib.OpenDB(*c, withLockTimeout)
	s.write.SetMaxOpenConns(writers)
	s.read.SetMaxOpenConns(readers)
	s.read.SetConnMaxIdleTime(time.Minute)
	return nil
}

// openSQLite opens SQLite with one connection that writes and others that read
// beside it, as the write-ahead log permits.
func (s *Store) openSQLite(path string) (err error) {
	s.path = path
	keepPrivate(path)
	withPragmas := func(pragmas ...string) string {
		v := url.Values{"_pragma": pragmas}
		return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + v.Encode()
	}
	busy := "busy_timeout(" + strconv.Itoa(int(lockTimeout.Milliseconds())) + ")"
	s.write, err = sql.Open("sqlite", withPragmas("journal_mode(WAL)", "synchronous(FULL)", busy, "cache_size(-16000)")+
		"&_txlock=immediate")
	if err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	s.read, err = sql.Open("sqlite", withPragmas("query_only(1)", busy, "cache_size(-64000)", "mmap_size(1073741824)"))
	if err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(2)
	return nil
}

// keepPrivate creates the file of a database so that other users of the machine cannot read it,
// and takes that right from them if the file is there already. SQLite gives the files beside it
// the same mode. Failures are left to SQLite, which reports them in its own words.
func keepPrivate(path string) {
	if f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err == nil {
		_ = f.Close()
	}
	for _, file := range []string{path, path + "-wal", path + "-shm"} {
		if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o007 != 0 {
			_ = os.Chmod(file, info.Mode().Perm()&^0o007)
		}
	}
}

// CheckMoved returns ErrMoved if the open file is no longer the one at its path.
// SQLite does not detect that with a write-ahead log: it writes to a file that
// nobody will read.
func (s *Store) CheckMoved() error {
	if s.pg {
		return nil
	}
	now, err := os.Stat(s.path)
	if err == nil && os.SameFile(now, s.file) || err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("accounting database %s: %w", s.name, ErrMoved)
}

// NeedsReopen reports whether err means that the open database is not, or no
// longer, the accounting database: it has to be opened again.
func NeedsReopen(err error) bool {
	var lite *sqlite.Error
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, ErrMoved):
		return true
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_ERROR,
			sqlite3.SQLITE_CORRUPT,
			sqlite3.SQLITE_NOTADB,
			sqlite3.SQLITE_IOERR,
			sqlite3.SQLITE_CANTOPEN:
			return true
		}
	case errors.As(err, &pg):
		return pg.Code == undefinedTable || pg.Code == undefinedColumn
	}
	return false
}

// PostgreSQL's codes of errors (its manual, appendix A).
const (
	undefinedTable  = "42P01"
	undefinedColumn = "42703"
)

// Close closes every connection.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.write, s.read} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// sql returns a statement with ? for its arguments in the form of the database.
func (s *Store) sql(statement string) string {
	if !s.pg {
		return statement
	}
	var b strings.Builder
	n := 0
	for i := range len(statement) {
		if statement[i] != '?' {
			b.WriteByte(statement[i])
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}

// inTransaction runs do in a transaction, which it commits if do succeeds. The
// file of the database must be at its path before.
func (s *Store) inTransaction(ctx context.Context, do func(*sql.Tx) error) error {
	if err := s.CheckMoved(); err != nil {
		return err
	}
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // has no effect after a commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// eachRow runs a query of one or more rows on a connection that reads, and calls
// scan for each row. It explains errors of the database.
func (s *Store) eachRow(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := s.read.QueryContext(ctx, s.sql(query), args...)
	if err != nil {
		return fmt.Errorf("accounting database: %w", err)
	}
	defer rows.Close() //nolint:errcheck // it was read to its end, or the query has failed
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("accounting database: %w", err)
	}
	return nil
}

// placeholders returns "(?, ?, ...)" with n question marks.
func placeholders(n int) string { return "(?" + strings.Repeat(", ?", n-1) + ")" }

// toText removes what PostgreSQL's text cannot hold (NUL, bytes that are not
// UTF-8), so that every record can be stored.
func toText(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
