package format

import (
	"cmp"
	"math"
	"strconv"
	"sync"

	"github.com/berth-hpc/berth/translate/status"
)

// JobColumns returns the columns of squeue, in the order of %all. Callers must not change them.
var JobColumns = sync.OnceValue(func() []jobColumn { return append(letterColumns(), nameColumns()...) })

type jobColumn = Column[status.Job]

// textColumn returns a column of a text; an empty one is shown as none.
func textColumn(letter byte, name, header, field, none string, get func(*status.Job) string) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header, Fields: []string{field},
		Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return appendOr(b, get(j), none) },
		Compare: func(a, b *status.Job) int { return cmp.Compare(get(a), get(b)) }}
}

// numberColumn returns a column of a number.
func numberColumn[T int32 | int64](letter byte, name, header, field string, get func(*status.Job) T) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header, Fields: []string{field},
		Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, get(j)) },
		Compare: func(a, b *status.Job) int { return cmp.Compare(get(a), get(b)) }}
}

// optionalColumn returns a column of a number; 0 is shown as none.
func optionalColumn(letter byte, name, header, field, none string, get func(*status.Job) int32) jobColumn {
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

// minCPUs returns the minimum number of CPUs on a node.
func minCPUs(j *status.Job) int32 { return max(1, j.MinCPUs, j.CPUsPerTask) }

// timeColumn returns a column of a time; rows without one sort last.
func timeColumn(letter byte, name, header, field string, get func(*status.Job) int64) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header, Fields: []string{field},
		Append:  func(b []byte, j *status.Job, s *Settings) []byte { return AppendInstant(b, get(j), "N/A", s) },
		Missing: func(j *status.Job) bool { return get(j) == 0 },
		Compare: func(a, b *status.Job) int { return cmp.Compare(get(a), get(b)) }}
}

// constantColumn returns a column with the same value for all jobs.
func constantColumn(letter byte, name, header, value string) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header,
		Append:  func(b []byte, _ *status.Job, _ *Settings) []byte { return append(b, value...) },
		Compare: func(_, _ *status.Job) int { return 0 }}
}

// customColumn returns a column with any value, ordered by its text.
func customColumn(letter byte, name, header string, fields []string,
	add func(b []byte, j *status.Job, s *Settings) []byte) jobColumn {
	return jobColumn{Letter: letter, Name: name, Header: header, Fields: fields, Append: add}
}

