// Package session serves SSH's session channels: shells, commands and sftp,
// each in a process of its own that this same program starts as root, that
// gives up every right but the user's, and that then becomes the user's shell.
//
// The server keeps the master side of the terminal or the ends of pipes, and
// passes bytes on exactly as they are.
package session
