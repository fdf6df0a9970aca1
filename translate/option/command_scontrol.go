package option

// Scontrol is the table of scontrol's options; its commands are in ScontrolVerbs.
var Scontrol = &CommandOptions{Name: "scontrol", Args: "COMMAND [ARGUMENTS]", Interspersed: true,
	Opening: "scontrol [<OPTION>] [<COMMAND>]\n    Valid <OPTION> values are:",
	Options: []*Option{
		{Name: "all", Short: 'a', Env: "SCONTROL_ALL", Help: "include hidden partitions and their jobs"},
		{Name: "details", Short: 'd', Help: "more details of each job"},
		{Name: "help", Short: 'h', Help: "print this help"},
		{Name: "hide", Help: "omit hidden partitions and their jobs (the default)"},
		{Name: "local", Env: "SCONTROL_LOCAL", Help: "this cluster only (the default)"},
		{Name: "oneliner", Short: 'o', Help: "print each record on one line"},
		{Name: "quiet", Short: 'Q', Help: "decrease verbosity"},
		{Name: "verbose", Short: 'v', Help: "increase verbosity"},
		{Name: "version", Short: 'V', Help: "print the version"},
		{Name: "usage", Help: "print a short usage message"},
		{Name: "clusters", Short: 'M', Aliases: []string{"cluster"}, Arg: RequiredArg, Meta: "NAMES",
			Env: "SLURM_CLUSTERS", Help: "the cluster"},
		{Name: "federation", Env: "SCONTROL_FEDERATION",
			Help: "all clusters of a federation; here the same as --local"},
		{Name: "sibling", Env: "SCONTROL_SIB", Help: "sibling jobs of a federation: jobs have none"},
		{Name: "uid", Short: 'u', Arg: RequiredArg, Meta: "USER", Status: Refused,
			Reason: "use the credentials of that user", Help: "act as another user"},
		{Name: "future", Short: 'F', Help: "include future nodes"},
	}}