// untruncated marks a column of node lists: neither values nor header are truncated.
func untruncated(c jobColumn) jobColumn {
	c.Untruncated, c.UntruncatedHeader = true, true
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
		textColumn('a', "Account", "ACCOUNT", "account", "(null)", func(j *status.Job) string { return j.Account }),
		customColumn('b', "tres-per-node", "TRES_PER_NODE", []string{"gres"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendTRESPerNode(b, j) }),
		{Letter: 'c', Name: "MinCPUs", Header: "MIN_CPUS", Fields: []string{"minCPUs", "cpusPerTask"},
			Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, minCPUs(j)) },
			Compare: func(a, b *status.Job) int { return cmp.Compare(minCPUs(a), minCPUs(b)) }},
		{Letter: 'd', Name: "MinTmpDisk", Header: "MIN_TMP_DISK", Fields: []string{"tmpDisk"},
			Append:  func(b []byte, j *status.Job, s *Settings) []byte { return AppendMemory(b, j.TmpDisk, s) },
			Compare: func(a, b *status.Job) int { return cmp.Compare(a.TmpDisk, b.TmpDisk) }},
		{Letter: 'e', Name: "EndTime", Header: "END_TIME", Fields: elapsedFields, Append: appendEnd,
			Value: func(j *status.Job, _ *Settings) int64 {
				if neverEnds(j) {
					return math.MaxInt64
				}
				return endTime(j)
			}},
		textColumn('f', "Feature", "FEATURES", "features", "(null)", func(j *status.Job) string { return j.Features }),
		textColumn('g', "GroupName", "GROUP", "group", "(null)", func(j *status.Job) string { return j.Group }),
		textColumn('h', "OverSubscribe", "OVER_SUBSCRIBE", "overSubscribe", "OK",
			func(j *status.Job) string { return j.OverSubscribe }),
		{Letter: 'i', Name: "JobArrayID", Header: "JOBID", Fields: idFields, Compare: CompareID,
			Append: appendShownID},
		textColumn('j', "Name", "NAME", "name", "(null)", func(j *status.Job) string { return j.Name }),
		textColumn('k', "Comment", "COMMENT", "comment", "(null)", func(j *status.Job) string { return j.Comment }),
		{Letter: 'l', Untruncated: true, Name: "TimeLimit", Header: "TIME_LIMIT", Fields: []string{"timeLimit"},
			Compare: compareLimit,
			Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return AppendMinutes(b, j.TimeLimit) }},
		{Letter: 'm', Name: "MinMemory", Header: "MIN_MEMORY", Fields: []string{"minMemory"},
			Append:  func(b []byte, j *status.Job, s *Settings) []byte { return AppendMemory(b, j.MinMemory, s) },
			Compare: func(a, b *status.Job) int { return cmp.Compare(a.MinMemory, b.MinMemory) }},
		textColumn('n', "ReqNodes", "REQ_NODES", "reqNodes", "", func(j *status.Job) string { return j.ReqNodes }),
		textColumn('o', "Command", "COMMAND", "command", "(null)", func(j *status.Job) string { return j.Command }),
		{Letter: 'p', Name: "Priority", Header: "PRIORITY", Fields: []string{"priority"}, Compare: comparePriority,
			Append: func(b []byte, j *status.Job, _ *Settings) []byte { return appendPriority(b, j) }},
		textColumn('q', "QOS", "QOS", "qos", "(null)", func(j *status.Job) string { return j.QOS }),
		textColumn('r', "Reason", "REASON", "reason", "None", func(j *status.Job) string { return j.Reason }),
		constantColumn('s', "SelectJobInfo", "", ""),
		{Letter: 't', Name: "StateCompact", Header: "ST", Fields: []string{"state"}, Compare: compareState,
			Append: func(b []byte, j *status.Job, _ *Settings) []byte {
				return append(b, status.JobState(j.State).Code()...)
			}},
		textColumn('u', "UserName", "USER", "user", "", func(j *status.Job) string { return j.User }),
		textColumn('v', "Reservation", "RESERVATION", "reservation", "(null)",
			func(j *status.Job) string { return j.Reservation }),
		textColumn('w', "WCKey", "WCKEY", "wckey", "(null)", func(j *status.Job) string { return j.WCKey }),
		textColumn('x', "", "EXC_NODES", "excNodes", "", func(j *status.Job) string { return j.ExcNodes }),
		numberColumn('y', "Nice", "NICE", "nice", func(j *status.Job) int32 { return j.Nice }),
		customColumn('z', "SCT", "S:C:T", []string{"socketsPerNode", "coresPerSocket", "threadsPerCore"},
			func(b []byte, j *status.Job, _ *Settings) []byte {
				b = append(appendOptional(b, j.SocketsPerNode, "*"), ':')
				b = append(appendOptional(b, j.CoresPerSocket, "*"), ':')
				return appendOptional(b, j.ThreadsPerCore, "*")
			}),
	}
}

