package main

// jobs are the arguments of sbatch. The second is suspended, the third is
// cancelled while it runs, FIRST is the id of the first.
var jobs = [][]string{
	{"-t", "5", "--wrap", "sleep 60"},
	{"-t", "1-2", "-n", "2", "-J", "suspended", "--wrap", "sleep 60"},
	{"-J", "cancelled-with-a-long-name", "--wrap", "sleep 60"},
	{"-J", "failed", "-t", "1:30", "--wrap", "exit 3"},
	{"-J", "killed", "--wrap", "kill -9 $$"},
	{"-H", "-N", "2-3", "-n", "5", "-c", "2", "--mem-per-cpu", "10", "-C", "fast", "--comment", "two words",
		"--contiguous", "-t", "1-0", "--wrap", "x"},
	{"-H", "--mem", "2G", "--gres", "gpu:tesla:1", "--nice=100", "--tmp", "512", "--switches", "1@5", "--exclusive",
		"-N", "2", "--wrap", "x"},
	{"-H", "--mem", "1500", "--gpus", "2", "--mail-type", "BEGIN,END", "--mail-user", "me", "-w", "n[1-2]", "-x",
		"n3", "--wrap", "x"},
	{"-H", "-p", "debug,batch", "--begin", "now+1day", "--deadline", "now+2days", "-t", "10", "--time-min", "5",
		"--wrap", "x"},
	{"-d", "afterok:FIRST", "-J", "dependent", "-t", "2", "--wrap", "x"},
	{"-H", "-a", "3-9:2%2", "-t", "5", "-J", "array", "--wrap", "x"},
	{"-a", "1-2", "-t", "5", "-J", "spread", "--wrap", "sleep 60"},
	{"-H", "-n", "4", "--ntasks-per-node", "2", "--cpus-per-gpu", "1", "--gpus-per-task", "1", "--mem-per-gpu", "5",
		"--wrap", "x"},
	{"-H", "--no-requeue", "--oversubscribe", "--sockets-per-node", "1", "--cores-per-socket", "2",
		"--ntasks-per-socket", "2", "--mincpus", "2", "--wrap", "x"},
	{"-H", "--wckey", "key", "--priority", "7", "-J", "käse\twith tab", "--wrap", "x"},
	{"-H", "-n", "1", "--wrap", "x", ":", "-n", "2", "-N", "2"},
	{"-N", "4", "--exclusive", "-t", "20", "-J", "waits", "--wrap", "true"},
}

// fields are the names that squeue -O accepts.
var fields = []string{
	"Account", "AccrueTime", "admin_comment", "AllocNodes", "AllocSID", "ArrayJobID", "ArrayTaskID", "AssocID",
	"BatchFlag", "BatchHost", "BoardsPerNode",
	"BurstBuffer", "BurstBufferState", "Cluster", "ClusterFeature", "Command", "Comment", "Contiguous", "Container",
	"Cores", "CoreSpec", "CPUFreq",
	"cpus-per-task", "cpus-per-tres", "Deadline", "DelayBoot", "Dependency", "DerivedEC", "EligibleTime", "EndTime",
	"exit_code", "Feature", "GroupID",
	"GroupName", "HetJobID", "HetJobIDSet", "HetJobOffset", "JobArrayID", "JobID", "LastSchedEval", "Licenses",
	"MaxCPUs", "MaxNodes", "MCSLabel",
	"mem-per-tres", "MinCpus", "MinMemory", "MinTime", "MinTmpDisk", "Name", "Network", "Nice", "NodeList", "Nodes",
	"NTPerBoard", "NTPerCore",
	"NTPerNode", "NTPerSocket", "NumCPUs", "NumNodes", "NumTasks", "Origin", "OriginRaw", "OverSubscribe",
	"Partition", "PendingTime", "PreemptTime",
	"Prefer", "Priority", "PriorityLong", "Profile", "QOS", "Reason", "ReasonList", "Reboot", "ReqNodes", "ReqSwitch",
	"Requeue", "Reservation",
	"ResizeTime", "RestartCnt", "ResvPort", "SchedNodes", "SCT", "SelectJobInfo", "Shared", "SiblingsActive",
	"SiblingsActiveRaw", "SiblingsViable",
	"SiblingsViableRaw", "Sockets", "SPerBoard", "StartTime", "State", "StateCompact", "STDERR", "STDIN", "STDOUT",
	"SubmitTime", "system_comment",
	"Threads", "TimeLeft", "TimeLimit", "TimeUsed", "tres", "tres-alloc", "tres-bind", "tres-freq", "tres-per-job",
	"tres-per-node", "tres-per-socket",
	"tres-per-step", "tres-per-task", "UserID", "UserName", "Wait4Switch", "WCKey", "WorkDir", "PackJobID",
	"PackJobOffset", "PackJobIDSet", "gres",
	"jobarrayid", "ExcNodes", "StepID", "StepName", "StepState", "priority", "NOSUCH",
}

// nodeFields are the names that sinfo -O accepts.
var nodeFields = []string{
	"AllocMem", "AllocNodes", "Available", "Cluster", "Comment", "Cores", "CPUs", "CPUsLoad", "CPUsState",
	"DefaultTime", "Disk", "Extra", "Features",
	"features_act", "FreeMem", "Gres", "GresUsed", "Groups", "MaxCPUsPerNode", "Memory", "NodeAddr", "NodeAI",
	"NodeAIOT", "NodeHost", "NodeList",
	"Nodes", "OverSubscribe", "Partition", "PartitionName", "Port", "PreemptMode", "PriorityJobFactor",
	"PriorityTier", "Priority", "Reason", "Root",
	"Size", "SocketCoreThread", "Sockets", "State", "StateCompact", "StateLong", "StateComplete", "Threads", "Time",
	"TimeStamp", "User", "UserLong",
	"Version", "Weight", "Share", "Shared", "NOSUCH",
}
