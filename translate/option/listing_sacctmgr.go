package option

// Sacctmgr is the table of sacctmgr's options.
var Sacctmgr = &Set{Name: "sacctmgr", Args: "[add|modify|delete|show|dump|load] ENTITY [KEY=VALUE...]", Interspersed: true, Options: []*Option{
	{Name: "associations", Short: 's', Help: "with a list of users or accounts: their associations"},
	{Name: "help", Short: 'h', Help: "print this text"},
	{Name: "immediate", Short: 'i', Help: "make changes without asking"},
	{Name: "noheader", Short: 'n', Help: "no line of headers"},
	{Name: "oneliner", Short: 'o', Help: "one line for each record (the default)"},
	{Name: "parsable", Short: 'p', Help: "fields end in |"},
	{Name: "parsable2", Short: 'P', Help: "| between fields"},
	{Name: "quiet", Short: 'Q', Help: "print no messages"},
	{Name: "readonly", Short: 'r', Help: "make no changes"},
	{Name: "usage", Help: "print the options in short"},
	{Name: "verbose", Short: 'v', Help: "say more"},
	{Name: "version", Short: 'V', Help: "print the version"},
}}
