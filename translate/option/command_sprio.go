package option

// Sprio is the table of sprio's options.
var Sprio = &CommandOptions{Name: "sprio", Interspersed: true, Options: []*Option{
	{Name: "federation", Help: "all clusters of the federation, if this cluster is in one"},
	{Name: "noheader", Short: 'h', Help: "no header line"},
	{Name: "jobs", Short: 'j', Aliases: []string{"job"}, Arg: OptionalArg, Meta: "IDS", Help: "only these jobs"},
	{Name: "local", Help: "this cluster only (the default)"},
	{Name: "long", Short: 'l', Help: "more columns"},
	{Name: "cluster", Short: 'M', Aliases: []string{"clusters"}, Arg: RequiredArg, Meta: "NAMES",
		Env: "SLURM_CLUSTERS", Help: "these clusters"},
	{Name: "norm", Short: 'n', Help: "show normalized factors"},
	{Name: "format", Short: 'o', Arg: RequiredArg, Meta: "FORMAT", Env: "SPRIO_FORMAT",
		Help: "columns by letter: \"%.15i %.10Y\""},
	{Name: "partition", Short: 'p', Arg: RequiredArg, Meta: "NAMES", Help: "only jobs in these partitions"},
	{Name: "sibling", Help: "the same as --federation: jobs have no siblings on other clusters"},
	{Name: "sort", Short: 'S', Arg: RequiredArg, Meta: "LETTERS", Help: "sort by columns: -y,i"},
	{Name: "user", Short: 'u', Aliases: []string{"users"}, Arg: RequiredArg, Meta: "USERS",
		Help: "only jobs of these users"},
	{Name: "weights", Short: 'w', Help: "show the weights of the factors"},
}, More: common}
