package format

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/internal/printable"
	"github.com/berth-hpc/berth/translate/hostlist"
	"github.com/berth-hpc/berth/translate/status"
)

// JobRecord returns the record of a job in scontrol show job. s.Details corresponds
// to -d.
func JobRecord(j *status.Job, s *Settings) *Record {
	r := new(Record)
	r.line(append(jobIDs(j, s), pair("JobName", j.Name))...)
	if j.HetJobID != 0 {
		r.line("HetJobIdSet=" + j.HetJobSet)
	}
	r.line("UserId="+nameAndID(j.User, j.UID), "GroupId="+nameAndID(j.Group, j.GID),
		pair("MCS_label", cmp.Or(j.MCSLabel, "N/A")))
	// No wckey: as in Slurm with TrackWCKey=No, only squeue and sacct show it.
	r.line(
		"Priority="+itoa(j.Priority), "Nice="+itoa(j.Nice),
		pair("Account", orNull(j.Account)), pair("QOS", orNull(j.QOS)),
	)
	reason := strings.ReplaceAll(cmp.Or(j.Reason, "None"), " ", "_")
	r.line("JobState="+j.State, pair("Reason", reason), pair("Dependency", orNull(j.Dependency)))
	r.line("Requeue="+Digit(j.Requeue), "Restarts="+itoa(j.Restarts), "BatchFlag="+Digit(!j.NoBatch), "Reboot=0",
		"ExitCode="+itoa(j.ExitCode)+":"+itoa(j.Signal))
	if s.Details {
		r.line("DerivedExitCode=" + itoa(j.DerivedCode) + ":" + itoa(j.DerivedSignal))
	}
	jobTimes(r, j, s)
	jobPlace(r, j)
	jobShape(r, j, s)
	jobFiles(r, j)
	jobEnd(r, j)
	return r
}

func jobIDs(j *status.Job, s *Settings) []string {
	out := []string{"JobId=" + itoa(j.ID)}
	if j.ArrayJobID != 0 {
		out = append(out, "ArrayJobId="+itoa(j.ArrayJobID), "ArrayTaskId="+ArraySet(j, s))
		if _, throttle, ok := strings.Cut(j.ArrayTaskID, "%"); ok {
			out = append(out, "ArrayTaskThrottle="+throttle)
		} else if !j.ArrayWhole && j.ArrayMax > 0 {
			out = append(out, "ArrayTaskThrottle="+itoa(j.ArrayMax))
		}
	}
	if j.HetJobID != 0 {
		out = append(out, "HetJobId="+itoa(j.HetJobID), "HetJobOffset="+itoa(j.HetOffset))
	}
	return out
}

func nameAndID(name string, id int64) string { return printable.Escape(name) + "(" + itoa(id) + ")" }

func instantText(unix int64, none string, s *Settings) string {
	return string(AppendInstant(nil, unix, none, s))
}

// longDuration returns a duration as scontrol shows it.
func longDuration(seconds int64) string { return string(AppendDurationLong(nil, seconds)) }

func limitLong(minutes int32) string {
	if minutes < 0 {
		return "UNLIMITED"
	}
	return longDuration(int64(minutes) * 60)
}

func jobTimes(r *Record, j *status.Job, s *Settings) {
	minimum := "N/A"
	if j.TimeMin > 0 {
		minimum = limitLong(j.TimeMin)
	}
	r.line("RunTime="+longDuration(elapsed(j, s)), "TimeLimit="+limitLong(j.TimeLimit), "TimeMin="+minimum)
	r.line("SubmitTime="+instantText(j.Submit, "Unknown", s), "EligibleTime="+instantText(j.Eligible, "Unknown", s))
	if j.ResizeTime != 0 {
		r.line("ResizeTime=" + instantText(j.ResizeTime, "None", s))
	}
	r.line("AccrueTime=" + instantText(j.Accrue, "Unknown", s))
	end := "Unknown"
	if j.End != 0 || j.Start != 0 && j.TimeLimit >= 0 {
		end = string(appendEnd(nil, j, s))
	}
	r.line("StartTime="+instantText(j.Start, "Unknown", s), "EndTime="+end,
		"Deadline="+instantText(j.Deadline, "N/A", s))
	if j.PreemptTime != 0 {
		at := instantText(j.PreemptTime, "None", s)
		r.line("PreemptEligibleTime="+at, "PreemptTime="+at)
	}
	r.line("SuspendTime="+instantText(j.SuspendTime, "None", s), "SecsPreSuspend="+itoa(j.PreSuspend),
		"LastSchedEval="+instantText(j.LastSched, "Unknown", s), "Scheduler="+cmp.Or(j.Scheduler, "Main"))
}

