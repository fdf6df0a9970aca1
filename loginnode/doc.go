// Package loginnode is an SSH server for shared HPC login nodes. It replaces sshd in
// a pod: each user has a shell, files and Slurm commands, and no access to other
// users.
//
// gliderlabs/ssh runs the loop over a connection's channels and requests. Every
// channel and request is served by this package (handlers.go has the chains of
// handlers) and the packages below it, because the library's own handlers do not
// separate users who do not trust one another
// (docs/decisions/0017-the-login-node-owns-its-handlers.md).
//
// The packages: auth (who may log in), session (shells, commands, sftp), forward
// (TCP, Unix sockets, agents), limit (limits of clients and users), audit and metrics,
// proxyproto (clients' addresses behind load balancers), asuser (acting with a user's
// rights), oidc (login with an OpenID provider), relay (forwarding to the server in a
// user's pod), daemon (the program).
package loginnode
