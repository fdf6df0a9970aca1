package acct

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// retained returns the time before which records are purged; zero: none are.
func (r *Recorder) retained() time.Time {
	if r.Retention <= 0 {
		return time.Time{}
	}
	return r.Now().AddDate(0, 0, -r.Retention)
}

// purge archives and deletes records that are older than the retention.
func (r *Recorder) purge(ctx context.Context) {
	s := r.store.Load()
	before := r.retained()
	if s == nil || before.IsZero() {
		return
	}
	n, err := s.Purge(ctx, before, r.ArchiveDir, r.Now())
	switch {
	case err != nil:
		r.Log.Warn("old accounting records were not deleted", "error", err)
	case n > 0:
		r.Log.Info("old accounting records were deleted", "records", n, "archive", r.ArchiveDir)
	}
}

// Archive archives and deletes the records of runs that ended before the given
// time, or those older than the retention if it is zero. It returns how many.
func (r *Recorder) Archive(ctx context.Context, before time.Time) (int, error) {
	s, err := r.database()
	if err != nil {
		return 0, err
	}
	if before.IsZero() {
		before = r.retained()
	}
	if before.IsZero() {
		return 0, nil
	}
	return s.Purge(ctx, before, r.ArchiveDir, r.Now())
}

// LoadArchive stores the records of a file in the archive directory, and returns
// how many. The error is fs.ErrNotExist if there is no such file.
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
	defer f.Close() //nolint:errcheck // it was only read
	return s.Load(ctx, f)
}
