package option

// Sattach is the table of sattach's options.
var Sattach = &CommandOptions{Name: "sattach", Args: "<jobid.stepid>", Interspersed: true, Options: []*Option{
	{Name: "input-filter", Arg: RequiredArg, Meta: "TASK", Status: Warned,
		Reason: "the input belongs to the srun of the step", Help: "send input to one task only"},
	{Name: "output-filter", Arg: RequiredArg, Meta: "TASK", Help: "show the output of one task only"},
	{Name: "error-filter", Arg: RequiredArg, Meta: "TASK", Help: "show the error output of one task only"},
	{Name: "label", Short: 'l', Help: "prefix each line with the task number"},
	{Name: "layout", Help: "print only the layout of tasks on nodes"},
	{Name: "quiet", Short: 'Q', Help: "decrease verbosity"},
	{Name: "pty", Status: Refused, Reason: "the terminal of a step belongs to its srun", Help: "use a terminal"},
}, More: func() []*Option { return commonShort('h', 'u') }}

// Sbcast is the table of sbcast's options.
var Sbcast = &CommandOptions{Name: "sbcast", Args: "SOURCE DEST", Interspersed: true, Options: []*Option{
	{Name: "compress", Short: 'C', Arg: OptionalArg, Meta: "LIBRARY", Env: "SBCAST_COMPRESS",
		Help: "compress the file for transfer"},
	{Name: "exclude", Arg: RequiredArg, Meta: "PATHS", Env: "SBCAST_EXCLUDE",
		Help: "directories whose libraries are not sent; none: send all"},
	{Name: "force", Short: 'f', Env: "SBCAST_FORCE", Help: "overwrite an existing file"},
	{Name: "fanout", Short: 'F', Arg: RequiredArg, Meta: "N", Env: "SBCAST_FANOUT", Status: Warned,
		Reason: "the agents choose the fan-out", Help: "fan-out of the transfer"},
	{Name: "jobid", Short: 'j', Arg: RequiredArg, Meta: "ID", Help: "the job (default: the current one)"},
	{Name: "preserve", Short: 'p', Env: "SBCAST_PRESERVE", Help: "preserve the file's modification time"},
	{Name: "send-libs", Arg: OptionalArg, Meta: "yes|no", Env: "SBCAST_SEND_LIBS",
		Help: "send the program's shared libraries too"},
	{Name: "size", Short: 's', Arg: RequiredArg, Meta: "BYTES", Env: "SBCAST_SIZE", Status: Warned,
		Reason: "the block size is fixed", Help: "block size of the transfer"},
	{Name: "timeout", Short: 't', Arg: RequiredArg, Meta: "SECONDS", Env: "SBCAST_TIMEOUT", Status: Warned,
		Reason: "unresponsive nodes are detected without it", Help: "timeout of messages"},
}, More: common}

// Sstat is the table of sstat's options.
var Sstat = &CommandOptions{Name: "sstat", Interspersed: true, Terse: true,
	Opening: "sstat [<OPTION>] -j <job(.stepid)>\n    Valid <OPTION> values are:",
	Colon:   ":", Options: []*Option{
		{Name: "allsteps", Short: 'a', Help: "show all steps of a job, and its batch script"},
		{Name: "helpformat", Short: 'e', Help: "list the fields"},
		{Name: "jobs", Short: 'j', Arg: RequiredArg, Meta: "LIST", Help: "jobs or steps (12, 12.0, 12.batch)"},
		{Name: "noconvert", Help: "do not convert units (2048M, not 2G)"},
		{Name: "noheader", Short: 'n', Help: "no header line"},
		{Name: "format", Short: 'o', Aliases: []string{"fields"}, Arg: RequiredArg, Meta: "FIELDS",
			Help: "fields: NAME[%WIDTH],..."},
		{Name: "parsable", Short: 'p', Help: "end each field with |"},
		{Name: "parsable2", Short: 'P', Help: "separate fields with |"},
		{Name: "pidformat", Short: 'i', Help: "show the processes of each step on each node"},
	}, More: func() []*Option { return commonShort('h', 0) }}
