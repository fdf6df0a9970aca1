// Package auth decides who may log in: it finds users (passwd and group files,
// getent, or functions that know other sources), reads their keys the way
// OpenSSH's sshd does (StrictModes, options of authorized_keys, certificates,
// revocation lists), and answers one attempt at a time. Nothing of one attempt
// survives into the next: the identity of a connection is the Login that its
// last, successful attempt made, and nothing else.
package auth
