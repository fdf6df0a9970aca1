// Package step is the protocol by which srun and the agents of a job run
// steps: the frames on a connection, the messages in them, and the client side
// that srun, sattach, sbcast and sstat share. It starts no process and opens no
// listener; the agents do.
//
// Three kinds of connections speak it. srun talks to the agent on its node
// over a Unix socket (KindClient). That agent either coordinates the job's
// steps, because its node is the job's first, or forwards the connection to the
// agent that does. The coordinator talks to the other agents over TLS, as a
// tree (KindLaunch). There is one connection for each step and neighbor, so TCP
// alone slows down a step that writes faster than srun reads. Input for tasks
// is limited by credit (Window): an agent never waits for a task before it
// reads the next frame, and a signal is never stuck behind input.
//
// Where tasks run is decided by package placement, which CPUs and memory they
// are bound to is described by package affinity, the file of --multi-prog is
// read by package multiprog, and files are sent by package bcast.
package step
