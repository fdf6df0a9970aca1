// Package session serves SSH's session channels: shells, commands and sftp. Each runs
// in a process that this program starts from itself as root, that drops every right
// but the user's, and that then executes the user's shell.
//
// The server has the master side of the terminal or the ends of pipes, and copies bytes
// unchanged.
package session
