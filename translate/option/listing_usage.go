package option

// Sshare is the table of sshare's options.
var Sshare = &Set{Name: "sshare", Interspersed: true, Options: []*Option{
	{Name: "accounts", Short: 'A', Arg: RequiredArg, Meta: "NAMES", Help: "only these accounts"},
	{Name: "all", Short: 'a', Help: "all users"},
	{Name: "helpformat", Short: 'e', Help: "list the fields of --format"},
	{Name: "format", Short: 'o', Arg: RequiredArg, Meta: "FIELDS", Help: "fields: Account,User%20,..."},
	{Name: "help", Help: "print this text"},
	{Name: "long", Short: 'l', Help: "more fields"},
	{Name: "clusters", Short: 'M', Arg: RequiredArg, Meta: "NAMES", Status: Refused, Reason: "set KUBECONFIG to choose a cluster", Help: "another cluster"},
	{Name: "partition", Short: 'm', Help: "with the partition of associations"},
	{Name: "noheader", Short: 'n', Aliases: []string{"noheaders"}, Help: "no line of headers"},
	{Name: "no-header", Short: 'h', Help: "the same"},
	{Name: "parsable", Short: 'p', Help: "fields end in |"},
	{Name: "parsable2", Short: 'P', Help: "| between fields"},
	{Name: "users", Short: 'u', Aliases: []string{"uid"}, Arg: RequiredArg, Meta: "NAMES", Help: "only these users"},
	{Name: "Users", Short: 'U', Help: "users only, no accounts"},
	{Name: "usage", Help: "print the options in short"},
	{Name: "verbose", Short: 'v', Help: "say more"},
	{Name: "version", Short: 'V', Help: "print the version"},
}}

// Seff is the table of seff's options.
var Seff = &Set{Name: "seff", Args: "JOBID", Interspersed: true, Options: []*Option{
	{Name: "help", Short: 'h', Help: "print this text"},
	{Name: "verbose", Short: 'v', Help: "say more"},
	{Name: "debug", Short: 'd', Help: "say more"},
	{Name: "version", Short: 'V', Help: "print the version"},
}}

// Sreport is the table of sreport's options.
var Sreport = &Set{Name: "sreport", Args: "REPORT-TYPE REPORT [KEY=VALUE...]", Interspersed: true, Options: []*Option{
	{Name: "all_clusters", Short: 'a', Help: "all clusters (there is one)"},
	{Name: "federation", Status: Refused, Reason: noFederation, Help: "all clusters of a federation"},
	{Name: "help", Short: 'h', Help: "print this text"},
	{Name: "local", Help: "this cluster only (the default)"},
	{Name: "cluster", Short: 'M', Arg: RequiredArg, Meta: "NAMES", Status: Refused, Reason: "set KUBECONFIG to choose a cluster", Help: "another cluster"},
	{Name: "noheader", Short: 'n', Help: "no headers"},
	{Name: "parsable", Short: 'p', Help: "fields end in |"},
	{Name: "parsable2", Short: 'P', Help: "| between fields"},
	{Name: "quiet", Short: 'Q', Help: "print no messages"},
	{Name: "time", Short: 't', Arg: RequiredArg, Meta: "UNIT", Help: "Second, Minute, Hour, Percent, SecPer, MinPer or HourPer"},
	{Name: "tres", Short: 'T', Arg: RequiredArg, Meta: "TRES", Env: "SREPORT_TRES", Help: "what is counted: cpu (the default), mem, gres/gpu, ..."},
	{Name: "usage", Help: "print the options in short"},
	{Name: "verbose", Short: 'v', Help: "say more"},
	{Name: "version", Short: 'V', Help: "print the version"},
}}
