// Package acct is accounting: a database of what became of every job, its runs
// and its steps, and of what was used. It holds records only: the queue works
// without it, and catches up when it is back.
//
// Store is the database (SQLite, or PostgreSQL by its URL). Recorder follows
// the cluster's jobs and writes their records in batches, away from planning;
// the keeper asks it before it lets a finished job go.
package acct
