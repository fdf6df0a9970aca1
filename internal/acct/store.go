package acct

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
	_ "modernc.org/sqlite"             // driver "sqlite"
)

// ErrNewer says that a newer version of Berth wrote the database or a record
// in it: this one would misread it, and leaves it alone.
var ErrNewer = errors.New("written by a newer version of Berth")

// Store is the database. Safe for concurrent use.
type Store struct {
	write *sql.DB // one connection where the database takes one writer
	read  *sql.DB
	pg    bool
	where string // for messages: no password in it
}

// lockWait is how long a write waits for another process's lock.
const lockWait = 5 * time.Second

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

func (s *Store) openPostgres(address string) (err error) {
	if s.write, err = sql.Open("pgx", address); err != nil {
		return err
	}
	if s.read, err = sql.Open("pgx", address); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(writers)
	s.read.SetMaxOpenConns(readers)
	s.read.SetConnMaxIdleTime(time.Minute)
	return nil
}

// openSQLite has one connection write and others read beside it, as the
// write-ahead log permits.
func (s *Store) openSQLite(path string) (err error) {
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
