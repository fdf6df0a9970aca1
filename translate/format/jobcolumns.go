package format

import (
	"cmp"

	"github.com/berth-hpc/berth/translate/status"
)

// JobColumns are the columns of squeue, in the order of %all.
var JobColumns = append(letterColumns(), nameColumns()...)

type jobColumn = Column[status.Job]

// text makes a column of a text, shown as none where it is empty.
func text(letter byte, name, header, field, none string, get func(*status.Job) string) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header, Fields: []string{field},
		Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return or(b, get(j), none) },
		Compare: func(a, b *status.Job) int { return cmp.Compare(get(a), get(b)) }}
}

// number makes a column of a number.
func number[T int32 | int64](letter byte, name, header, field string, get func(*status.Job) T) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header, Fields: []string{field},
		Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, get(j)) },
		Compare: func(a, b *status.Job) int { return cmp.Compare(get(a), get(b)) }}
}

// optional makes a column of a number, shown as none where it is 0.
func optional(letter byte, name, header, field, none string, get func(*status.Job) int32) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header, Fields: []string{field},
		Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return appendOptional(b, get(j), none) },
		Compare: func(a, b *status.Job) int { return cmp.Compare(get(a), get(b)) }}
}

func appendOptional(b []byte, n int32, none string) []byte {
	if n == 0 {
		return append(b, none...)
	}
	return appendInt(b, n)
}

func cpusPerTask(j *status.Job) int32 { return max(1, j.CPUsPerTask) }

// minCPUs is the least number of CPUs on a node.
func minCPUs(j *status.Job) int32 { return max(1, j.MinCPUs, j.CPUsPerTask) }

// instant makes a column of an instant; none sorts last.
func instant(letter byte, name, header, field string, get func(*status.Job) int64) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header, Fields: []string{field},
		Append:  func(b []byte, j *status.Job, s *Settings) []byte { return AppendInstant(b, get(j), "N/A", s) },
		Missing: func(j *status.Job) bool { return get(j) == 0 },
		Compare: func(a, b *status.Job) int { return cmp.Compare(get(a), get(b)) }}
}

// fixed makes a column of something that no job here has.
func fixed(letter byte, name, header, value string) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header,
		Append:  func(b []byte, _ *status.Job, _ *Settings) []byte { return append(b, value...) },
		Compare: func(_, _ *status.Job) int { return 0 }}
}

// custom makes a column of any function, ordered by its text.
func custom(letter byte, name, header string, fields []string, add func(b []byte, j *status.Job, s *Settings) []byte) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header, Fields: fields, Append: add}
}

// nodes marks a column of node lists: neither values nor header are cut.
func nodes(c jobColumn) jobColumn {
	c.Whole, c.WholeHeader = true, true
	return c
}

var (
	idFields      = []string{"id", "arrayJobID", "arrayTaskID", "arrayWhole", "hetJobID", "hetOffset"}
	elapsedFields = []string{"state", "start", "end", "timeLimit", "suspendTime", "preSuspend"}
)

func letterColumns() []jobColumn {
	return append(lowerColumns(), upperColumns()...)
}

