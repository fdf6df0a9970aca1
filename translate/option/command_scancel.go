package option

// Scancel is the table of scancel's options.
var Scancel = &CommandOptions{Name: "scancel", Args: "[job_id[_array_id][.step_id]]...", Interspersed: true, Options: append([]*Option{
	{Name: "account", Short: 'A', Arg: RequiredArg, Meta: "NAME", Env: "SCANCEL_ACCOUNT", Help: "only jobs of this account"},
	{Name: "batch", Short: 'b', Env: "SCANCEL_BATCH", Help: "signal the batch shell only"},
	{Name: "ctld", Env: "SCANCEL_CTLD", Help: "signal through the controller, which is always the case"},
	{Name: "full", Short: 'f', Env: "SCANCEL_FULL", Help: "signal the batch shell and all steps"},
	{Name: "hurry", Short: 'H', Env: "SCANCEL_HURRY", Help: "skip the stage-out of burst buffers; there are none"},
	{Name: "interactive", Short: 'i', Env: "SCANCEL_INTERACTIVE", Help: "ask for confirmation of each job"},
	{Name: "me", Help: "only jobs of the calling user"},
	{Name: "name", Short: 'n', Aliases: []string{"jobname"}, Arg: RequiredArg, Meta: "NAME", Env: "SCANCEL_NAME", Help: "only jobs with this name"},
	{Name: "partition", Short: 'p', Arg: RequiredArg, Meta: "NAME", Env: "SCANCEL_PARTITION", Help: "only jobs in this partition"},
	{Name: "quiet", Short: 'Q', Help: "decrease verbosity"},
	{Name: "qos", Short: 'q', Arg: RequiredArg, Meta: "NAME", Env: "SCANCEL_QOS", Help: "only jobs of this QOS"},
	{Name: "reservation", Short: 'R', Arg: RequiredArg, Meta: "NAME", Env: "SCANCEL_RESERVATION", Help: "only jobs in this reservation"},
	{Name: "signal", Short: 's', Arg: RequiredArg, Meta: "NAME|NUMBER", Help: "signal to send in place of cancelling the job"},
	{Name: "state", Short: 't', Aliases: []string{"states"}, Arg: RequiredArg, Meta: "STATES", Env: "SCANCEL_STATE", Help: "only PENDING, RUNNING or SUSPENDED jobs"},
	{Name: "user", Short: 'u', Arg: RequiredArg, Meta: "NAME", Env: "SCANCEL_USER", Help: "only jobs of this user"},
	{Name: "nodelist", Short: 'w', Arg: RequiredArg, Meta: "NODES", Help: "only jobs on these nodes"},
	{Name: "wckey", Arg: RequiredArg, Meta: "KEY", Env: "SCANCEL_WCKEY", Help: "only jobs with this wckey"},
	{Name: "clusters", Short: 'M', Arg: RequiredArg, Meta: "NAMES", Env: "SLURM_CLUSTERS", Help: "name of this cluster (KUBECONFIG selects another)"},
	{Name: "sibling", Arg: RequiredArg, Meta: "NAME", Status: Refused, Reason: noFederation, Help: "a sibling job of a federation"},
}, verboseBy("SCANCEL_VERBOSE")...)}
