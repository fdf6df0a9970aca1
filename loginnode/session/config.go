package session

import (
	"context"
	"io"
	"net/netip"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// Config says what sessions are given. It is not changed once sessions run.
type Config struct {
	// Child is the program, with its first arguments, that becomes the user's
	// shell (Child): usually /proc/self/exe session-child.
	Child []string
	// AcceptEnv are patterns of variables that clients may set; nil: AcceptEnv.
	AcceptEnv []string
	// Path is the PATH of sessions.
	Path string
	// LoginPath are folders that come before the PATH that /etc/profile gives
	// login shells; "": none. bash alone is told, by what it does before its
	// first prompt.
	LoginPath string
	// SFTPServer is the program that serves sftp; "": the child does it itself.
	SFTPServer string
	// SFTPOff refuses sftp.
	SFTPOff bool
	// PermitUserEnvironment honours environment= of authorized_keys. With it a
	// key that is bound to a command is not bound any more.
	PermitUserEnvironment bool
	Limits                []Limit
	Umask                 int
	AllowNewPrivileges    bool
	MOTD                  MOTD
	// MakeHome makes a home that does not exist, from Skeleton ("": /etc/skel).
	MakeHome bool
	Skeleton string

	// Register tells the system of a user before the session begins; nil: it
	// knows them.
	Register func(u *auth.User)
	// Prepare gives a session what it needs beside a process: a credential, a
	// folder. It returns variables, and what is to be done when the session is
	// over. nil: nothing. Its error refuses the session.
	Prepare func(ctx context.Context, l *auth.Login) (env []string, done func(), err error)
	// Place puts a session's process under the user's limits before it runs
	// anything; nil: nothing. The descriptor is of a cgroup folder.
	Place func(u *auth.User) (cgroup int, done func(), err error)
	// Agent opens the user's forwarded agent and returns its socket; nil:
	// agents are not forwarded.
	Agent func(ctx context.Context, l *auth.Login, c ssh.Conn) (socket string, done func(), err error)

	Events Events
}

// Events are told what happens in sessions. Any may be nil; they return at once.
type Events struct {
	Started func(*Session)
	Ended   func(*Session, End)
	// Failed is told why a session could not be given.
	Failed func(*Session, error)
	// Panicked is told that one session was lost to a defect.
	Panicked func(any)
}

// Conn is the connection that a session belongs to.
type Conn struct {
	SSH   ssh.Conn
	Login *auth.Login
	From  netip.AddrPort
	To    netip.AddrPort
	// Context ends with the connection.
	Context context.Context
	// Inside starts the sessions' programs where they are to run; nil: here.
	Inside *Inside
	// Owner is whatever the server wants to find again in Events.
	Owner any
}

// Inside is a program that starts others elsewhere.
type Inside struct {
	// Command is the program with its arguments, to which those of what it is
	// to start are added. %E in it stands for the names of the variables to
	// hand on, with commas.
	Command []string
	// Terminal are further arguments where there is a terminal.
	Terminal []string
	// Connect is a command line that, started by Command, runs package injob's
	// Main; the port is added. "": there is none.
	Connect string
}

// End is how a session ended.
type End struct {
	Exit              int // -1: by a signal, or never started
	Signal            string
	BytesIn, BytesOut int64
}

// say writes a line to the client's standard error.
func say(w io.Writer, text string) { _, _ = io.WriteString(w, text+"\r\n") }