func lowerColumns() []jobColumn {
	return []jobColumn{
		text('a', "Account", "ACCOUNT", "account", "(null)", func(j *status.Job) string { return j.Account }),
		custom('b', "tres-per-node", "TRES_PER_NODE", []string{"gres"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendTRESPerNode(b, j) }),
		{Letter: 'c', Name: "MinCPUs", Header: "MIN_CPUS", Fields: []string{"minCPUs", "cpusPerTask"},
			Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, minCPUs(j)) },
			Compare: func(a, b *status.Job) int { return cmp.Compare(minCPUs(a), minCPUs(b)) }},
		{Letter: 'd', Name: "MinTmpDisk", Header: "MIN_TMP_DISK", Fields: []string{"tmpDisk"},
			Append:  func(b []byte, j *status.Job, s *Settings) []byte { return AppendMemory(b, j.TmpDisk, s) },
			Compare: func(a, b *status.Job) int { return cmp.Compare(a.TmpDisk, b.TmpDisk) }},
		{Letter: 'e', Name: "EndTime", Header: "END_TIME", Fields: elapsedFields, Append: appendEnd,
			Value: func(j *status.Job, _ *Settings) int64 { return endTime(j) }},
		text('f', "Feature", "FEATURES", "features", "(null)", func(j *status.Job) string { return j.Features }),
		text('g', "GroupName", "GROUP", "group", "(null)", func(j *status.Job) string { return j.Group }),
		text('h', "OverSubscribe", "OVER_SUBSCRIBE", "overSubscribe", "OK", func(j *status.Job) string { return j.OverSubscribe }),
		{Letter: 'i', Name: "JobArrayID", Header: "JOBID", Fields: idFields, Compare: CompareID,
			Append: appendShownID},
		text('j', "Name", "NAME", "name", "(null)", func(j *status.Job) string { return j.Name }),
		text('k', "Comment", "COMMENT", "comment", "(null)", func(j *status.Job) string { return j.Comment }),
		{Letter: 'l', Whole: true, Name: "TimeLimit", Header: "TIME_LIMIT", Fields: []string{"timeLimit"}, Compare: compareLimit,
			Append: func(b []byte, j *status.Job, _ *Settings) []byte { return AppendMinutes(b, j.TimeLimit) }},
		{Letter: 'm', Name: "MinMemory", Header: "MIN_MEMORY", Fields: []string{"minMemory"},
			Append:  func(b []byte, j *status.Job, s *Settings) []byte { return AppendMemory(b, j.MinMemory, s) },
			Compare: func(a, b *status.Job) int { return cmp.Compare(a.MinMemory, b.MinMemory) }},
		text('n', "ReqNodes", "REQ_NODES", "reqNodes", "", func(j *status.Job) string { return j.ReqNodes }),
		text('o', "Command", "COMMAND", "command", "(null)", func(j *status.Job) string { return j.Command }),
		{Letter: 'p', Name: "Priority", Header: "PRIORITY", Fields: []string{"priority"}, Compare: comparePriority,
			Append: func(b []byte, j *status.Job, _ *Settings) []byte { return appendPriority(b, j) }},
		text('q', "QOS", "QOS", "qos", "(null)", func(j *status.Job) string { return j.QOS }),
		text('r', "Reason", "REASON", "reason", "None", func(j *status.Job) string { return j.Reason }),
		fixed('s', "SelectJobInfo", "", ""),
		{Letter: 't', Name: "StateCompact", Header: "ST", Fields: []string{"state"}, Compare: compareState,
			Append: func(b []byte, j *status.Job, _ *Settings) []byte {
				return append(b, status.JobState(j.State).Code()...)
			}},
		text('u', "UserName", "USER", "user", "", func(j *status.Job) string { return j.User }),
		text('v', "Reservation", "RESERVATION", "reservation", "(null)", func(j *status.Job) string { return j.Reservation }),
		text('w', "WCKey", "WCKEY", "wckey", "(null)", func(j *status.Job) string { return j.WCKey }),
		text('x', "", "EXC_NODES", "excNodes", "", func(j *status.Job) string { return j.ExcNodes }),
		number('y', "Nice", "NICE", "nice", func(j *status.Job) int32 { return j.Nice }),
		custom('z', "SCT", "S:C:T", []string{"socketsPerNode", "coresPerSocket", "threadsPerCore"}, func(b []byte, j *status.Job, _ *Settings) []byte {
			b = append(appendOptional(b, j.SocketsPerNode, "*"), ':')
			b = append(appendOptional(b, j.CoresPerSocket, "*"), ':')
			return appendOptional(b, j.ThreadsPerCore, "*")
		}),
	}
}

