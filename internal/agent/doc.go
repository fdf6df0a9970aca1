// Package agent is the process that Berth puts at the head of every pod of a
// job. On the job's first node it runs the batch script and grants steps; on
// all nodes it runs the tasks of steps. It starts when the whole gang has said
// hello to the API role and ends with the job.
//
// The agent runs as the job's user, so it protects itself from that user's
// other jobs and from nobody else's: it is not dumpable, its socket asks the
// kernel for the peer's uid, and between agents both sides show the one
// certificate that only this job's agents were given. Nothing that fairness or
// limits rest on trusts what it says.
package agent
