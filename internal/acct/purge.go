package acct

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-hpc/berth/translate/status"
)

// archiveHeader is the first line of an archive; a record, with its steps, is
// on each of the others.
type archiveHeader struct {
	Kind    string `json:"kind"`
	Version int    `json:"version"`
	Made    int64  `json:"made"`
}

// ErrBadArchive says that a file is no accounting archive, or a damaged one.
var ErrBadArchive = errors.New("this is no accounting archive")

const archiveKind = "BerthAccountingArchive"

// purge takes records out that are older than the retention.
func (r *Recorder) purge(ctx context.Context) {
	s := r.store.Load()
	if s == nil || r.Retention <= 0 {
		return
	}
	n, err := s.Purge(ctx, r.Now().AddDate(0, 0, -r.Retention), r.ArchiveDir, r.Now())
	switch {
	case err != nil:
		r.Log.Warn("old accounting records were not taken out", "error", err)
	case n > 0:
		r.Log.Info("old accounting records were taken out", "records", n, "archive", r.ArchiveDir)
	}
}

// Archive takes records out that ended before the instant, as the retention
// does; zero: those that the retention means. It returns how many.
func (r *Recorder) Archive(ctx context.Context, before time.Time) (int, error) {
	s, err := r.database()
	if err != nil {
		return 0, err
	}
	if before.IsZero() {
		if r.Retention <= 0 {
			return 0, nil
		}
		before = r.Now().AddDate(0, 0, -r.Retention)
	}
	return s.Purge(ctx, before, r.ArchiveDir, r.Now())
}

// LoadArchive brings the records of a file in the archive folder back, and
// returns how many. The error is fs.ErrNotExist if there is no such file.
func (r *Recorder) LoadArchive(ctx context.Context, name string) (int, error) {
	s, err := r.database()
	if err != nil {
		return 0, err
	}
	if r.ArchiveDir == "" || name != filepath.Base(name) {
		return 0, fs.ErrNotExist
	}
	f, err := os.Open(filepath.Join(r.ArchiveDir, name))
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	return s.Load(ctx, f)
}

// purgeBatch is how many records go at once.
const purgeBatch = 1000

// Purge deletes the records of runs that ended before the given instant. With
// dir, they are first written to files there, which Load reads; a record is
// deleted only when it is safe on disk.
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

func (s *Store) oldest(ctx context.Context, before time.Time) ([]status.Record, error) {
	rows, err := s.read.QueryContext(ctx, s.q("SELECT "+jobColumns+" FROM jobs j WHERE j.span >= 0 AND j.end_at < ? ORDER BY j.end_at LIMIT ?"), before.Unix(), purgeBatch)
	if err != nil {
		return nil, fmt.Errorf("accounting database: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end, or given up
	var list []status.Record
	for rows.Next() {
		r, err := scanJob(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil || len(list) == 0 {
		return nil, err
	}
	return list, s.addSteps(ctx, list)
}

func (s *Store) remove(ctx context.Context, list []status.Record) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it does nothing
	for i := range list {
		for _, table := range []string{"steps", "jobs"} {
			if _, err := tx.ExecContext(ctx, s.q("DELETE FROM "+table+" WHERE uid = ? AND restarts = ?"), list[i].UID, list[i].Restarts); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}

// writeArchive writes one file, whole or not at all.
func writeArchive(dir string, list []status.Record, now time.Time, part int) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(dir, fmt.Sprintf("jobs-%s-%07d.jsonl.gz", now.UTC().Format("20060102T150405.000000"), part))
	f, err := os.CreateTemp(dir, ".archive-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // renamed when all went well
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

// Load brings the records of an archive back; those that are there stay.
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
			steps = append(steps, StepEntry{r.UID, r.Restarts, step})
		}
		jobs = append(jobs, Entry{Record: r})
	}
	_, err = s.Put(ctx, jobs, steps)
	return len(jobs), err
}

func decodeBody(body string) (r status.Record, err error) {
	if err := json.NewDecoder(strings.NewReader(body)).Decode(&r); err != nil {
		return r, fmt.Errorf("a record cannot be read: %w", err)
	}
	return r, nil
}