func upperColumns() []jobColumn {
	return []jobColumn{
		number('A', "JobID", "JOBID", "id", func(j *status.Job) int64 { return j.ID }),
		text('B', "BatchHost", "EXEC_HOST", "batchHost", "n/a", func(j *status.Job) string { return j.BatchHost }),
		number('C', "NumCPUs", "CPUS", "cpus", func(j *status.Job) int32 { return j.CPUs }),
		number('D', "NumNodes", "NODES", "nodes", func(j *status.Job) int32 { return j.Nodes }),
		text('E', "Dependency", "DEPENDENCY", "dependency", "(null)", func(j *status.Job) string { return j.Dependency }),
		{Letter: 'F', Name: "ArrayJobID", Header: "ARRAY_JOB_ID", Fields: idFields,
			Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, firstID(j)) },
			Compare: func(a, b *status.Job) int { return cmp.Compare(firstID(a), firstID(b)) }},
		number('G', "GroupID", "GROUP", "gid", func(j *status.Job) int64 { return j.GID }),
		optional('H', "Sockets", "SOCKETS_PER_NODE", "socketsPerNode", "*", func(j *status.Job) int32 { return j.SocketsPerNode }),
		optional('I', "Cores", "CORES_PER_SOCKET", "coresPerSocket", "*", func(j *status.Job) int32 { return j.CoresPerSocket }),
		optional('J', "Threads", "THREADS_PER_CORE", "threadsPerCore", "*", func(j *status.Job) int32 { return j.ThreadsPerCore }),
		{Letter: 'K', Name: "ArrayTaskID", Header: "ARRAY_TASK_ID", Fields: idFields, Compare: CompareID,
			Append: func(b []byte, j *status.Job, s *Settings) []byte { return or(b, ArraySet(j, s), "N/A") }},
		{Letter: 'L', Whole: true, Name: "TimeLeft", Header: "TIME_LEFT", Fields: elapsedFields, Value: timeLeft, Append: appendTimeLeft},
		{Letter: 'M', Whole: true, Name: "TimeUsed", Header: "TIME", Fields: elapsedFields, Value: elapsed,
			Append: func(b []byte, j *status.Job, s *Settings) []byte { return AppendDuration(b, elapsed(j, s)) }},
		nodes(text('N', "NodeList", "NODELIST", "nodeList", "", func(j *status.Job) string { return j.NodeList })),
		custom('O', "Contiguous", "CONTIGUOUS", []string{"contiguous"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendBool(b, j.Contiguous) }),
		text('P', "Partition", "PARTITION", "partition", "", func(j *status.Job) string { return j.Partition }),
		{Letter: 'Q', Name: "PriorityLong", Header: "PRIORITY", Fields: []string{"priority"}, Compare: comparePriority,
			Append: func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, j.Priority) }},
		nodes(custom('R', "ReasonList", "NODELIST(REASON)", []string{"state", "reason", "nodeList"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendReasonList(b, j) })),
		instant('S', "StartTime", "START_TIME", "start", func(j *status.Job) int64 { return j.Start }),
		text('T', "State", "STATE", "state", "", func(j *status.Job) string { return j.State }),
		number('U', "UserID", "UID", "uid", func(j *status.Job) int64 { return j.UID }),
		instant('V', "SubmitTime", "SUBMIT_TIME", "submit", func(j *status.Job) int64 { return j.Submit }),
		text('W', "Licenses", "LICENSES", "licenses", "(null)", func(j *status.Job) string { return j.Licenses }),
		optional('X', "CoreSpec", "CORE_SPEC", "coreSpec", "N/A", func(j *status.Job) int32 { return j.CoreSpec }),
		nodes(text('Y', "SchedNodes", "SCHEDNODES", "plannedNodes", "(null)", func(j *status.Job) string { return j.PlannedNodes })),
		text('Z', "WorkDir", "WORK_DIR", "workDir", "(null)", func(j *status.Job) string { return j.WorkDir }),
	}
}

// firstID is the id of the job's array, else its own.
func firstID(j *status.Job) int64 {
	if j.ArrayJobID != 0 {
		return j.ArrayJobID
	}
	return j.ID
}

// nameColumns are the fields of -O that have no letter.
func nameColumns() []jobColumn {
	out := append(nameTexts(), nameNumbers()...)
	out = append(out, nameInstants()...)
	out = append(out, nameSpecial()...)
	return append(out, absentColumns()...)
}

