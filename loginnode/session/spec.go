package session

// Spec is what the child is told to become. It travels as JSON on descriptor 3.
type Spec struct {
	UID, GID int
	Groups   []int
	// Drop: the child is root and has to give it up; otherwise it already runs
	// as the user.
	Drop bool
	// NoNewPrivileges keeps set-uid programs from raising rights (prctl(2)).
	NoNewPrivileges bool

	Home, Shell string
	Env         []string
	// Command is run by the shell with -c; "": a login shell. With SFTP the
	// child serves sftp itself.
	Command string
	SFTP    bool

	// Inside is the program, with arguments, that starts the shell elsewhere;
	// nil: here.
	Inside []string

	Limits []Limit
	Umask  int
	// OOMScoreAdj makes the session go before the server when memory is short.
	OOMScoreAdj int

	// Message: an interactive login, which gets the message of the day.
	Message bool
	MOTD    MOTD
}

// MOTD is the message of the day.
type MOTD struct {
	Files []string
	// Command prints something of the user's own, such as its jobs, within two
	// seconds; it runs as the user. Empty: nothing.
	Command []string
}

// Limit is a resource limit (setrlimit(2)).
type Limit struct {
	Resource   int
	Soft, Hard uint64
}