func jobPlace(r *Record, j *status.Job) {
	r.line(pair("Partition", j.Partition),
		"AllocNode:Sid="+printable.Escape(cmp.Or(j.SubmitHost, "N/A"))+":"+itoa(j.SubmitSID))
	r.line(pair("ReqNodeList", orNull(j.ReqNodes)), pair("ExcNodeList", orNull(j.ExcNodes)))
	r.line(pair("NodeList", j.NodeList))
	if j.PlannedNodes != "" && pending(j) {
		r.line(pair("SchedNodeList", j.PlannedNodes))
	}
	if j.BatchHost != "" {
		r.line(pair("BatchHost", j.BatchHost))
	}
}

// star returns a requested number, or * if it is 0.
func star(n int32) string {
	if n == 0 {
		return "*"
	}
	return itoa(n)
}

func jobShape(r *Record, j *status.Job, s *Settings) {
	tasks := "N/A"
	if j.Tasks > 0 {
		tasks = itoa(j.Tasks)
	}
	count := itoa(j.Nodes)
	if pending(j) && j.MaxNodes > 0 {
		count = itoa(min(j.Nodes, j.MaxNodes)) + "-" + itoa(j.MaxNodes)
	}
	r.line("NumNodes="+count, "NumCPUs="+itoa(j.CPUs), "NumTasks="+tasks,
		"CPUs/Task="+itoa(max(1, j.CPUsPerTask)),
		"ReqB:S:C:T=0:0:"+star(j.CoresPerSocket)+":"+star(j.ThreadsPerCore))
	r.line(pair("TRES", orNull(j.TRES)))
	r.line("Socks/Node="+star(j.SocketsPerNode),
		"NtasksPerN:B:S:C="+itoa(j.TasksPerNode)+":0:"+star(j.TasksPerSocket)+":"+star(j.TasksPerCore),
		"CoreSpec="+star(j.CoreSpec))
	if s.Details && j.NodeList != "" {
		layout(r, j)
	}
	memory := "MinMemoryNode="
	if j.MemoryPerCPU {
		memory = "MinMemoryCPU="
	}
	r.line("MinCPUsNode="+itoa(minCPUs(j)), memory+string(AppendMemory(nil, j.MinMemory, s)),
		"MinTmpDiskNode="+string(AppendMemory(nil, j.TmpDisk, s)))
	r.line(pair("Features", orNull(j.Features)), "DelayBoot="+delayBoot(j.DelayBoot))
	if j.ClusterFeature != "" {
		r.line(pair("ClusterFeatures", j.ClusterFeature))
	}
	if j.Prefer != "" {
		r.line(pair("Prefer", j.Prefer))
	}
	if j.Reservation != "" {
		r.line(pair("Reservation", j.Reservation))
	}
	r.line("OverSubscribe="+cmp.Or(j.OverSubscribe, "OK"), "Contiguous="+Digit(j.Contiguous),
		pair("Licenses", orNull(j.Licenses)), pair("Network", orNull(j.Network)))
}

func delayBoot(seconds int64) string {
	if seconds < 0 {
		return "UNLIMITED"
	}
	return longDuration(seconds)
}

