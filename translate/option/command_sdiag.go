package option

// Sdiag is the table of sdiag's options.
var Sdiag = &CommandOptions{Name: "sdiag", Interspersed: true, Options: []*Option{
	{Name: "all", Short: 'a', Help: "every statistic (the default)"},
	{Name: "sort-by-id", Short: 'i', Help: "sort requests by name"},
	{Name: "cluster", Short: 'M', Aliases: []string{"clusters"}, Arg: RequiredArg, Meta: "NAME",
		Env: "SLURM_CLUSTERS", Help: "the cluster"},
	{Name: "reset", Short: 'r', Help: "reset the counters (operators only)"},
	{Name: "sort-by-time", Short: 't', Help: "sort requests by total time"},
	{Name: "sort-by-time2", Short: 'T', Help: "sort requests by average time"},
}, More: func() []*Option { return commonShort('h', 0)[1:] }} // there is no --verbose
