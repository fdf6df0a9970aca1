package option

// Scrontab is the table of scrontab's options.
var Scrontab = &CommandOptions{Name: "scrontab", Args: "[FILE|-]", Interspersed: true, Options: []*Option{
	{Name: "edit", Short: 'e', Help: "edit the crontab with $VISUAL or $EDITOR"},
	{Name: "list", Short: 'l', Help: "print the crontab"},
	{Name: "remove", Short: 'r', Help: "remove the crontab and cancel its jobs"},
	{Name: "user", Short: 'u', Arg: RequiredArg, Meta: "USER", Status: Refused,
		Reason: "use the credentials of that user", Help: "another user's crontab"},
	{Name: "help", Help: "print this help"},
	{Name: "usage", Help: "print a short usage message"},
	{Name: "verbose", Short: 'v', Help: "increase verbosity"},
	{Name: "version", Short: 'V', Help: "print the version"},
}}

// Strigger is the table of strigger's options. The command refuses --set.
var Strigger = &CommandOptions{Name: "strigger", Args: "--set|--get|--clear", Interspersed: true,
	Options: []*Option{
		{Name: "set", Help: "create a trigger (not supported)"},
		{Name: "get", Help: "list triggers (there are none)"},
		{Name: "clear", Help: "delete a trigger (there are none)"},
	}, More: func() []*Option {
		return append(triggers(), []*Option{
			{Name: "help", Help: "print this help"},
			{Name: "usage", Help: "print a short usage message"},
			{Name: "version", Short: 'V', Help: "print the version"},
		}...)
	}}

// triggerLetters are the short names of the options of a trigger.
var triggerLetters = map[string]byte{
	"primary_slurmctld_failure": 'a', "primary_slurmctld_resumed_operation": 'A',
	"primary_slurmctld_resumed_control": 'b', "backup_slurmctld_failure": 'B',
	"backup_slurmctld_resumed_operation": 'c', "backup_slurmctld_assumed_control": 'C', "down": 'd', "drained": 'D',
	"primary_slurmctld_acct_buffer_full": 'e',
	"fail":                               'F', "fini": 'f', "primary_slurmdbd_failure": 'g',
	"primary_slurmdbd_resumed_operation": 'G',
	"primary_database_failure":           'h',
	"primary_database_resumed_operation": 'H', "id": 'i', "idle": 'I', "jobid": 'j', "clusters": 'M', "node": 'n',
	"noheader": 'N', "offset": 'o', "program": 'p',
	"quiet": 'Q', "reconfig": 'r', "time_limit": 't', "up": 'u', "verbose": 'v',
}

// triggers returns the options about the events and details of a trigger.
func triggers() []*Option {
	var out []*Option
	for _, name := range []string{"burst_buffer", "front_end", "primary_slurmctld_failure",
		"primary_slurmctld_resumed_operation", "primary_slurmctld_resumed_control",
		"backup_slurmctld_failure", "backup_slurmctld_resumed_operation", "backup_slurmctld_assumed_control", "down",
		"drained", "primary_slurmctld_acct_buffer_full", "fail", "fini",
		"primary_slurmdbd_failure", "primary_slurmdbd_resumed_operation", "primary_database_failure",
		"primary_database_resumed_operation", "idle", "noheader", "quiet", "reconfig", "time_limit", "up",
		"verbose"} {
		out = append(out, &Option{Name: name, Short: triggerLetters[name], Help: "event or detail of a trigger"})
	}
	for _, name := range []string{"flags", "id", "jobid", "clusters", "node", "offset", "program", "user"} {
		arg := RequiredArg
		if name == "node" {
			arg = OptionalArg
		}
		out = append(out, &Option{Name: name, Short: triggerLetters[name], Arg: arg, Meta: "VALUE",
			Help: "detail of a trigger"})
	}
	return out
}
