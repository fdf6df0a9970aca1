// Package record makes the accounting records of jobs and their steps from the
// jobs' objects, and decides which records a query selects. It does no I/O.
package record
