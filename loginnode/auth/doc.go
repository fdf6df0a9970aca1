// Package auth decides who may log in: it finds users (passwd and group files,
// getent, or functions that know other sources), reads their keys the way
// OpenSSH's sshd does (StrictModes, options of authorized_keys, certificates,
// revocation lists), and decides about one attempt at a time. Attempts share no state:
// the identity of a connection is the Login of its last, successful attempt.
package auth
