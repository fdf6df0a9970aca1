package option

// Sinfo is the table of sinfo's options.
var Sinfo = &CommandOptions{Name: "sinfo", Interspersed: true, Options: append([]*Option{
	{Name: "all", Short: 'a', Env: "SINFO_ALL", Help: "include hidden partitions"},
	{Name: "dead", Short: 'd', Help: "only nodes that do not respond"},
	{Name: "exact", Short: 'e', Help: "do not group nodes that differ"},
	{Name: "noheader", Short: 'h', Help: "no header line"},
	{Name: "hide", Help: "no hidden partitions (the default)"},
	{Name: "iterate", Short: 'i', Arg: RequiredArg, Meta: "SECONDS", Help: "repeat the list every SECONDS"},
	{Name: "long", Short: 'l', Help: "more columns"},
	{Name: "nodes", Short: 'n', Arg: RequiredArg, Meta: "NODES", Help: "only these nodes"},
	{Name: "noconvert", Help: "do not convert units"},
	{Name: "Node", Short: 'N', Help: "one line for each node and partition"},
	{Name: "format", Short: 'o', Arg: RequiredArg, Meta: "FORMAT", Env: "SINFO_FORMAT", Help: "columns by letter: \"%9P %.5a\""},
	{Name: "Format", Short: 'O', Arg: RequiredArg, Meta: "FIELDS", Env: "SINFO_FORMAT2", Help: "columns by name: NodeList,StateCompact"},
	{Name: "partition", Short: 'p', Arg: RequiredArg, Meta: "NAMES", Env: "SINFO_PARTITION", Help: "only these partitions"},
	{Name: "responding", Short: 'r', Help: "only nodes that respond"},
	{Name: "list-reasons", Short: 'R', Help: "list the reasons why nodes are down or drained"},
	{Name: "summarize", Short: 's', Help: "one line for each partition"},
	{Name: "sort", Short: 'S', Arg: RequiredArg, Meta: "LETTERS", Env: "SINFO_SORT", Help: "sort by columns"},
	{Name: "states", Short: 't', Arg: RequiredArg, Meta: "STATES", Help: "only nodes in these states"},
	{Name: "reservation", Short: 'T', Help: "list reservations"},
	{Name: "clusters", Short: 'M', Arg: RequiredArg, Meta: "NAMES", Env: "SLURM_CLUSTERS", Help: "name of this cluster (KUBECONFIG selects another)"},
	{Name: "federation", Env: "SINFO_FEDERATION", Help: "all clusters of a federation; here the same as --local"},
	{Name: "local", Env: "SINFO_LOCAL", Help: "this cluster only (the default)"},
	{Name: "json", Arg: OptionalArg, Meta: "PARSER", Help: "print JSON of 22.05 or of a data parser (v0.0.40)"},
	{Name: "yaml", Arg: OptionalArg, Meta: "PARSER", Help: "print YAML of 22.05 or of a data parser (v0.0.40)"},
}, common()...)}