func upperColumns() []jobColumn {
	return []jobColumn{
		numberColumn('A', "JobID", "JOBID", "id", func(j *status.Job) int64 { return j.ID }),
		textColumn('B', "BatchHost", "EXEC_HOST", "batchHost", "n/a",
			func(j *status.Job) string { return j.BatchHost }),
		numberColumn('C', "NumCPUs", "CPUS", "cpus", func(j *status.Job) int32 { return j.CPUs }),
		numberColumn('D', "NumNodes", "NODES", "nodes", func(j *status.Job) int32 { return j.Nodes }),
		textColumn('E', "Dependency", "DEPENDENCY", "dependency", "(null)",
			func(j *status.Job) string { return j.Dependency }),
		{Letter: 'F', Name: "ArrayJobID", Header: "ARRAY_JOB_ID", Fields: idFields,
			Append:  func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, firstID(j)) },
			Compare: func(a, b *status.Job) int { return cmp.Compare(firstID(a), firstID(b)) }},
		numberColumn('G', "GroupID", "GROUP", "gid", func(j *status.Job) int64 { return j.GID }),
		optionalColumn('H', "Sockets", "SOCKETS_PER_NODE", "socketsPerNode", "*",
			func(j *status.Job) int32 { return j.SocketsPerNode }),
		optionalColumn('I', "Cores", "CORES_PER_SOCKET", "coresPerSocket", "*",
			func(j *status.Job) int32 { return j.CoresPerSocket }),
		optionalColumn('J', "Threads", "THREADS_PER_CORE", "threadsPerCore", "*",
			func(j *status.Job) int32 { return j.ThreadsPerCore }),
		{Letter: 'K', Name: "ArrayTaskID", Header: "ARRAY_TASK_ID", Fields: idFields, Compare: CompareID,
			Append: func(b []byte, j *status.Job, s *Settings) []byte { return appendOr(b, ArraySet(j, s), "N/A") }},
		{Letter: 'L', Untruncated: true, Name: "TimeLeft", Header: "TIME_LEFT", Fields: elapsedFields, Value: timeLeft,
			Append: appendTimeLeft},
		{Letter: 'M', Untruncated: true, Name: "TimeUsed", Header: "TIME", Fields: elapsedFields, Value: elapsed,
			Append: func(b []byte, j *status.Job, s *Settings) []byte { return AppendDuration(b, elapsed(j, s)) }},
		untruncated(textColumn('N', "NodeList", "NODELIST", "nodeList", "",
			func(j *status.Job) string { return j.NodeList })),
		customColumn('O', "Contiguous", "CONTIGUOUS", []string{"contiguous"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendBool(b, j.Contiguous) }),
		textColumn('P', "Partition", "PARTITION", "partition", "", func(j *status.Job) string { return j.Partition }),
		{Letter: 'Q', Name: "PriorityLong", Header: "PRIORITY", Fields: []string{"priority"}, Compare: comparePriority,
			Append: func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, j.Priority) }},
		untruncated(customColumn('R', "ReasonList", "NODELIST(REASON)", []string{"state", "reason", "nodeList"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendReasonList(b, j) })),
		timeColumn('S', "StartTime", "START_TIME", "start", func(j *status.Job) int64 { return j.Start }),
		textColumn('T', "State", "STATE", "state", "", func(j *status.Job) string { return j.State }),
		numberColumn('U', "UserID", "UID", "uid", func(j *status.Job) int64 { return j.UID }),
		timeColumn('V', "SubmitTime", "SUBMIT_TIME", "submit", func(j *status.Job) int64 { return j.Submit }),
		textColumn('W', "Licenses", "LICENSES", "licenses", "(null)", func(j *status.Job) string { return j.Licenses }),
		optionalColumn('X', "CoreSpec", "CORE_SPEC", "coreSpec", "N/A",
			func(j *status.Job) int32 { return j.CoreSpec }),
		untruncated(textColumn('Y', "SchedNodes", "SCHEDNODES", "plannedNodes", "(null)",
			func(j *status.Job) string { return j.PlannedNodes })),
		textColumn('Z', "WorkDir", "WORK_DIR", "workDir", "(null)", func(j *status.Job) string { return j.WorkDir }),
	}
}

// firstID returns the id of the job's array, or that of the job.
func firstID(j *status.Job) int64 {
	if j.ArrayJobID != 0 {
		return j.ArrayJobID
	}
	return j.ID
}

// nameColumns returns the columns of -O that have no letter.
func nameColumns() []jobColumn {
	out := append(nameTexts(), nameNumbers()...)
	out = append(out, nameInstants()...)
	out = append(out, nameSpecial()...)
	return append(out, absentColumns()...)
}

func nameTexts() []jobColumn {
	return []jobColumn{
		textColumn(0, "admin_comment", "ADMIN_COMMENT", "adminComment", "(null)",
			func(j *status.Job) string { return j.AdminComment }),
		textColumn(0, "system_comment", "SYSTEM_COMMENT", "message", "(null)",
			func(j *status.Job) string { return j.Message }),
		textColumn(0, "AllocNodes", "ALLOC_NODES", "submitHost", "(null)",
			func(j *status.Job) string { return j.SubmitHost }),
		textColumn(0, "Container", "CONTAINER", "container", "(null)",
			func(j *status.Job) string { return j.Container }),
		textColumn(0, "cpus-per-tres", "CPUS_PER_TRES", "cpusPerTRES", "N/A",
			func(j *status.Job) string { return j.CPUsPerTRES }),
		textColumn(0, "mem-per-tres", "MEM_PER_TRES", "memPerTRES", "N/A",
			func(j *status.Job) string { return j.MemPerTRES }),
		textColumn(0, "HetJobIDSet", "HET_JOB_ID_SET", "hetJobSet", "N/A",
			func(j *status.Job) string { return j.HetJobSet }),
		textColumn(0, "PackJobIDSet", "HET_JOB_ID_SET", "hetJobSet", "N/A",
			func(j *status.Job) string { return j.HetJobSet }),
		textColumn(0, "Network", "NETWORK", "network", "(null)", func(j *status.Job) string { return j.Network }),
		textColumn(0, "ClusterFeature", "CLUSTER_FEATURES", "clusterFeature", "(null)",
			func(j *status.Job) string { return j.ClusterFeature }),
		textColumn(0, "Prefer", "PREFER", "prefer", "(null)", func(j *status.Job) string { return j.Prefer }),
		textColumn(0, "Profile", "PROFILE", "profile", "NotSet", func(j *status.Job) string { return j.Profile }),
		textColumn(0, "Shared", "OVER_SUBSCRIBE", "overSubscribe", "OK",
			func(j *status.Job) string { return j.OverSubscribe }),
		textColumn(0, "STDIN", "STDIN", "stdIn", "/dev/null", func(j *status.Job) string { return j.StdIn }),
		textColumn(0, "tres-alloc", "TRES_ALLOC", "tres", "N/A", func(j *status.Job) string { return j.TRES }),
		textColumn(0, "tres", "TRES_ALLOC", "tres", "N/A", func(j *status.Job) string { return j.TRES }),
		textColumn(0, "tres-per-job", "TRES_PER_JOB", "tresPerJob", "N/A",
			func(j *status.Job) string { return j.TRESPerJob }),
		textColumn(0, "tres-per-socket", "TRES_PER_SOCKET", "tresPerSocket", "N/A",
			func(j *status.Job) string { return j.TRESPerSocket }),
		textColumn(0, "tres-per-task", "TRES_PER_TASK", "tresPerTask", "N/A",
			func(j *status.Job) string { return j.TRESPerTask }),
	}
}