func nameTexts() []jobColumn {
	return []jobColumn{
		text(0, "admin_comment", "ADMIN_COMMENT", "adminComment", "(null)", func(j *status.Job) string { return j.AdminComment }),
		text(0, "system_comment", "SYSTEM_COMMENT", "message", "(null)", func(j *status.Job) string { return j.Message }),
		text(0, "AllocNodes", "ALLOC_NODES", "submitHost", "(null)", func(j *status.Job) string { return j.SubmitHost }),
		text(0, "Container", "CONTAINER", "container", "(null)", func(j *status.Job) string { return j.Container }),
		text(0, "cpus-per-tres", "CPUS_PER_TRES", "cpusPerTRES", "N/A", func(j *status.Job) string { return j.CPUsPerTRES }),
		text(0, "mem-per-tres", "MEM_PER_TRES", "memPerTRES", "N/A", func(j *status.Job) string { return j.MemPerTRES }),
		text(0, "HetJobIDSet", "HET_JOB_ID_SET", "hetJobSet", "N/A", func(j *status.Job) string { return j.HetJobSet }),
		text(0, "PackJobIDSet", "HET_JOB_ID_SET", "hetJobSet", "N/A", func(j *status.Job) string { return j.HetJobSet }),
		text(0, "Network", "NETWORK", "network", "(null)", func(j *status.Job) string { return j.Network }),
		text(0, "Prefer", "PREFER", "prefer", "(null)", func(j *status.Job) string { return j.Prefer }),
		text(0, "Profile", "PROFILE", "profile", "NotSet", func(j *status.Job) string { return j.Profile }),
		text(0, "Shared", "OVER_SUBSCRIBE", "overSubscribe", "OK", func(j *status.Job) string { return j.OverSubscribe }),
		text(0, "STDIN", "STDIN", "stdIn", "/dev/null", func(j *status.Job) string { return j.StdIn }),
		text(0, "tres-alloc", "TRES_ALLOC", "tres", "N/A", func(j *status.Job) string { return j.TRES }),
		text(0, "tres", "TRES_ALLOC", "tres", "N/A", func(j *status.Job) string { return j.TRES }),
		text(0, "tres-per-job", "TRES_PER_JOB", "tresPerJob", "N/A", func(j *status.Job) string { return j.TRESPerJob }),
		text(0, "tres-per-socket", "TRES_PER_SOCKET", "tresPerSocket", "N/A", func(j *status.Job) string { return j.TRESPerSocket }),
		text(0, "tres-per-task", "TRES_PER_TASK", "tresPerTask", "N/A", func(j *status.Job) string { return j.TRESPerTask }),
	}
}

func nameNumbers() []jobColumn {
	return []jobColumn{
		number(0, "AllocSID", "ALLOC_SID", "submitSID", func(j *status.Job) int32 { return j.SubmitSID }),
		number(0, "cpus-per-task", "CPUS_PER_TASK", "cpusPerTask", cpusPerTask),
		number(0, "CPUsPerTask", "CPUS_PER_TASK", "cpusPerTask", cpusPerTask),
		{Name: "MaxCPUs", Header: "MAX_CPUS", Fields: []string{"maxCPUs", "cpus"},
			Append: func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, cmp.Or(j.MaxCPUs, j.CPUs)) }},
		{Name: "MaxNodes", Header: "MAX_NODES", Fields: []string{"maxNodes", "nodes"},
			Append: func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, cmp.Or(j.MaxNodes, j.Nodes)) }},
		number(0, "NTPerNode", "NTASKS_PER_NODE", "tasksPerNode", func(j *status.Job) int32 { return j.TasksPerNode }),
		number(0, "NumTasks", "TASKS", "tasks", func(j *status.Job) int32 { return j.Tasks }),
		number(0, "ReqSwitch", "REQ_SWITCH", "switches", func(j *status.Job) int32 { return j.Switches }),
		number(0, "RestartCnt", "RESTART_COUNT", "restarts", func(j *status.Job) int32 { return j.Restarts }),
		optional(0, "NTPerCore", "NTASKS_PER_CORE", "tasksPerCore", "N/A", func(j *status.Job) int32 { return j.TasksPerCore }),
		optional(0, "NTPerSocket", "NTASKS_PER_SOCKET", "tasksPerSocket", "N/A", func(j *status.Job) int32 { return j.TasksPerSocket }),
		custom(0, "BatchFlag", "BATCH_FLAG", []string{"noBatch"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendBool(b, !j.NoBatch) }),
		custom(0, "Requeue", "REQUEUE", []string{"requeue"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendBool(b, j.Requeue) }),
		custom(0, "exit_code", "EXIT_CODE", []string{"exitCode", "signal"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, j.ExitCode<<8|j.Signal) }),
		custom(0, "DerivedEC", "DERIVED_EC", []string{"derivedCode", "derivedSignal"},
			func(b []byte, j *status.Job, _ *Settings) []byte {
				return appendInt(b, j.DerivedCode<<8|j.DerivedSignal)
			}),
	}
}

func nameInstants() []jobColumn {
	return []jobColumn{
		instant(0, "AccrueTime", "ACCRUE_TIME", "accrue", func(j *status.Job) int64 { return j.Accrue }),
		instant(0, "EligibleTime", "ELIGIBLE_TIME", "eligible", func(j *status.Job) int64 { return j.Eligible }),
		instant(0, "Deadline", "DEADLINE", "deadline", func(j *status.Job) int64 { return j.Deadline }),
		instant(0, "LastSchedEval", "LAST_SCHED_EVAL", "lastSched", func(j *status.Job) int64 { return j.LastSched }),
		instant(0, "PreemptTime", "PREEMPT_TIME", "preemptTime", func(j *status.Job) int64 { return j.PreemptTime }),
		instant(0, "ResizeTime", "RESIZE_TIME", "resizeTime", func(j *status.Job) int64 { return j.ResizeTime }),
	}
}

