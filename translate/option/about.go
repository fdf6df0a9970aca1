package option

// About is what a command is for.
type About struct {
	Summary string // a few words, for a list of commands
	// Text is what the manual page says, by paragraphs.
	Text []string
}

// AboutOf tells what the command called name is for; ok is false for one that
// is none of Slurm's.
func AboutOf(name string) (about About, ok bool) {
	about, ok = abouts[name]
	return about, ok
}

var abouts = map[string]About{
	"sbatch": {"submit a batch script", []string{
		"sbatch puts a script into the queue and prints the id of the job. The script comes from the file named on the command line, from standard input, or from --wrap. Lines of it that begin with #SBATCH hold options, up to the first line that is neither empty nor a comment; options of the command line win over input variables, which win over these lines.",
		"The job runs in the folder in which sbatch was called, and its output goes to the file slurm-%j.out there unless --output says otherwise. The folder must be on a volume that the nodes have as well: sbatch refuses what would be lost.",
		"Of a heterogeneous job, the components are separated by a colon on the command line, or by a line #SBATCH hetjob in the script."}},
	"srun": {"run a program on the nodes of a job", []string{
		"Inside a job, srun starts a step: as many tasks of the program as were asked for, on the nodes of the job, with their input and output. Outside, it first asks for a job of that size and waits for it.",
		"srun ends when its tasks have, with the highest of their exit codes; a task that a signal ended counts as 128 and the signal's number. An interrupt (Ctrl-C) tells how the tasks are, a second one within a second ends them."}},
	"salloc": {"get nodes and run a command there", []string{
		"salloc asks for a job, waits until it has its nodes, and runs a command, or a shell if there is none, on this machine with the job's environment. srun in it uses the nodes. The job ends when the command does."}},
	"sattach": {"show the output of a step", []string{
		"sattach shows what the tasks of a running step write, from now on. It takes the step as JOBID.STEPID."}},
	"sbcast": {"copy a file to the nodes of a job", []string{
		"sbcast copies a file to the same place on each node of the job it is in, or of the one that --jobid names."}},
	"scancel": {"end or signal jobs", []string{
		"scancel ends jobs, tasks of arrays and steps: those that are named and those that the options choose; where there are both, jobs must be in both. With --signal it sends a signal instead."}},
	"scontrol": {"show and change jobs, nodes, partitions and reservations", []string{
		"scontrol does what its first words say, and reads such words line by line from standard input without any. Words may be abbreviated. Users may change their own jobs; nodes, partitions and reservations take an operator."}},
	"scrontab": {"manage jobs that start at fixed times", []string{
		"scrontab edits, shows, replaces or removes the user's crontab. Its lines look like those of crontab(5), and lines that begin with #SCRON hold options of sbatch for the entry that follows. Each entry is a job of the queue that comes back at its next time."}},
	"seff": {"say how well a job used what it had", []string{
		"seff compares the CPU time and the memory that a job used with what it was given. Of a running job the numbers are of what is over."}},
	"sinfo": {"list partitions and nodes", []string{
		"sinfo groups the nodes by partition and state. --Node lists them one by one, --summarize counts them, and the formats choose the columns."}},
	"sdiag": {"show what the scheduler has been doing", []string{
		"sdiag prints counts and times of the scheduler, and the requests that it has answered, since it started or since --reset."}},
	"sview": {"watch and operate the queue in a terminal", []string{
		"sview, which is also squeue --tui, shows the queue, the nodes, the history and single jobs on the whole screen, and keeps them up to date. The key ? lists its keys. It takes squeue's filters, and prints what squeue prints where there is no terminal."}},
	"sprio": {"show how priorities come about", []string{
		"sprio lists, for each pending job, the parts that its priority is the sum of."}},
	"sstat": {"show what the steps of a running job use", []string{
		"sstat asks the agents of a running job of yours what its steps have used so far: processor time, memory, disk. Without a step it shows the job's first; --allsteps shows every one, and the batch script."}},
	"squeue": {"list the jobs in the queue", []string{
		"squeue lists jobs that are pending, running or ending, and with --states those that are over but still known. --start adds when pending jobs are expected to start."}},
	"sreport": {"report what was used", []string{
		"sreport adds up, for a span of time, what accounts, users and jobs used. Without a span it is yesterday. Times are cut to whole hours."}},
	"sacct": {"list jobs and steps from accounting", []string{
		"sacct lists jobs and their steps from the accounting database together with those in the queue: by default the user's own, from the beginning of today."}},
	"sacctmgr": {"manage accounts, users and QOS", []string{
		"sacctmgr lists and changes accounts, users, associations and qualities of service. It says what a change means, asks, and makes all of it or nothing. Without words it reads them line by line from standard input."}},
	"sshare": {"show shares and fair-share factors", []string{
		"sshare lists the tree of accounts and users with the shares they have, what they used lately, and the factor of the priority that follows."}},
	"strigger": {"react to events (not here)", []string{
		"Berth has no triggers: strigger takes Slurm's options and says what to use instead."}},
}
