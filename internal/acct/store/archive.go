package store

import (
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-hpc/berth/internal/acct/record"
	"github.com/berth-hpc/berth/translate/status"
)

// archiveHeader is the first line of an archive. Each of the other lines is a
// record with its steps.
type archiveHeader struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
	Made    int64  `json:"made"`
}

// ErrBadArchive is returned if a file is not an accounting archive, or a damaged
// one.
var ErrBadArchive = errors.New("this is not an accounting archive")

const archiveKind = "BerthAccountingArchive"

// purgeBatch is the number of records that are deleted in one transaction.
const purgeBatch = 1000

// Purge deletes the records of runs that ended before the given time, and
// returns their number. With dir, it first writes them to files there, which Load
// reads. A record is deleted only after it is on disk.
func (s *Store) Purge(ctx context.Context, before time.Time, dir string, now time.Time) (int, error) {
	total := 0
	for {
		list, err := s.oldest(ctx, before)
		if err != nil || len(list) == 0 {
			return total, err
		}
		if dir != "" {
			if err := writeArchive(dir, list, now, total); err != nil {
				return total, err
			}
		}
		if err := s.remove(ctx, list); err != nil {
			return total, err
		}
		total += len(list)
	}
}

// oldest returns some of the records that ended before the given time, with
// their steps.
func (s *Store) oldest(ctx context.Context, before time.Time) ([]status.Record, error) {
	query := "SELECT " + jobColumns + " FROM jobs j WHERE j.span >= 0 AND j.end_at < ? ORDER BY j.end_at LIMIT ?"
	all := func(*status.Record) bool { return true }
	list, err := s.records(ctx, query, []any{before.Unix(), purgeBatch}, all)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list, s.addSteps(ctx, list)
}

func (s *Store) remove(ctx context.Context, list []status.Record) error {
	return s.inTransaction(ctx, func(tx *sql.Tx) error {
		for i := range list {
			for _, table := range []string{"steps", "jobs"} {
				statement := s.sql("DELETE FROM " + table + " WHERE uid = ? AND restarts = ?")
				if _, err := tx.ExecContext(ctx, statement, list[i].UID, list[i].Restarts); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// writeArchive writes one file, completely or not at all.
func writeArchive(dir string, list []status.Record, now time.Time, part int) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("jobs-%s-%07d.jsonl.gz", now.UTC().Format("20060102T150405.000000"), part))
	f, err := os.CreateTemp(dir, ".archive-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has been renamed if nothing failed
	z := gzip.NewWriter(f)
	e := json.NewEncoder(z)
	errs := []error{e.Encode(archiveHeader{archiveKind, recordVersion, now.Unix()})}
	for i := range list {
		errs = append(errs, e.Encode(&list[i]))
	}
	errs = append(errs, z.Close(), f.Sync(), f.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("writing the archive %s: %w", name, err)
	}
	return os.Rename(f.Name(), name)
}

// Load stores the records of an archive and returns how many it has. Records that
// are in the database stay as they are.
func (s *Store) Load(ctx context.Context, from io.Reader) (int, error) {
	z, err := gzip.NewReader(from)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrBadArchive, err)
	}
	d := json.NewDecoder(z)
	var h archiveHeader
	if err := d.Decode(&h); err != nil || h.Kind != archiveKind {
		return 0, errors.Join(ErrBadArchive, err)
	}
	if h.Version > recordVersion {
		return 0, fmt.Errorf("the archive is %w (version %d, this one knows %d)", ErrNewer, h.Version, recordVersion)
	}
	var jobs []Entry
	var steps []StepEntry
	for {
		var r status.Record
		err := d.Decode(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("%w: record %d: %w", ErrBadArchive, len(jobs)+1, err)
		}
		for _, step := range r.Steps {
			steps = append(steps, StepEntry{record.KeyOf(&r), step})
		}
		jobs = append(jobs, Entry{Record: r})
	}
	_, err = s.Put(ctx, jobs, steps)
	return len(jobs), err
}
