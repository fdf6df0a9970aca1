package option

// The tests that check the effect of options, by option name: on the objects of a
// job (DIRECTORY.TestName), on a plan, or on jobs that ran (scripts of the end-to-end
// tests). "srun --NAME" is the test of an option that differs in another command.
// TestEverySupportedOptionHasATest fails if an option is missing.
const (
	onObjects = "cli/translate/objects.TestOptionsOnObjects"
	onJobs    = "test/e2e/testdata/script/"
	usersJobs = "test/e2e/testdata/users/"
	keptJobs  = onJobs + "options-kept.txtar"
	fileJobs  = onJobs + "options-files.txtar"
	placeJobs = onJobs + "options-place.txtar"
	client    = onJobs + "options-client.txtar"
	stepJobs  = onJobs + "options-step.txtar"
	inPlan    = "internal/sched/snapshot.TestOptionsInThePlan"
	sizePlan  = "internal/sched/snapshot.TestSizesInThePlan"
	timePlan  = "internal/sched/snapshot.TestTimeMinDeadlineAndOversubscribe"
	stepGangs = "internal/agent.TestSteps"
	agentEnv  = "internal/agent.TestImageEnvironment"
)

var tests = map[string]string{
	"array": onJobs + "array.txtar", "kill-on-invalid-dep": onJobs + "dependency-never.txtar",
	"time-min": onJobs + "deadline.txtar",
	"deadline": onJobs + "deadline.txtar", "signal": onJobs + "signal.txtar",
	"test-only": "test/e2e/testdata/policy/test-only.txtar", "licenses": "test/e2e/testdata/policy/licenses.txtar",
	"reservation": "test/e2e/testdata/policy/reservation.txtar",

	"no-kill": "test/e2e/testdata/down/many.txtar",
	"account": keptJobs, "comment": keptJobs, "dependency": keptJobs, "extra": keptJobs, "hold": keptJobs,
	"job-name": keptJobs, "nice": keptJobs,
	"no-requeue": keptJobs, "partition": keptJobs, "priority": keptJobs, "qos": keptJobs, "requeue": keptJobs,
	"wckey": keptJobs,
	"begin": keptJobs, "time": keptJobs, "stepmgr": keptJobs, "power": keptJobs, "delay-boot": keptJobs,

	"chdir": fileJobs, "output": fileJobs, "error": fileJobs, "input": fileJobs, "open-mode": fileJobs,
	"export":      fileJobs,
	"export-file": fileJobs, "get-user-env": fileJobs, "propagate": fileJobs, "wrap": fileJobs, "ignore-pbs": fileJobs,

	"nodelist": placeJobs, "exclude": placeJobs, "nodefile": placeJobs, "distribution": placeJobs,
	"exclusive":      placeJobs,
	"wait-all-nodes": placeJobs, "constraint": inPlan,
	"segment": inPlan, "consolidate-segments": inPlan, "spread-segments": inPlan,
	"batch": "internal/sched/snapshot.TestBatchHost",
	"tmp":   inPlan, "prefer": inPlan, "contiguous": inPlan, "switches": inPlan, "spread-job": inPlan,
	"use-min-nodes": inPlan, "hint": inPlan,
	"extra-node-info": inPlan, "sockets-per-node": inPlan, "cores-per-socket": inPlan, "threads-per-core": inPlan,
	"ntasks-per-socket": inPlan, "ntasks-per-core": inPlan,
	"oversubscribe": timePlan,

	"nodes": sizePlan, "ntasks": sizePlan, "ntasks-per-node": sizePlan, "cpus-per-task": sizePlan, "mincpus": sizePlan,
	"overcommit": sizePlan, "mem": sizePlan, "mem-per-cpu": sizePlan, "mem-per-gpu": sizePlan, "gres": sizePlan,
	"gpus":          sizePlan,
	"gpus-per-node": sizePlan, "gpus-per-socket": sizePlan, "gpus-per-task": sizePlan, "tres-per-task": sizePlan,
	"cpus-per-gpu": sizePlan, "ntasks-per-gpu": "internal/sched/snapshot.TestTasksPerGPU",
	"ntasks-per-tres": "internal/sched/snapshot.TestTasksPerGPU",
	"container-image": onObjects, "container-mounts": onObjects,
	"container-writable": "internal/agent.TestStepsInContainers", "container-readonly": onObjects,
	"container-name": "internal/agent.TestStepsInContainers", "container-workdir": agentEnv,
	"container-env":           agentEnv,
	"no-container-remap-root": onObjects, "no-container-entrypoint": onObjects,

	"no-shell": onJobs + "salloc.txtar", "bell": client, "kill-command": client, "no-bell": client,
	"mail-type": "internal/sched/mail.TestDelivery", "mail-user": "internal/sched/mail.TestDelivery",
	"uid": "cli/sbatch.TestForOthersAndElsewhere", "gid": usersJobs + "identity.txtar",
	"clusters": "cli/sbatch.TestForOthersAndElsewhere",
	"parsable": client, "quiet": client, "verbose": client, "wait": client, "help": client, "usage": client,
	"version": client,

	"label": stepJobs, "unbuffered": stepJobs, "kill-on-bad-exit": stepJobs, "overlap": stepJobs, "exact": stepJobs,
	"whole": stepJobs, "relative": stepJobs, "jobid": stepJobs, "pty": onJobs + "srun-pty.txtar",
	"multi-prog": onJobs + "srun-programs.txtar", "prolog": onJobs + "srun-programs.txtar",
	"epilog": onJobs + "srun-programs.txtar", "task-prolog": onJobs + "srun-programs.txtar",
	"task-epilog":  onJobs + "srun-programs.txtar",
	"preserve-env": stepGangs, "srun --resv-ports": stepGangs, "wait-for-children": stepGangs,
	"oom-kill-step": "internal/agent/launch.TestOOMKillStep",
	"mpi":           stepJobs, "gres-flags": "internal/agent.TestGPUsOfTasks",
	"cpu-bind": "internal/agent.TestCPUBinding",
	"mem-bind": "internal/agent.TestMemoryBinding", "gpu-bind": "internal/agent.TestGPUsOfTasks",
	"tres-bind": "internal/agent.TestGPUsOfTasks", "srun --wait": stepJobs,
	"het-group": onJobs + "het-group.txtar", "bcast": onJobs + "bcast.txtar", "compress": onJobs + "bcast.txtar",
	"srun --send-libs": onJobs + "bcast.txtar", "bcast-exclude": onJobs + "bcast.txtar",
	"disable-status":    stepJobs,
	"quit-on-interrupt": stepJobs, "immediate": stepJobs, "external-launcher": stepJobs,
}

// TestName returns the test that checks the effect of o.
func (o *Option) TestName() string {
	if t, own := tests[o.In.String()+" --"+o.Name]; own {
		return t
	}
	return tests[o.Name]
}
