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
				"The scheduler's process plays up to three roles. As scheduler it plans the queue, starts jobs as gangs of pods and ends them; one process leads at a time, and others with the same role wait for its lease. As api it answers the queue API (queue.berth.hpc), which Slurm's commands ask, admits jobs, and talks to the agents in the jobs' pods. As jobset it runs JobSet's controllers, for clusters that have none.",
				"The chart of Berth runs it in the cluster; berth up runs it on one machine. All of its state is in Kubernetes' objects and the accounting database: it may be stopped and killed at any time.",
			},
			Exits: "0 after SIGTERM or SIGINT, or 1 after an error, which is said on standard error.",
			See:   []string{"berth-agent.8", "berth-doctor", "berth-loginnode.8", "berth-up", "sdiag"},
		},
		{Program: "loginnode", Summary: "SSH server of Berth's login nodes", Flags: login,
			Text: []string{
				"The login node's SSH server lets the users of the cluster in with the keys and certificates that the configuration trusts. Each session runs under the user's own uid and has a credential of its own, with which Slurm's commands ask the cluster as that user.",
				"The configuration is a YAML file. SIGTERM ends the server in order: nobody new comes in, and sessions get the time that the configuration says.",
			},
			Exits: "0 after SIGTERM or SIGINT, or 1 after an error, which is said on standard error.",
			See:   []string{"berth", "berth-scheduler.8", "ssh"}},
		{
			Program: "agent",
			Summary: "the first process of every pod of a job",
			Flags:   agent,
			Text: []string{
				"The agent is not for the command line: the scheduler puts it into every pod of a job, where it is process 1 and takes what it has to know from the environment. It reports to the API role that the pod is there; on the job's first node it runs the batch script, and on every node the tasks that srun starts.",
				"It answers sstat, sattach and the terminal UI with what the job uses and writes. How busy GPUs are it asks nvidia-smi, where the container has that.",
			},
			Exits: "On the first node that of the batch script, or 128 and the number of the signal that ended it; elsewhere 0; 1 where the job could not be started, and 2 outside of a job's pod.",
			See:   []string{"berth-scheduler.8", "sattach", "srun", "sstat"},
		},
	}
}
