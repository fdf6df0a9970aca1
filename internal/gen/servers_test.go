package gen_test

import (
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth/internal/gen"
	"github.com/berth-hpc/berth/internal/sched/flags"
	"github.com/berth-hpc/berth/loginnode/daemon"
)

// servers returns the servers with their flags.
func servers() []gen.Server {
	scheduler := pflag.NewFlagSet("scheduler", pflag.ContinueOnError)
	scheduler.AddGoFlagSet(new(flags.Flags).Set())
	login, _, _ := daemon.Flags()
	agent := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	agent.Bool("version", false, "print the version and exit")
	return []gen.Server{
		{
			Program: "scheduler",
			Summary: "plan and start the jobs of a Berth cluster, and answer its queries",
			Flags:   scheduler,
			Text: []string{
				"A scheduler process has up to three roles. With the role scheduler it plans the queue, starts jobs as gangs of pods and ends them. One process leads at a time; others with this role wait for its lease. With the role api it serves the queue API (queue.berth.hpc), which Slurm's commands use, admits jobs, and serves the agents in the pods of jobs. With the role jobset it runs the controllers of JobSet, for clusters that have none.",
				"The chart of Berth runs it in the cluster; berth up runs it on one machine. All of its state is in Kubernetes objects and in the accounting database, so it may be stopped or killed at any time.",
			},
			Exits: "0 after SIGTERM or SIGINT, or 1 after an error, with a message on standard error.",
			See:   []string{"berth-agent.8", "berth-doctor", "berth-loginnode.8", "berth-up", "sdiag"},
		},
		{Program: "loginnode", Summary: "SSH server of Berth's login nodes", Flags: login,
			Text: []string{
				"The SSH server of the login node accepts users of the cluster with the keys and certificates that the configuration trusts. Each session runs with the uid of its user and has its own credential, with which Slurm's commands send requests as that user.",
				"The configuration is a YAML file. After SIGTERM the server accepts no new logins, lets sessions continue for the time in the configuration, and exits.",
			},
			Exits: "0 after SIGTERM or SIGINT, or 1 after an error, with a message on standard error.",
			See:   []string{"berth", "berth-scheduler.8", "ssh"}},
		{
			Program: "agent",
			Summary: "the first process of every pod of a job",
			Flags:   agent,
			Text: []string{
				"The agent is not for the command line: the scheduler adds it to every pod of a job, where it is process 1 and reads its configuration from the environment. It reports to the API role that the pod runs. On the first node of the job it runs the batch script, and on every node the tasks that srun starts.",
				"It serves the usage and the output of the job to sstat, sattach and the terminal UI. It reads the utilization of GPUs from nvidia-smi, if the container has it.",
			},
			Exits: "On the first node, the exit code of the batch script, or 128 plus the number of the signal that ended it; 0 on the other nodes; 1 if the job could not be started; 2 outside of a pod of a job.",
			See:   []string{"berth-scheduler.8", "sattach", "srun", "sstat"},
		},
	}
}
