package option

const sacctmgrArgs = "[add|modify|delete|show|dump|load] ENTITY [KEY=VALUE...]"

// Sacctmgr is the table of sacctmgr's options.
var Sacctmgr = &CommandOptions{Name: "sacctmgr", Args: sacctmgrArgs, Interspersed: true,
	Opening: "sacctmgr [<OPTION>] [<COMMAND>]\n    Valid <OPTION> values are:",
	Joint:   " or ", Colon: ":", Options: []*Option{
		{Name: "associations", Short: 's', Help: "list the associations of users or accounts too"},
		{Name: "help", Short: 'h', Help: "print this help"},
		{Name: "immediate", Short: 'i', Help: "make changes without confirmation"},
		{Name: "noheader", Short: 'n', Help: "no header line"},
		{Name: "oneliner", Short: 'o', Help: "print each record on one line (the default)"},
		{Name: "parsable", Short: 'p', Help: "end each field with |"},
		{Name: "parsable2", Short: 'P', Help: "separate fields with |"},
		{Name: "quiet", Short: 'Q', Help: "print no messages"},
		{Name: "readonly", Short: 'r', Help: "make no changes"},
		{Name: "usage", Help: "print a short usage message"},
		{Name: "verbose", Short: 'v', Help: "increase verbosity"},
		{Name: "version", Short: 'V', Help: "print the version"},
	}}
