// Package agent is the first process of every pod of a job. On the job's first
// node it runs the batch script and coordinates steps; on all nodes it runs the
// tasks of steps. It starts when all agents of the job have reported to the API
// role, and ends with the job.
//
// The agent runs as the job's user, so it protects itself from other users and
// from that user's other jobs: it is not dumpable, its socket accepts only
// processes of its own uid, and agents identify each other by a certificate that
// only the agents of this job have. Fairness and limits never depend on what it
// reports.
package agent
