package option

// Sshare is the table of sshare's options.
var Sshare = &CommandOptions{Name: "sshare", Interspersed: true,
	Opening: "Usage:  sshare [OPTION]\n  Valid OPTIONs are:",
	Joint:   " or ", Options: []*Option{
		{Name: "accounts", Short: 'A', Arg: RequiredArg, Meta: "NAMES", Help: "only these accounts"},
		{Name: "all", Short: 'a', Help: "all users"},
		{Name: "helpformat", Short: 'e', Help: "list the fields of --format"},
		{Name: "format", Short: 'o', Arg: RequiredArg, Meta: "FIELDS", Help: "fields: Account,User%20,..."},
		{Name: "help", Help: "print this help"},
		{Name: "long", Short: 'l', Help: "more fields"},
		{Name: "clusters", Short: 'M', Arg: RequiredArg, Meta: "NAMES", Help: "these clusters"},
		{Name: "partition", Short: 'm', Help: "show the partition of associations"},
		{Name: "noheader", Short: 'n', Help: "no header line"},
		{Name: "no-header", Short: 'h', LetterOnly: true, Help: "no header line"},
		{Name: "parsable", Short: 'p', Help: "end each field with |"},
		{Name: "parsable2", Short: 'P', Help: "separate fields with |"},
		{Name: "users", Short: 'u', Arg: RequiredArg, Meta: "NAMES",
			Help: "only these users"},
		{Name: "Users", Short: 'U', Help: "only users, no accounts"},
		{Name: "usage", Help: "print a short usage message"},
		{Name: "verbose", Short: 'v', Help: "increase verbosity"},
		{Name: "version", Short: 'V', Help: "print the version"},
	}}

// Seff is the table of seff's options.
var Seff = &CommandOptions{Name: "seff", Args: "JOBID", Interspersed: true, Options: []*Option{
	{Name: "help", Short: 'h', Help: "print this help"},
	{Name: "verbose", Short: 'v', Help: "increase verbosity"},
	{Name: "debug", Short: 'd', Help: "increase verbosity"},
	{Name: "version", Short: 'V', Help: "print the version"},
}}

// Sreport is the table of sreport's options.
var Sreport = &CommandOptions{Name: "sreport", Args: "REPORT-TYPE REPORT [KEY=VALUE...]", Interspersed: true,
	Opening: "sreport [<OPTION>] [<COMMAND>]\n    Valid <OPTION> values are:",
	Joint:   " or ", Colon: ":",
	Options: []*Option{
		{Name: "all_clusters", Short: 'a', Help: "all clusters; there is one"},
		{Name: "federation", Help: "all clusters of the federation; a report is of one cluster"},
		{Name: "help", Short: 'h', Help: "print this help"},
		{Name: "local", Help: "this cluster only (the default)"},
		{Name: "cluster", Short: 'M', Arg: RequiredArg, Meta: "NAMES",
			Help: "clusters to report; there is one"},
		{Name: "noheader", Short: 'n', Help: "no header line"},
		{Name: "parsable", Short: 'p', Help: "end each field with |"},
		{Name: "parsable2", Short: 'P', Help: "separate fields with |"},
		{Name: "quiet", Short: 'Q', Help: "print no messages"},
		{Name: "time", Short: 't', LetterOnly: true, Arg: RequiredArg, Meta: "UNIT",
			Help: "Second, Minute, Hour, Percent, SecPer, MinPer or HourPer"},
		{Name: "tres", Short: 'T', Arg: RequiredArg, Meta: "TRES", Env: "SREPORT_TRES",
			Help: "resources to report: cpu (the default), mem, gres/gpu, ..."},
		{Name: "usage", Help: "print a short usage message"},
		{Name: "verbose", Short: 'v', Help: "increase verbosity"},
		{Name: "version", Short: 'V', Help: "print the version"},
	}}
