package session

// Spec describes the process that the child becomes. The child reads it as JSON from
// descriptor 3.
type Spec struct {
	UID, GID int
	Groups   []int
	// Drop reports whether the child is root and has to drop its rights; otherwise it
	// already runs as the user.
	Drop bool
	// NoNewPrivileges disables set-uid programs (prctl(2)).
	NoNewPrivileges bool

	Home, Shell string
	Env         []string
	// Command is run by the shell with -c; "": a login shell. With SFTP, the child
	// itself serves sftp.
	Command string
	SFTP    bool

	// Inside is the program, with arguments, that starts the shell in a job; nil: it
	// runs here.
	Inside []string

	Limits []Limit
	Umask  int
	// OOMScoreAdj makes the kernel kill the session before the server if memory runs
	// out.
	OOMScoreAdj int

	// Message reports whether this is an interactive login, which shows the message of
	// the day.
	Message bool
	MOTD    MOTD
}

// MOTD is the message of the day.
type MOTD struct {
	Files []string
	// Command prints something for the user, such as the user's jobs, within two
	// seconds. It runs as the user. Empty: none.
	Command []string
}

// Limit is a resource limit (setrlimit(2)).
type Limit struct {
	Resource   int
	Soft, Hard uint64
}
