package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// migrations are the steps from an empty database to the present schema. A step
// that was released never changes; the version of a schema is the number of its
// steps. The same text serves both databases: {pk} is a key that the database
// generates.
var migrations = []string{
	`CREATE TABLE jobs (
		db_id {pk},
		uid TEXT NOT NULL, restarts BIGINT NOT NULL, rev BIGINT NOT NULL,
		job_id BIGINT NOT NULL, array_job_id BIGINT NOT NULL, array_task TEXT NOT NULL,
		het_job_id BIGINT NOT NULL, het_offset BIGINT NOT NULL,
		name TEXT NOT NULL, user_name TEXT NOT NULL, user_id BIGINT NOT NULL,
		group_name TEXT NOT NULL, group_id BIGINT NOT NULL,
		account TEXT NOT NULL, qos TEXT NOT NULL, part TEXT NOT NULL, wckey TEXT NOT NULL,
		state TEXT NOT NULL,
		submit_at BIGINT NOT NULL, eligible_at BIGINT NOT NULL, start_at BIGINT NOT NULL, end_at BIGINT NOT NULL,
		span BIGINT NOT NULL,
		time_limit BIGINT NOT NULL, nodes BIGINT NOT NULL, cpus BIGINT NOT NULL, req_cpus BIGINT NOT NULL, mem BIGINT NOT NULL,
		node_list TEXT NOT NULL, version BIGINT NOT NULL, body TEXT NOT NULL,
		UNIQUE (uid, restarts));
	CREATE INDEX jobs_id ON jobs (job_id);
	CREATE INDEX jobs_array ON jobs (array_job_id) WHERE array_job_id <> 0;
	CREATE INDEX jobs_het ON jobs (het_job_id) WHERE het_job_id <> 0;
	CREATE INDEX jobs_time ON jobs (span, end_at);
	CREATE INDEX jobs_user ON jobs (user_name, span, end_at);
	CREATE TABLE steps (
		uid TEXT NOT NULL, restarts BIGINT NOT NULL, step TEXT NOT NULL,
		version BIGINT NOT NULL, body TEXT NOT NULL,
		PRIMARY KEY (uid, restarts, step));
	CREATE TABLE archives (
		file TEXT PRIMARY KEY, made_at BIGINT NOT NULL, records BIGINT NOT NULL)`,
	`CREATE TABLE events (
		db_id {pk}, node TEXT NOT NULL, nodes TEXT NOT NULL, start_at BIGINT NOT NULL, end_at BIGINT NOT NULL,
		state TEXT NOT NULL, reason TEXT NOT NULL, user_name TEXT NOT NULL, user_id BIGINT NOT NULL, tres TEXT NOT NULL);
	CREATE INDEX events_node ON events (node, end_at);
	CREATE TABLE transactions (
		db_id {pk}, at BIGINT NOT NULL, action TEXT NOT NULL, actor TEXT NOT NULL, place TEXT NOT NULL, info TEXT NOT NULL,
		user_name TEXT NOT NULL, account TEXT NOT NULL);
	CREATE INDEX transactions_at ON transactions (at)`,
	`CREATE TABLE reservations (
		db_id {pk}, uid TEXT NOT NULL, name TEXT NOT NULL, start_at BIGINT NOT NULL, end_at BIGINT NOT NULL, body TEXT NOT NULL);
	CREATE INDEX reservations_uid ON reservations (uid, start_at);
	CREATE INDEX reservations_time ON reservations (end_at)`,
}

// recordVersion is the version of the bodies of records.
const recordVersion = 1

// migrate brings the schema up to date, each step in one transaction.
func (s *Store) migrate(ctx context.Context) error {
	if _, err := s.write.ExecContext(
		ctx,
		`CREATE TABLE IF NOT EXISTS berth_schema (version BIGINT NOT NULL)`,
	); err != nil {
		return err
	}
	for {
		done, err := s.migrateOnce(ctx)
		if done || err != nil {
			return err
		}
	}
}

// migrateOnce runs the next migration. done is true if there is none.
func (s *Store) migrateOnce(ctx context.Context) (done bool, err error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() //nolint:errcheck // has no effect after a commit
	if s.pg {
		// Two replicas may start at the same time.
		if _, err := tx.ExecContext(ctx, `LOCK TABLE berth_schema IN ACCESS EXCLUSIVE MODE`); err != nil {
			return false, err
		}
	}
	var version sql.NullInt64
	if err := tx.QueryRowContext(ctx, `SELECT max(version) FROM berth_schema`).Scan(&version); err != nil {
		return false, err
	}
	at := int(version.Int64)
	switch {
	case at > len(migrations):
		return true, fmt.Errorf("%w: its schema is version %d, this one knows %d", ErrNewer, at, len(migrations))
	case at == len(migrations):
		return true, nil
	}
	if err := s.runMigration(ctx, tx, at); err != nil {
		return false, fmt.Errorf("bringing the schema from version %d to %d: %w", at, at+1, err)
	}
	return false, tx.Commit()
}

// runMigration runs the step from version at to the next.
func (s *Store) runMigration(ctx context.Context, tx *sql.Tx, at int) error {
	pk := "INTEGER PRIMARY KEY AUTOINCREMENT"
	if s.pg {
		pk = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
	}
	for statement := range strings.SplitSeq(migrations[at], ";") {
		if _, err := tx.ExecContext(ctx, strings.ReplaceAll(statement, "{pk}", pk)); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, s.sql(`INSERT INTO berth_schema (version) VALUES (?)`), at+1)
	return err
}
