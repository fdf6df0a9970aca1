package acct

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

// ErrNewer says that a newer version of Berth wrote the database or a record
// in it: this one would misread it, and leaves it alone.
var ErrNewer = errors.New("written by a newer version of Berth")

// ErrMoved says that the file of the database is no longer where it was: what
// is written to the open one is lost.
var ErrMoved = errors.New("the file was removed or replaced")

// Store is the database. Safe for concurrent use.
type Store struct {
	write *sql.DB // one connection where the database takes one writer
	read  *sql.DB
	pg    bool
	where string // for messages: no password in it

	path string      // of SQLite's file
	file os.FileInfo // the file that is open
}

// lockWait is how long a statement waits for another process's lock, dialTime
// how long a connection to PostgreSQL may take.
const (
	lockWait = 5 * time.Second
	dialTime = 5 * time.Second
)

// Open opens the database at address, a path of a SQLite file (also as
// sqlite:PATH) or a postgres:// URL, and brings its tables up to date.
func Open(ctx context.Context, address string) (*Store, error) {
	s := &Store{}
	var err error
	if u, perr := url.Parse(address); perr == nil && (u.Scheme == "postgres" || u.Scheme == "postgresql") {
		s.where, s.pg = u.Redacted(), true
		err = s.openPostgres(address)
	} else {
		path := strings.TrimPrefix(address, "sqlite:")
		s.where = path
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
		return nil, fmt.Errorf("accounting database %s: %w", s.where, err)
	}
	return s, nil
}

// writers is how many connections to PostgreSQL write, readers how many read.
const (
	writers = 2
	readers = 8
)

// openPostgres has no statement wait for ever for a lock or a connection.
func (s *Store) openPostgres(address string) error {
	c, err := pgx.ParseConfig(address)
	if err != nil {
		return err
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = dialTime
	}
	impatient := stdlib.OptionAfterConnect(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "SET lock_timeout = "+strconv.FormatInt(lockWait.Milliseconds(), 10))
		return err
	})
	s.write, s.read = stdlib.OpenDB(*c, impatient), stdlib.OpenDB(*c, impatient)
	s.write.SetMaxOpenConns(writers)
	s.read.SetMaxOpenConns(readers)
	s.read.SetConnMaxIdleTime(time.Minute)
	return nil
}

// openSQLite has one connection write and others read beside it, as the
// write-ahead log permits.
func (s *Store) openSQLite(path string) (err error) {
	s.path = path
	pragma := func(list ...string) string {
		v := url.Values{"_pragma": list}
		return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + v.Encode()
	}
	busy := "busy_timeout(" + strconv.Itoa(int(lockWait.Milliseconds())) + ")"
	s.write, err = sql.Open("sqlite", pragma("journal_mode(WAL)", "synchronous(FULL)", busy, "cache_size(-16000)")+"&_txlock=immediate")
	if err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if s.read, err = sql.Open("sqlite", pragma("query_only(1)", busy, "cache_size(-64000)", "mmap_size(1073741824)")); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(2)
	return nil
}

// Moved is ErrMoved when the open file is not the one at its path any more.
// SQLite does not notice with a write-ahead log: it writes to a file that nobody
// will read.
func (s *Store) Moved() error {
	if s.pg {
		return nil
	}
	now, err := os.Stat(s.path)
	if err == nil && os.SameFile(now, s.file) || err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("accounting database %s: %w", s.where, ErrMoved)
}

// lost tells whether err says that what is open is not (any more) the database
// that it was: it has to be opened anew.
func lost(err error) bool {
	var lite *sqlite.Error
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, ErrMoved):
		return true
	case errors.As(err, &lite):
		switch lite.Code() & 0xff {
		case sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
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

// Where names the database for messages.
func (s *Store) Where() string { return s.where }

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

// q puts a query with ? for its arguments into the database's own form.
func (s *Store) q(text string) string {
	if !s.pg {
		return text
	}
	var b strings.Builder
	n := 0
	for i := range len(text) {
		if text[i] != '?' {
			b.WriteByte(text[i])
			continue
		}
		n++
		b.WriteString("$" + strconv.Itoa(n))
	}
	return b.String()
}
