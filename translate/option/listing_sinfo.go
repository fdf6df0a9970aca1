package option

// Sinfo is the table of sinfo's options.
var Sinfo = &Set{Name: "sinfo", Interspersed: true, Options: append([]*Option{
	{Name: "all", Short: 'a', Env: "SINFO_ALL", Help: "also hidden partitions"},
	{Name: "dead", Short: 'd', Help: "only nodes that do not respond"},
	{Name: "exact", Short: 'e', Help: "never group nodes that differ"},
	{Name: "noheader", Short: 'h', Help: "no line of headers"},
	{Name: "hide", Help: "no hidden partitions (the default)"},
	{Name: "iterate", Short: 'i', Arg: RequiredArg, Meta: "SECONDS", Help: "list again every SECONDS"},
	{Name: "long", Short: 'l', Help: "more columns"},
	{Name: "nodes", Short: 'n', Arg: RequiredArg, Meta: "NODES", Help: "only these nodes"},
	{Name: "noconvert", Help: "leave units as they are"},
	{Name: "Node", Short: 'N', Help: "one line for each node and partition"},
	{Name: "format", Short: 'o', Arg: RequiredArg, Meta: "FORMAT", Env: "SINFO_FORMAT", Help: "columns by letter: \"%9P %.5a\""},
	{Name: "Format", Short: 'O', Arg: RequiredArg, Meta: "FIELDS", Env: "SINFO_FORMAT2", Help: "columns by name: NodeList,StateCompact"},
	{Name: "partition", Short: 'p', Arg: RequiredArg, Meta: "NAMES", Env: "SINFO_PARTITION", Help: "only these partitions"},
	{Name: "responding", Short: 'r', Help: "only nodes that respond"},
	{Name: "list-reasons", Short: 'R', Help: "why nodes are down or drained"},
	{Name: "summarize", Short: 's', Help: "one line for each partition"},
	{Name: "sort", Short: 'S', Arg: RequiredArg, Meta: "LETTERS", Env: "SINFO_SORT", Help: "order by columns"},
	{Name: "states", Short: 't', Arg: RequiredArg, Meta: "STATES", Help: "only nodes in these states"},
	{Name: "reservation", Short: 'T', Help: "list reservations"},
	{Name: "clusters", Short: 'M', Arg: RequiredArg, Meta: "NAMES", Env: "SLURM_CLUSTERS", Help: "this cluster by its name (KUBECONFIG chooses another)"},
	{Name: "federation", Env: "SINFO_FEDERATION", Help: "all clusters of a federation: there is none, so this one"},
	{Name: "local", Env: "SINFO_LOCAL", Help: "this cluster only (the default)"},
	{Name: "json", Arg: OptionalArg, Meta: "PARSER", Help: "as JSON, in the shape of 22.05 or of a data parser (v0.0.40)"},
	{Name: "yaml", Arg: OptionalArg, Meta: "PARSER", Help: "as YAML, likewise"},
}, common()...)}