func nameNumbers() []jobColumn {
	return []jobColumn{
		numberColumn(0, "AllocSID", "ALLOC_SID", "submitSID", func(j *status.Job) int32 { return j.SubmitSID }),
		numberColumn(0, "cpus-per-task", "CPUS_PER_TASK", "cpusPerTask", cpusPerTask),
		numberColumn(0, "CPUsPerTask", "CPUS_PER_TASK", "cpusPerTask", cpusPerTask),
		{Name: "MaxCPUs", Header: "MAX_CPUS", Fields: []string{"maxCPUs", "cpus"},
			Append: func(b []byte, j *status.Job, _ *Settings) []byte {
				return appendInt(b, cmp.Or(j.MaxCPUs, j.CPUs))
			}},
		{Name: "MaxNodes", Header: "MAX_NODES", Fields: []string{"maxNodes", "nodes"},
			Append: func(b []byte, j *status.Job, _ *Settings) []byte {
				return appendInt(b, cmp.Or(j.MaxNodes, j.Nodes))
			}},
		numberColumn(0, "NTPerNode", "NTASKS_PER_NODE", "tasksPerNode",
			func(j *status.Job) int32 { return j.TasksPerNode }),
		numberColumn(0, "NumTasks", "TASKS", "tasks", func(j *status.Job) int32 { return j.Tasks }),
		numberColumn(0, "ReqSwitch", "REQ_SWITCH", "switches", func(j *status.Job) int32 { return j.Switches }),
		numberColumn(0, "RestartCnt", "RESTART_COUNT", "restarts", func(j *status.Job) int32 { return j.Restarts }),
		optionalColumn(0, "NTPerCore", "NTASKS_PER_CORE", "tasksPerCore", "N/A",
			func(j *status.Job) int32 { return j.TasksPerCore }),
		optionalColumn(0, "NTPerSocket", "NTASKS_PER_SOCKET", "tasksPerSocket", "N/A",
			func(j *status.Job) int32 { return j.TasksPerSocket }),
		customColumn(0, "BatchFlag", "BATCH_FLAG", []string{"noBatch"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendBool(b, !j.NoBatch) }),
		customColumn(0, "Requeue", "REQUEUE", []string{"requeue"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendBool(b, j.Requeue) }),
		customColumn(0, "exit_code", "EXIT_CODE", []string{"exitCode", "signal"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendInt(b, j.ExitCode<<8|j.Signal) }),
		customColumn(0, "DerivedEC", "DERIVED_EC", []string{"derivedCode", "derivedSignal"},
			func(b []byte, j *status.Job, _ *Settings) []byte {
				return appendInt(b, j.DerivedCode<<8|j.DerivedSignal)
			}),
	}
}

