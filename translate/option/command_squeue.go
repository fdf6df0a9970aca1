package option

// Squeue is the table of squeue's options.
var Squeue = &CommandOptions{Name: "squeue", Interspersed: true, Options: append([]*Option{
	{Name: "account", Short: 'A', Aliases: []string{"accounts"}, Arg: RequiredArg, Meta: "ACCOUNTS", Env: "SQUEUE_ACCOUNT", Help: "only jobs of these accounts"},
	{Name: "all", Short: 'a', Env: "SQUEUE_ALL", Help: "include jobs in hidden partitions"},
	{Name: "array", Short: 'r', Env: "SQUEUE_ARRAY", Help: "one line for each array task"},
	{Name: "array-unique", Env: "SQUEUE_ARRAY_UNIQUE", Help: "one line for each pending array task"},
	{Name: "noheader", Short: 'h', Help: "no header line"},
	{Name: "hide", Help: "no jobs in hidden partitions (the default)"},
	{Name: "iterate", Short: 'i', Arg: RequiredArg, Meta: "SECONDS", Help: "repeat the list every SECONDS"},
	{Name: "jobs", Short: 'j', Aliases: []string{"job"}, Arg: RequiredArg, Meta: "IDS", Help: "only these jobs: 12, 12_3"},
	{Name: "long", Short: 'l', Help: "more columns"},
	{Name: "licenses", Short: 'L', Arg: RequiredArg, Meta: "NAMES", Env: "SQUEUE_LICENSES", Help: "only jobs that use these licenses"},
	{Name: "me", Help: "only jobs of the calling user"},
	{Name: "name", Short: 'n', Arg: RequiredArg, Meta: "NAMES", Env: "SQUEUE_NAMES", Help: "only jobs with these names"},
	{Name: "noconvert", Help: "do not convert units (2048M, not 2G)"},
	{Name: "format", Short: 'o', Arg: RequiredArg, Meta: "FORMAT", Env: "SQUEUE_FORMAT", Help: "columns by letter: \"%.18i %.9P\""},
	{Name: "Format", Short: 'O', Arg: RequiredArg, Meta: "FIELDS", Env: "SQUEUE_FORMAT2", Help: "columns by name: JobID:10,Name,State"},
	{Name: "partition", Short: 'p', Aliases: []string{"partitions"}, Arg: RequiredArg, Meta: "NAMES", Env: "SQUEUE_PARTITION", Help: "only jobs in these partitions"},
	{Name: "priority", Short: 'P', Env: "SQUEUE_PRIORITY", Help: "list pending jobs once for each of their partitions"},
	{Name: "qos", Short: 'q', Arg: RequiredArg, Meta: "NAMES", Env: "SQUEUE_QOS", Help: "only jobs of these QOS"},
	{Name: "reservation", Short: 'R', Arg: RequiredArg, Meta: "NAME", Help: "only jobs in this reservation"},
	{Name: "sort", Short: 'S', Arg: RequiredArg, Meta: "LETTERS", Env: "SQUEUE_SORT", Help: "sort by columns: P,t,-p"},
	{Name: "start", Help: "show the expected start times of pending jobs"},
	{Name: "states", Short: 't', Aliases: []string{"state"}, Arg: RequiredArg, Meta: "STATES", Env: "SQUEUE_STATES", Help: "only jobs in these states, or \"all\""},
	{Name: "steps", Short: 's', Aliases: []string{"step"}, Arg: OptionalArg, Meta: "IDS", Help: "list job steps: 12.0, 12.batch"},
	{Name: "user", Short: 'u', Aliases: []string{"users"}, Arg: RequiredArg, Meta: "USERS", Env: "SQUEUE_USERS", Help: "only jobs of these users"},
	{Name: "nodelist", Short: 'w', Aliases: []string{"nodes", "node"}, Arg: RequiredArg, Meta: "NODES", Help: "only jobs on these nodes"},
	{Name: "clusters", Short: 'M', Aliases: []string{"cluster"}, Arg: RequiredArg, Meta: "NAMES", Env: "SLURM_CLUSTERS", Help: "name of this cluster (KUBECONFIG selects another)"},
	{Name: "federation", Env: "SQUEUE_FEDERATION", Help: "all clusters of a federation; here the same as --local"},
	{Name: "local", Env: "SQUEUE_LOCAL", Help: "this cluster only (the default)"},
	{Name: "sibling", Env: "SQUEUE_SIBLING", Help: "sibling jobs of a federation; there are none"},
	{Name: "json", Arg: OptionalArg, Meta: "PARSER", Help: "print JSON of 22.05 or of a data parser (v0.0.40)"},
	{Name: "yaml", Arg: OptionalArg, Meta: "PARSER", Help: "print YAML of 22.05 or of a data parser (v0.0.40)"},
	{Name: "tui", Help: "show the live queue in the terminal (see sview)"},
}, common()...)}

// Sview is the table of sview, which is the same as squeue --tui: the options of
// squeue and those of the terminal UI.
var Sview = &CommandOptions{Name: "sview", Interspersed: true, Options: append([]*Option{
	{Name: "read-only", Help: "refuse all changes"},
	{Name: "plain", Help: "print lines in place of a screen, for screen readers"},
	{Name: "ascii", Help: "draw with ASCII characters only (default if LANG is not UTF-8)"},
	{Name: "no-mouse", Help: "do not capture the mouse"},
	{Name: "theme", Arg: RequiredArg, Meta: "NAME", Help: "colours: dark, light, blue-orange (for the colour-blind), mono, or a custom one"},
	{Name: "view", Arg: RequiredArg, Meta: "NAME", Help: "page to open first: nodes, history, timeline, or \"job 12\""},
}, Squeue.Options...)}
