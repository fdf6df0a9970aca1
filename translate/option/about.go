package option

// About describes a command.
type About struct {
	Summary string // a few words, for a list of commands
	// Text is the description in the manual page, by paragraphs.
	Text []string
}

// AboutOf returns the description of the named command; ok is false if it is not a
// command of Slurm.
func AboutOf(name string) (about About, ok bool) {
	about, ok = abouts[name]
	return about, ok
}

var abouts = map[string]About{
	"sbatch": {"submit a batch script", []string{
		"sbatch submits a batch script to the queue and prints the job id. The script comes from the file named on the command line, from standard input, or from --wrap. Lines that start with #SBATCH contain options, up to the first line that is neither empty nor a comment. Options on the command line override input variables, which override these lines.",
		"The job runs in the directory in which sbatch was called, and its output goes to the file slurm-%j.out there unless --output names another. The directory must be on a volume that the nodes share. Otherwise the output would be lost, and sbatch refuses the job.",
		"The components of a heterogeneous job are separated by a colon on the command line, or by a line #SBATCH hetjob in the script."}},
	"srun": {"run parallel tasks", []string{
		"Inside a job, srun starts a step: it runs the requested number of tasks of the program on the nodes of the job and forwards their input and output. Outside a job, it first requests an allocation of that size and waits for it.",
		"srun exits when its tasks have ended, with the highest of their exit codes. The exit code of a task that a signal killed is 128 plus the signal number. An interrupt (Ctrl-C) prints the state of the tasks; a second one within a second kills them."}},
	"salloc": {"allocate nodes and run a command", []string{
		"salloc requests an allocation, waits until it is granted, and runs a command (by default a shell) on this machine with the environment of the job. srun in that command uses the allocated nodes. The job ends when the command ends."}},
	"sattach": {"attach to a job step", []string{
		"sattach prints the output of the tasks of a running step from now on. The step is named as JOBID.STEPID."}},
	"sbcast": {"copy a file to the nodes of a job", []string{
		"sbcast copies a file to the same path on each node of the current job, or of the job that --jobid names."}},
	"scancel": {"cancel or signal jobs", []string{
		"scancel cancels jobs, array tasks and steps: those that are named, or that match the options. If there are names and options, jobs must match both. With --signal it sends a signal."}},
	"scontrol": {"show and change jobs, nodes, partitions and reservations", []string{
		"scontrol runs the command in its arguments. Without arguments it reads commands from standard input, one per line. Commands may be abbreviated. Users may change their own jobs; only operators may change nodes, partitions and reservations."}},
	"scrontab": {"manage the crontab of jobs", []string{
		"scrontab edits, lists, replaces or removes the user's crontab. Its lines have the format of crontab(5), and lines that start with #SCRON contain options of sbatch for the next entry. Each entry is a job in the queue that is requeued for its next time."}},
	"seff": {"show how efficiently a job used its resources", []string{
		"seff compares the CPU time and the memory that a job used with its allocation. For a running job, only steps that have ended are counted."}},
	"sinfo": {"list partitions and nodes", []string{
		"sinfo lists nodes grouped by partition and state. --Node lists each node on a line, --summarize counts nodes, and the formats select columns."}},
	"slurmrestd": {"serve the REST API", []string{
		"slurmrestd serves Slurm's REST API at each address on its command line: [HOST]:PORT or unix:PATH. Without an address it serves one connection over standard input and output, for inetd and systemd.",
		"It has no rights of its own. A request is made with the token in its header X-SLURM-USER-TOKEN or Authorization (scontrol token prints one), and X-SLURM-USER-NAME, if it is given, must be the user of that token. Over a socket in the file system, requests of processes of the same user need no token (rest_auth/local).",
		"The paths are those of openapi/v0.0.38 and openapi/dbv0.0.38, and of v0.0.40 to v0.0.42; /openapi.json describes them. Listen on the loopback interface or behind a proxy with TLS: slurmrestd itself does not encrypt."}},
	"sdiag": {"show statistics of the scheduler", []string{
		"sdiag prints counters and timings of the scheduler and of the requests that it has served, since its start or the last --reset."}},
	"sview": {"view and manage the queue in a terminal", []string{
		"sview, which is the same as squeue --tui, shows the queue, the nodes, the history and single jobs on the full screen and updates them. The key ? lists its keys. It accepts the filters of squeue. Without a terminal it prints the output of squeue."}},
	"sprio": {"show the factors of job priorities", []string{
		"sprio lists the factors whose sum is the priority of each pending job."}},
	"sstat": {"show the resource usage of running steps", []string{
		"sstat shows the resources that the steps of a running job of yours have used so far: CPU time, memory, disk. Without a step it shows the first one of the job; --allsteps shows all steps and the batch script."}},
	"squeue": {"list the jobs in the queue", []string{
		"squeue lists jobs that are pending, running or completing, and with --states also jobs that have ended recently. --start shows the expected start times of pending jobs."}},
	"sreport": {"report resource usage", []string{
		"sreport sums up the usage of accounts, users and jobs in a time range. The default is yesterday. Times are rounded down to whole hours."}},
	"sacct": {"list jobs and steps from accounting", []string{
		"sacct lists jobs and their steps from the accounting database and the queue: by default the user's own since 00:00 today."}},
	"sacctmgr": {"manage accounts, users and QOS", []string{
		"sacctmgr lists and changes accounts, users, associations and qualities of service. It prints what a change would do, asks for confirmation, and applies all of it or nothing. Without arguments it reads commands from standard input, one per line."}},
	"sshare": {"show shares and fair-share factors", []string{
		"sshare lists the tree of accounts and users with their shares, their decayed usage, and the resulting fair-share factor."}},
	"strigger": {"set triggers (not supported)", []string{
		"Berth has no triggers: strigger accepts Slurm's options and names the alternatives."}},
}