func nameInstants() []jobColumn {
	return []jobColumn{
		timeColumn(0, "AccrueTime", "ACCRUE_TIME", "accrue", func(j *status.Job) int64 { return j.Accrue }),
		timeColumn(0, "EligibleTime", "ELIGIBLE_TIME", "eligible", func(j *status.Job) int64 { return j.Eligible }),
		timeColumn(0, "Deadline", "DEADLINE", "deadline", func(j *status.Job) int64 { return j.Deadline }),
		timeColumn(0, "LastSchedEval", "LAST_SCHED_EVAL", "lastSched",
			func(j *status.Job) int64 { return j.LastSched }),
		timeColumn(0, "PreemptTime", "PREEMPT_TIME", "preemptTime", func(j *status.Job) int64 { return j.PreemptTime }),
		timeColumn(0, "ResizeTime", "RESIZE_TIME", "resizeTime", func(j *status.Job) int64 { return j.ResizeTime }),
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
		customColumn(0, "Cluster", "CLUSTER", nil,
			func(b []byte, j *status.Job, s *Settings) []byte {
				return appendOr(b, cmp.Or(j.Cluster, s.Cluster), "berth")
			}),
		customColumn(0, "Origin", "ORIGIN", nil,
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendOr(b, j.Cluster, "NA") }),
		customColumn(0, "OriginRaw", "ORIGIN_RAW", idFields,
			func(b []byte, j *status.Job, _ *Settings) []byte {
				if j.Cluster == "" {
					return append(b, "NA"...)
				}
				return strconv.AppendInt(b, status.MemberOf(j.ID), 10)
			}),
		customColumn(0, "gres", "TRES_PER_NODE", []string{"gres"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendTRESPerNode(b, j) }),
		customColumn(0, "StdOut", "STDOUT", files,
			func(b []byte, j *status.Job, _ *Settings) []byte { return appendFile(b, j.StdOut, j) }),
		customColumn(0, "StdErr", "STDERR", files, func(b []byte, j *status.Job, _ *Settings) []byte {
			if j.NoBatch {
				return append(b, "N/A"...)
			}
			return appendFile(b, cmp.Or(j.StdErr, j.StdOut), j)
		}),
		customColumn(0, "MinTime", "TIME_MIN", []string{"timeMin"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return AppendDuration(b, int64(j.TimeMin)*60) }),
		customColumn(0, "PendingTime", "PENDING_TIME", []string{"state", "submit", "start"}, appendPendingTime),
		customColumn(0, "Wait4Switch", "WAIT4SWITCH", []string{"switchesWait"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return AppendDuration(b, int64(j.SwitchesWait)) }),
		customColumn(0, "DelayBoot", "DELAY_BOOT", []string{"delayBoot"},
			func(b []byte, j *status.Job, _ *Settings) []byte { return AppendDuration(b, j.DelayBoot) }),
		textColumn(0, "tres-bind", "TRES_BIND", "tresBind", "N/A", func(j *status.Job) string { return j.TRESBind }),
		textColumn(0, "tres-freq", "TRES_FREQ", "tresFreq", "N/A", func(j *status.Job) string { return j.TRESFreq }),
		textColumn(0, "MCSLabel", "MCSLABEL", "mcsLabel", "(null)", func(j *status.Job) string { return j.MCSLabel }),
		customColumn(0, "HetJobID", "HET_JOB_ID", idFields, het(lead)),
		customColumn(0, "HetJobOffset", "HET_JOB_OFFSET", idFields, het(offset)),
		customColumn(0, "PackJobID", "HET_JOB_ID", idFields, het(lead)),
		customColumn(0, "PackJobOffset", "HET_JOB_OFFSET", idFields, het(offset)),
	}
}

// appendPendingTime appends the seconds between submission and start, or now.
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

// absentColumns returns the columns of -O that have no meaning here. They show
// Slurm's value for unset fields.
func absentColumns() []jobColumn {
	list := []struct{ name, header, value string }{
		{"AssocID", "ASSOC_ID", "0"}, {"BoardsPerNode", "BOARDS_PER_NODE", "0"},
		{"BurstBuffer", "BURST_BUFFER", "(null)"}, {"BurstBufferState", "BURST_BUFFER_STATE", "(null)"},
		{"NTPerBoard", "NTASKS_PER_BOARD", "0"},
		{"Reboot", "REBOOT", "0"},
		{"SiblingsActive", "ACTIVE_SIBLINGS", "NA"}, {"SiblingsActiveRaw", "ACTIVE_SIBLINGS_RAW", "NA"},
		{"SiblingsViable", "VIABLE_SIBLINGS", "NA"},
		{"SiblingsViableRaw", "VIALBLE_SIBLINGS_RAW", "NA"}, {"SPerBoard", "SOCKETS_PER_BOARD", "0"},
	}
	out := make([]jobColumn, 0, len(list))
	for _, c := range list {
		out = append(out, constantColumn(0, c.name, c.header, c.value))
	}
	return out
}
