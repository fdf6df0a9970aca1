package option

// Squeue is the table of squeue's options.
var Squeue = &Set{Name: "squeue", Interspersed: true, Options: append([]*Option{
	{Name: "account", Short: 'A', Aliases: []string{"accounts"}, Arg: RequiredArg, Meta: "ACCOUNTS", Env: "SQUEUE_ACCOUNT", Help: "only jobs of these accounts"},
	{Name: "all", Short: 'a', Env: "SQUEUE_ALL", Help: "also jobs in hidden partitions"},
	{Name: "array", Short: 'r', Env: "SQUEUE_ARRAY", Help: "one line for each array task"},
	{Name: "array-unique", Env: "SQUEUE_ARRAY_UNIQUE", Help: "one line for each pending array task"},
	{Name: "noheader", Short: 'h', Help: "no line of headers"},
	{Name: "hide", Help: "no jobs in hidden partitions (the default)"},
	{Name: "iterate", Short: 'i', Arg: RequiredArg, Meta: "SECONDS", Help: "list again every SECONDS"},
	{Name: "jobs", Short: 'j', Aliases: []string{"job"}, Arg: RequiredArg, Meta: "IDS", Help: "only these jobs: 12, 12_3"},
	{Name: "long", Short: 'l', Help: "more columns"},
	{Name: "licenses", Short: 'L', Arg: RequiredArg, Meta: "NAMES", Env: "SQUEUE_LICENSES", Help: "only jobs that use these licenses"},
	{Name: "me", Help: "only jobs of the calling user"},
	{Name: "name", Short: 'n', Arg: RequiredArg, Meta: "NAMES", Env: "SQUEUE_NAMES", Help: "only jobs with these names"},
	{Name: "noconvert", Help: "leave units as they are (2048M, not 2G)"},
	{Name: "format", Short: 'o', Arg: RequiredArg, Meta: "FORMAT", Env: "SQUEUE_FORMAT", Help: "columns by letter: \"%.18i %.9P\""},
	{Name: "Format", Short: 'O', Arg: RequiredArg, Meta: "FIELDS", Env: "SQUEUE_FORMAT2", Help: "columns by name: JobID:10,Name,State"},
	{Name: "partition", Short: 'p', Aliases: []string{"partitions"}, Arg: RequiredArg, Meta: "NAMES", Env: "SQUEUE_PARTITION", Help: "only jobs in these partitions"},
	{Name: "priority", Short: 'P', Env: "SQUEUE_PRIORITY", Help: "a line for each partition that a pending job may run in"},
	{Name: "qos", Short: 'q', Arg: RequiredArg, Meta: "NAMES", Env: "SQUEUE_QOS", Help: "only jobs of these QOS"},
	{Name: "reservation", Short: 'R', Arg: RequiredArg, Meta: "NAME", Help: "only jobs in this reservation"},
	{Name: "sort", Short: 'S', Arg: RequiredArg, Meta: "LETTERS", Env: "SQUEUE_SORT", Help: "order by columns: P,t,-p"},
	{Name: "start", Help: "when pending jobs are expected to start"},
	{Name: "states", Short: 't', Aliases: []string{"state"}, Arg: RequiredArg, Meta: "STATES", Env: "SQUEUE_STATES", Help: "only jobs in these states, or \"all\""},
	{Name: "steps", Short: 's', Aliases: []string{"step"}, Arg: OptionalArg, Meta: "IDS", Help: "list job steps: 12.0, 12.batch"},
	{Name: "user", Short: 'u', Aliases: []string{"users"}, Arg: RequiredArg, Meta: "USERS", Env: "SQUEUE_USERS", Help: "only jobs of these users"},
	{Name: "nodelist", Short: 'w', Aliases: []string{"nodes", "node"}, Arg: RequiredArg, Meta: "NODES", Help: "only jobs on these nodes"},
	{Name: "clusters", Short: 'M', Aliases: []string{"cluster"}, Arg: RequiredArg, Meta: "NAMES", Env: "SLURM_CLUSTERS", Help: "this cluster by its name (KUBECONFIG chooses another)"},
	{Name: "federation", Env: "SQUEUE_FEDERATION", Help: "all clusters of a federation: there is none, so this one"},
	{Name: "local", Env: "SQUEUE_LOCAL", Help: "this cluster only (the default)"},
	{Name: "sibling", Env: "SQUEUE_SIBLING", Help: "sibling jobs of a federation: there are none"},
	{Name: "json", Arg: OptionalArg, Meta: "PARSER", Help: "as JSON, in the shape of 22.05 or of a data parser (v0.0.40)"},
	{Name: "yaml", Arg: OptionalArg, Meta: "PARSER", Help: "as YAML, likewise"},
	{Name: "tui", Help: "the queue in the terminal, live (see sview)"},
}, common()...)}

// Sview is the table of sview, which is squeue --tui: squeue's options and those
// of the terminal UI.
var Sview = &Set{Name: "sview", Interspersed: true, Options: append([]*Option{
	{Name: "read-only", Help: "change nothing"},
	{Name: "plain", Help: "lines instead of a screen, for screen readers"},
	{Name: "ascii", Help: "draw with ASCII only (as with a LANG that is not UTF-8)"},
	{Name: "no-mouse", Help: "leave the mouse to the terminal"},
	{Name: "theme", Arg: RequiredArg, Meta: "NAME", Help: "colours: dark, light, blue-orange (for the colour-blind), mono, or your own"},
	{Name: "view", Arg: RequiredArg, Meta: "NAME", Help: "begin with nodes, history, timeline, or \"job 12\""},
}, Squeue.Options...)}
