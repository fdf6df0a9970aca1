package option

// Sattach is the table of sattach's options.
var Sattach = &Set{Name: "sattach", Args: "<jobid.stepid>", Interspersed: true, Options: append([]*Option{
	{Name: "input-filter", Arg: RequiredArg, Meta: "TASK", Status: Warned, Reason: "the input stays with the srun of the step", Help: "send the input to one task only"},
	{Name: "output-filter", Arg: RequiredArg, Meta: "TASK", Help: "show the output of one task only"},
	{Name: "error-filter", Arg: RequiredArg, Meta: "TASK", Help: "show the error output of one task only"},
	{Name: "label", Short: 'l', Help: "put the task's number ahead of each line"},
	{Name: "layout", Help: "show where the tasks are, and nothing else"},
	{Name: "quiet", Short: 'Q', Help: "say less"},
	{Name: "pty", Status: Refused, Reason: "the terminal of a step belongs to its srun", Help: "use a terminal"},
}, commonShort('h', 'u')...)}

// Sbcast is the table of sbcast's options.
var Sbcast = &Set{Name: "sbcast", Args: "SOURCE DEST", Interspersed: true, Options: append([]*Option{
	{Name: "compress", Short: 'C', Arg: OptionalArg, Meta: "LIBRARY", Env: "SBCAST_COMPRESS", Help: "compress what is sent"},
	{Name: "exclude", Arg: RequiredArg, Meta: "PATHS", Env: "SBCAST_EXCLUDE", Help: "folders whose libraries are not sent; none: send all"},
	{Name: "force", Short: 'f', Env: "SBCAST_FORCE", Help: "replace a file of that name"},
	{Name: "fanout", Short: 'F', Arg: RequiredArg, Meta: "N", Env: "SBCAST_FANOUT", Status: Warned, Reason: "the agents fan out as a tree of their own", Help: "width of the tree"},
	{Name: "jobid", Short: 'j', Arg: RequiredArg, Meta: "ID", Help: "the job (else the one that sbcast is in)"},
	{Name: "preserve", Short: 'p', Env: "SBCAST_PRESERVE", Help: "keep the file's time"},
	{Name: "send-libs", Arg: OptionalArg, Meta: "yes|no", Env: "SBCAST_SEND_LIBS", Help: "send the program's libraries too"},
	{Name: "size", Short: 's', Arg: RequiredArg, Meta: "BYTES", Env: "SBCAST_SIZE", Status: Warned, Reason: "pieces have a size of their own", Help: "size of a piece"},
	{Name: "timeout", Short: 't', Arg: RequiredArg, Meta: "SECONDS", Env: "SBCAST_TIMEOUT", Status: Warned, Reason: "a node that does not answer is noticed by itself", Help: "time-out of messages"},
}, common()...)}

// Sstat is the table of sstat's options.
var Sstat = &Set{Name: "sstat", Terse: true, Args: "", Options: append([]*Option{
	{Name: "allsteps", Short: 'a', Help: "show every step of a job, and its batch script"},
	{Name: "helpformat", Short: 'e', Help: "list the fields"},
	{Name: "jobs", Short: 'j', Arg: RequiredArg, Meta: "LIST", Help: "the jobs, or steps (12, 12.0, 12.batch)"},
	{Name: "noconvert", Help: "leave units as they are (2048M, not 2G)"},
	{Name: "noheader", Short: 'n', Help: "no header"},
	{Name: "format", Short: 'o', Aliases: []string{"fields"}, Arg: RequiredArg, Meta: "FIELDS", Env: "SSTAT_FORMAT", Help: "the fields, NAME%WIDTH each"},
	{Name: "parsable", Short: 'p', Help: "fields end in |"},
	{Name: "parsable2", Short: 'P', Help: "| between fields"},
	{Name: "pidformat", Short: 'i', Help: "show the processes of each step and node"},
}, commonShort('h', 0)...)}

// Warnings name what was given and is not done, one line each.
func (s *Set) Warnings(v *Values) []string {
	var list []string
	for _, o := range s.Options {
		if o.Status == Warned && v.Has(o.Name) {
			list = append(list, "--"+o.Name+" has no effect: "+o.Reason)
		}
	}
	return list
}
