package option

// Scontrol is the table of scontrol's options; its commands are words.
var Scontrol = &Set{Name: "scontrol", Args: "COMMAND [ARGUMENTS]", Options: []*Option{
	{Name: "all", Short: 'a', Env: "SCONTROL_ALL", Help: "also hidden partitions and their jobs"},
	{Name: "details", Short: 'd', Help: "show more of each job"},
	{Name: "help", Short: 'h', Help: "print this text"},
	{Name: "hide", Help: "nothing of hidden partitions (the default)"},
	{Name: "local", Env: "SCONTROL_LOCAL", Help: "this cluster only (the default)"},
	{Name: "oneliner", Short: 'o', Help: "one line for each record"},
	{Name: "quiet", Short: 'Q', Help: "say less"},
	{Name: "verbose", Short: 'v', Help: "say more"},
	{Name: "version", Short: 'V', Help: "print the version"},
	{Name: "usage", Help: "print the options in short"},
	{Name: "clusters", Short: 'M', Aliases: []string{"cluster"}, Arg: RequiredArg, Meta: "NAMES", Env: "SLURM_CLUSTERS", Help: "this cluster by its name (KUBECONFIG chooses another)"},
	{Name: "federation", Env: "SCONTROL_FEDERATION", Help: "all clusters of a federation: there is none, so this one"},
	{Name: "sibling", Env: "SCONTROL_SIB", Help: "sibling jobs of a federation: there are none"},
	{Name: "uid", Short: 'u', Arg: RequiredArg, Meta: "USER", Status: Refused, Reason: "use that user's credential", Help: "act as another user"},
	{Name: "future", Short: 'F', Help: "also nodes that are not there yet"},
}}
