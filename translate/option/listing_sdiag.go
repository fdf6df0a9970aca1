package option

// Sdiag is the table of sdiag's options.
var Sdiag = &Set{Name: "sdiag", Interspersed: true, Options: append([]*Option{
	{Name: "all", Short: 'a', Help: "every statistic (the default)"},
	{Name: "sort-by-id", Short: 'i', Help: "requests by their names"},
	{Name: "cluster", Short: 'M', Aliases: []string{"clusters"}, Arg: RequiredArg, Meta: "NAME", Env: "SLURM_CLUSTERS", Help: "this cluster by its name (KUBECONFIG chooses another)"},
	{Name: "reset", Short: 'r', Help: "count anew from now on (operators)"},
	{Name: "sort-by-time", Short: 't', Help: "requests by the time that they took together"},
	{Name: "sort-by-time2", Short: 'T', Help: "requests by the time that they took on average"},
}, commonShort('h', 0)...)}
