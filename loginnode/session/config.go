package session

import (
	"context"
	"io"
	"net/netip"

	"golang.org/x/crypto/ssh"

	"github.com/berth-hpc/berth/loginnode/auth"
)

// Config is the configuration of sessions. It must not change once sessions run.
type Config struct {
	// Child is the command that runs the function Child and then executes the user's
	// shell: usually /proc/self/exe session-child.
	Child []string
	// AcceptEnv are patterns of variables that clients may set; nil: AcceptEnv.
	AcceptEnv []string
	// Path is the PATH of sessions.
	Path string
	// LoginPath are directories that precede the PATH that /etc/profile sets in login
	// shells; "": none. Only bash supports it, by a command before its first prompt.
	LoginPath string
	// SFTPServer is the program that serves sftp; "": the child does it itself.
	SFTPServer string
	// SFTPOff refuses sftp.
	SFTPOff bool
	// PermitUserEnvironment enables environment= of authorized_keys. It allows keys that
	// are restricted to a command to circumvent the restriction.
	PermitUserEnvironment bool
	Limits                []Limit
	Umask                 int
	AllowNewPrivileges    bool
	MOTD                  MOTD
	// MakeHome creates a home that does not exist, from Skeleton ("": /etc/skel).
	MakeHome bool
	Skeleton string

	// Register adds a user to the system's databases before the session starts; nil:
	// they have all users.
	Register func(u *auth.User)
	// Prepare prepares what a session needs beside a process, such as a credential. It
	// returns variables, and a function to call when the session has ended. If it
	// returns an error, the session does not start. nil: nothing to prepare.
	Prepare func(ctx context.Context, l *auth.Login) (env []string, done func(), err error)
	// Place returns a descriptor of the cgroup directory in which a session's process
	// starts, with the user's limits; nil: none.
	Place func(u *auth.User) (cgroup int, done func(), err error)
	// EndAll ends all processes of a user; nil: it is not possible.
	EndAll func(uid int) error
	// Agent opens a socket for the user's forwarded agent; nil: agents are not
	// forwarded.
	Agent func(ctx context.Context, l *auth.Login, c ssh.Conn) (socket string, done func(), err error)

	Events Events
}

// Events are called when something happens in sessions. Any may be nil; they must
// return at once.
type Events struct {
	Started func(*Session)
	Ended   func(*Session, End)
	// Failed receives the reason why a session could not start.
	Failed func(*Session, error)
	// Panicked receives a recovered panic, which ended one session.
	Panicked func(any)
}

// Conn is the connection of a session.
type Conn struct {
	SSH   ssh.Conn
	Login *auth.Login
	From  netip.AddrPort
	To    netip.AddrPort
	// Context ends with the connection.
	Context context.Context
	// Inside starts the sessions' programs in a job; nil: they run here.
	Inside *Inside
	// Owner is a value of the server, for Events.
	Owner any
}

// Inside is a program that starts others in a job.
type Inside struct {
	// Command is the program with its arguments; the command to start is appended.
	// %E stands for the names of the variables to pass, separated by commas.
	Command []string
	// Terminal are further arguments for sessions with a terminal.
	Terminal []string
	// Connect is a command line that, started by Command, runs package injob's Main;
	// the port is appended. "": there is none.
	Connect string
}

// End is how a session ended.
type End struct {
	Exit              int // -1: by a signal, or never started
	Signal            string
	BytesIn, BytesOut int64
}

// writeLine writes a line to the client's standard error.
func writeLine(w io.Writer, text string) { _, _ = io.WriteString(w, text+"\r\n") }
