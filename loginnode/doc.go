// Package loginnode is an SSH server for shared HPC login nodes. It replaces
// sshd in a pod: users get their own shell, files and Slurm commands, and
// nothing of anybody else's.
//
// The listening and the loop over a connection's channels are gliderlabs/ssh;
// every request and every channel is served by code of this package and its
// parts, because the library's own handlers are not fit for several users who
// do not trust one another (docs/decisions/0017-the-login-node-owns-its-handlers.md).
// Parts: auth (who may log in), session (shells, commands, sftp), forward
// (TCP, Unix sockets, agents), asuser (acting with a user's rights), oidc (login
// at an OpenID provider), relay (passing on to the server in a user's pod).
package loginnode