func nameSpecial() []jobColumn {
	files := append([]string{"stdOut", "stdErr", "workDir", "noBatch"}, idFields...)
	het := func(get func(*status.Job) int64) func([]byte, *status.Job, *Settings) []byte {
		return func(b []byte, j *status.Job, _ *Settings) []byte { return appendHet(b, j, get(j)) }
	}
	lead := func(j *status.Job) int64 { return j.HetJobID }
	offset := func(j *status.Job) int64 { return int64(j.HetOffset) }
	return []jobColumn{
		custom(0, "Cluster", "CLUSTER", nil, func(b []byte, _ *status.Job, s *Settings) []byte { return or(b, s.Cluster, "berth") }),
		custom(0, "gres", "TRES_PER_NODE", []string{"gres"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendTRESPerNode(b, j) }),
		custom(0, "StdOut", "STDOUT", files, func(b []byte, j *status.Job, _ *Settings) []byte { return appendFile(b, j.StdOut, j) }),
		custom(0, "StdErr", "STDERR", files, func(b []byte, j *status.Job, _ *Settings) []byte {
			return appendFile(b, cmp.Or(j.StdErr, j.StdOut), j)
		}),
		custom(0, "MinTime", "TIME_MIN", []string{"timeMin"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return AppendDuration(b, int64(j.TimeMin)*60) }),
		custom(0, "PendingTime", "PENDING_TIME", []string{"state", "submit", "start"}, appendPendingTime),
		custom(0, "Wait4Switch", "WAIT4SWITCH", []string{"switchesWait"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return AppendDuration(b, int64(j.SwitchesWait)) }),
		custom(0, "HetJobID", "HET_JOB_ID", idFields, het(lead)),
		custom(0, "HetJobOffset", "HET_JOB_OFFSET", idFields, het(offset)),
		custom(0, "PackJobID", "HET_JOB_ID", idFields, het(lead)),
		custom(0, "PackJobOffset", "HET_JOB_OFFSET", idFields, het(offset)),
	}
}

// appendPendingTime adds the seconds between submission and start, or now.
func appendPendingTime(b []byte, j *status.Job, s *Settings) []byte {
	end := s.Now
	if !pending(j) && j.Start != 0 {
		end = j.Start
	}
	return appendInt(b, max(0, end-j.Submit))
}

func appendHet(b []byte, j *status.Job, n int64) []byte {
	if j.HetJobID == 0 {
		return append(b, "N/A"...)
	}
	return appendInt(b, n)
}

// absentColumns are fields of -O that mean nothing here; they show what Slurm
// shows where nothing was set.
func absentColumns() []jobColumn {
	list := []struct{ name, header, value string }{
		{"AssocID", "ASSOC_ID", "0"}, {"BoardsPerNode", "BOARDS_PER_NODE", "0"},
		{"BurstBuffer", "BURST_BUFFER", "(null)"}, {"BurstBufferState", "BURST_BUFFER_STATE", "(null)"},
		{"ClusterFeature", "CLUSTER_FEATURES", "(null)"}, {"DelayBoot", "DELAY_BOOT", "0:00"}, {"MCSLabel", "MCSLABEL", "(null)"},
		{"NTPerBoard", "NTASKS_PER_BOARD", "0"}, {"Origin", "ORIGIN", "NA"}, {"OriginRaw", "ORIGIN_RAW", "NA"}, {"Reboot", "REBOOT", "0"},
		{"SiblingsActive", "ACTIVE_SIBLINGS", "NA"}, {"SiblingsActiveRaw", "ACTIVE_SIBLINGS_RAW", "NA"}, {"SiblingsViable", "VIABLE_SIBLINGS", "NA"},
		{"SiblingsViableRaw", "VIALBLE_SIBLINGS_RAW", "NA"}, {"SPerBoard", "SOCKETS_PER_BOARD", "0"},
		{"tres-bind", "TRES_BIND", "N/A"}, {"tres-freq", "TRES_FREQ", "N/A"},
	}
	out := make([]jobColumn, 0, len(list))
	for _, c := range list {
		out = append(out, fixed(0, c.name, c.header, c.value))
	}
	return out
}
