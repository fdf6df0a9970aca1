// Package forward serves SSH's forwardings: TCP and Unix sockets in both
// directions, and the agent. Outgoing TCP connections obey a policy. Unix sockets are
// opened and created as the user, so that the kernel checks access. A connection cannot
// see or cancel the forwardings of another.
package forward
