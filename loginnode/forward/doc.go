// Package forward serves SSH's forwardings: TCP and Unix sockets in both
// directions, and the agent. TCP goes out only where the policy allows; Unix
// sockets are opened and made by the kernel's leave, as the user; what one
// connection has opened, no other can see or cancel.
package forward
