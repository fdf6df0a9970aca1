// Package acct is accounting: a database of the jobs, their runs and steps, and
// of what was used. It has records only: the queue works without it, and it
// catches up when the database is available again.
//
// Recorder follows the cluster's jobs and writes their records in batches, apart
// from planning; the keeper deletes a finished job when its record is stored.
// Recorder also answers queries: lists of records, and reports of usage. Package
// store is the database (SQLite, or PostgreSQL by its URL), package record makes
// records from jobs, and package usage holds past usage for fair share.
package acct