// layout adds the resources that are allocated on each node. Consecutive nodes with
// the same resources share a line.
func layout(r *Record, j *status.Job) {
	r.line(pair("JOB_GRES", orNull(jobGRES(j))))
	var names []string
	last := ""
	flush := func() {
		if len(names) > 0 {
			r.line("  Nodes=" + hostlist.Fold(names) + " " + last)
			names = nil
		}
	}
	for part := range strings.SplitSeq(j.Layout, ";") {
		f := append(strings.Split(part, " "), "", "", "")
		text := "CPU_IDs=" + printable.Escape(f[1]) + " Mem=" + printable.Escape(f[2]) +
			" GRES=" + printable.Escape(f[3])
		if f[0] == "" {
			continue
		}
		if text != last {
			flush()
		}
		names, last = append(names, printable.Escape(f[0])), text
	}
	flush()
}

// jobGRES returns the sum of the generic resources on all nodes of the layout.
func jobGRES(j *status.Job) string {
	sum := map[string]int64{}
	var order []string
	for part := range strings.SplitSeq(j.Layout, ";") {
		f := append(strings.Split(part, " "), "", "", "")
		for g := range strings.SplitSeq(f[3], ",") {
			g, _, _ = strings.Cut(g, "(")
			at := strings.LastIndexByte(g, ':')
			n, err := strconv.ParseInt(g[at+1:], 10, 64)
			if at < 0 || err != nil {
				continue
			}
			if _, seen := sum[g[:at]]; !seen {
				order = append(order, g[:at])
			}
			sum[g[:at]] += n
		}
	}
	for i, name := range order {
		order[i] = name + ":" + itoa(sum[name])
	}
	return strings.Join(order, ",")
}

func jobFiles(r *Record, j *status.Job) {
	r.line(pair("Command", orNull(j.Command)))
	r.line(pair("WorkDir", orNull(j.WorkDir)))
	for _, c := range []struct{ key, text string }{
		{"AdminComment", j.AdminComment}, {"SystemComment", j.Message}, {"Comment", j.Comment},
	} {
		if c.text != "" {
			r.line(pair(c.key, c.text) + " ")
		}
	}
	if j.NoBatch {
		return
	}
	r.line("StdErr=" + printable.Escape(string(appendFile(nil, cmp.Or(j.StdErr, j.StdOut), j))))
	r.line(pair("StdIn", cmp.Or(j.StdIn, "/dev/null")))
	r.line("StdOut=" + printable.Escape(string(appendFile(nil, j.StdOut, j))))
}

// jobFlags returns the flags of a job, which Slurm does not separate.
func jobFlags(j *status.Job) string {
	flags := ""
	if j.EnforceBind != "" {
		flags += "GresEnforceBind=" + j.EnforceBind
	}
	if j.KillInvalid != "" {
		flags += "KillOInInvalidDependent=" + j.KillInvalid
	}
	if j.SpreadJob {
		flags += "SpreadJob=Yes"
	}
	return flags
}

func jobEnd(r *Record, j *status.Job) {
	if j.Switches != 0 {
		r.line("Switches=" + itoa(j.Switches) + "@" + longDuration(int64(j.SwitchesWait)))
	}
	if j.CPUFreq != "" {
		r.line(j.CPUFreq)
	}
	r.line("Power=" + j.Power)
	if flags := jobFlags(j); flags != "" {
		r.line(flags)
	}
	node := ""
	if j.GRES != "" {
		node = string(appendTRESPerNode(nil, j))
	}
	for _, c := range []struct{ key, text string }{
		{"CpusPerTres", j.CPUsPerTRES}, {"MemPerTres", j.MemPerTRES},
		{"TresBind", j.TRESBind}, {"TresFreq", j.TRESFreq}, {"TresPerJob", j.TRESPerJob},
		{"TresPerNode", node}, {"TresPerSocket", j.TRESPerSocket}, {"TresPerTask", j.TRESPerTask},
		{"Container", j.Container},
	} {
		if c.text != "" {
			r.line(pair(c.key, c.text))
		}
	}
	if j.MailType != "" {
		r.line(pair("MailUser", cmp.Or(j.MailUser, j.User)), pair("MailType", j.MailType))
	}
	if j.TasksPerTRES > 0 {
		r.line("NtasksPerTRES=" + itoa(j.TasksPerTRES))
	}
	r.line("")
}
