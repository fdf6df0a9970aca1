package option

// Slurmrestd is the table of slurmrestd's options, in the order of its manual page.
var Slurmrestd = &CommandOptions{Name: "slurmrestd", Args: "[[HOST]:PORT|unix:PATH]...", Options: []*Option{
	{Name: "auth", Short: 'a', LetterOnly: true, Arg: RequiredArg, Meta: "TYPES", Env: "SLURMRESTD_AUTH_TYPES",
		Help: "accepted types of authentication: rest_auth/local, rest_auth/jwt, or list (default both)"},
	{Name: "config", Short: 'f', LetterOnly: true, Arg: RequiredArg, Meta: "FILE",
		Help: "kubeconfig of the cluster"},
	{Name: "group", Short: 'g', LetterOnly: true, Arg: RequiredArg, Meta: "GROUP", Status: Refused,
		Reason: "it needs no privileges: start it as the user that it is to be", Help: "group of the process"},
	{Name: "plugins", Short: 's', LetterOnly: true, Arg: RequiredArg, Meta: "PLUGINS",
		Env: "SLURMRESTD_OPENAPI_PLUGINS", Help: "versions of the API to serve, or list (default all)"},
	{Name: "threads", Short: 't', LetterOnly: true, Arg: RequiredArg, Meta: "N",
		Help: "requests that are processed at the same time (default 20)"},
	{Name: "user", Short: 'u', LetterOnly: true, Arg: RequiredArg, Meta: "USER", Status: Refused,
		Reason: "it needs no privileges: start it as the user that it is to be", Help: "user of the process"},
	{Name: "verbose", Short: 'v', LetterOnly: true, Help: "write a line to standard error for each request"},
	{Name: "help", Short: 'h', Help: "print this help"},
	{Name: "version", Short: 'V', Help: "print the version"},
}}
