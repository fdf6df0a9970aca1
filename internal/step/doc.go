// Package step is the protocol by which srun and the agents of a job run
// steps: the frames on a connection, the messages in them, the layout of tasks
// over nodes, and the client that srun uses. It starts no process and opens no
// listener; the agents do.
//
// Three kinds of connections speak it. srun talks to the agent on its node
// over a unix socket (KindClient); that agent is, or passes the bytes on to,
// the agent of the job's first node, which coordinates; and the coordinator
// talks to the other agents over TLS as a tree (KindLaunch). There is one
// connection per step and neighbour, so a step that writes faster than srun
// reads is held up by TCP and by nothing else. What a client sends to tasks is
// bounded by credit (Window), so an agent never waits for a task in order to
// read the next frame, and a signal is never stuck behind input.
package step
