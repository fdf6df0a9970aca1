package format

import (
	"fmt"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// AcctRow is a line of sacct: a run of a job, or a step of it.
type AcctRow struct {
	Job  *status.Record
	Step *status.StepRecord // nil: the job itself
}

// AcctSettings are what a value of sacct depends on besides its row.
type AcctSettings struct {
	Settings
	Unit byte // of --units: K, M, G, T or P; 0: the unit depends on the value
	// From and To are the bounds of times with -T; 0: none.
	From, To int64
	// Sstat selects the forms of sstat where they differ from those of sacct.
	Sstat bool
}

// AcctValue returns the value of a field of AcctFields for a row.
func AcctValue(name string, r *AcctRow, s *AcctSettings) string {
	if f, ok := acctBoth[name]; ok {
		return f(r, s)
	}
	if r.Step != nil {
		if f, ok := acctStep[name]; ok {
			return f(r.Step, s)
		}
		if f, ok := acctUsage[name]; ok {
			return f(r.Step, s)
		}
		return ""
	}
	if f, ok := acctJob[name]; ok {
		return f(r.Job, s)
	}
	return ""
}

// AcctID returns the job's id as sacct shows it: 12, 12_3, 12+1.
func AcctID(r *status.Record) string {
	switch {
	case r.ArrayJobID != 0 && strings.ContainsAny(r.ArrayTaskID, "[,-:%"):
		return itoa(r.ArrayJobID) + "_[" + strings.Trim(r.ArrayTaskID, "[]") + "]"
	case r.ArrayJobID != 0 && r.ArrayTaskID != "":
		return itoa(r.ArrayJobID) + "_" + r.ArrayTaskID
	case r.HetJobID != 0:
		return itoa(r.HetJobID) + "+" + itoa(r.HetOffset)
	}
	return itoa(r.ID)
}

// acctBoth are the fields that both jobs and steps have.
var acctBoth = map[string]func(*AcctRow, *AcctSettings) string{
	"JobID":    func(r *AcctRow, _ *AcctSettings) string { return AcctID(r.Job) + stepSuffix(r) },
	"JobIDRaw": func(r *AcctRow, _ *AcctSettings) string { return itoa(r.Job.ID) + stepSuffix(r) },
	"JobName": func(r *AcctRow, _ *AcctSettings) string {
		if r.Step != nil {
			return r.Step.Name
		}
		return r.Job.Name
	},
	"Account":    func(r *AcctRow, _ *AcctSettings) string { return r.Job.Account },
	"Cluster":    func(r *AcctRow, _ *AcctSettings) string { return r.Job.Cluster },
	"AllocCPUS":  func(r *AcctRow, _ *AcctSettings) string { return itoa(acctCPUs(r)) },
	"NCPUS":      func(r *AcctRow, _ *AcctSettings) string { return itoa(acctCPUs(r)) },
	"ReqCPUS":    func(r *AcctRow, _ *AcctSettings) string { return itoa(reqCPUs(r)) },
	"AllocNodes": func(r *AcctRow, _ *AcctSettings) string { return itoa(acctNodes(r)) },
	"NNodes": func(r *AcctRow, _ *AcctSettings) string {
		if r.Step == nil && r.Job.Nodes == 0 {
			return itoa(r.Job.ReqNodes)
		}
		return itoa(acctNodes(r))
	},
	"AllocTRES": func(r *AcctRow, s *AcctSettings) string {
		if r.Step != nil {
			return tresText(r.Step.AllocTRES, s)
		}
		return tresText(r.Job.AllocTRES, s)
	},
	"NodeList": func(r *AcctRow, _ *AcctSettings) string {
		switch {
		case r.Step != nil:
			return r.Step.NodeList
		case r.Job.NodeList == "":
			return "None assigned"
		}
		return r.Job.NodeList
	},
	"State": func(r *AcctRow, _ *AcctSettings) string { return acctState(r) },
	"ExitCode": func(r *AcctRow, _ *AcctSettings) string {
		if r.Step != nil {
			return exitText(r.Step.ExitCode, r.Step.Signal)
		}
		return exitText(r.Job.ExitCode, r.Job.Signal)
	},
	"Start": func(r *AcctRow, s *AcctSettings) string {
		start, _ := acctTimes(r, s)
		return instantText(start, "Unknown", &s.Settings)
	},
	"End": func(r *AcctRow, s *AcctSettings) string {
		_, end := acctTimes(r, s)
		return instantText(end, "Unknown", &s.Settings)
	},
	"Submit": func(r *AcctRow, s *AcctSettings) string {
		if r.Step != nil {
			return instantText(r.Step.Start, "Unknown", &s.Settings)
		}
		return instantText(r.Job.Submit, "Unknown", &s.Settings)
	},
	"Eligible": func(r *AcctRow, s *AcctSettings) string {
		if r.Step != nil {
			return instantText(r.Step.Start, "Unknown", &s.Settings)
		}
		return instantText(r.Job.Eligible, "Unknown", &s.Settings)
	},
	"ReqNodes": func(r *AcctRow, _ *AcctSettings) string {
		if r.Step != nil {
			return itoa(r.Step.Nodes)
		}
		return itoa(r.Job.ReqNodes)
	},
	"Elapsed":    func(r *AcctRow, s *AcctSettings) string { return longDuration(AcctElapsed(r, s)) },
	"ElapsedRaw": func(r *AcctRow, s *AcctSettings) string { return itoa(AcctElapsed(r, s)) },
	"CPUTime": func(r *AcctRow, s *AcctSettings) string {
		return longDuration(AcctElapsed(r, s) * int64(acctCPUs(r)))
	},
	"CPUTimeRAW": func(r *AcctRow, s *AcctSettings) string { return itoa(AcctElapsed(r, s) * int64(acctCPUs(r))) },
	"TotalCPU":   func(r *AcctRow, _ *AcctSettings) string { u, y := acctUsed(r); return cpuText(u + y) },
	"UserCPU":    func(r *AcctRow, _ *AcctSettings) string { u, _ := acctUsed(r); return cpuText(u) },
	"SystemCPU":  func(r *AcctRow, _ *AcctSettings) string { _, y := acctUsed(r); return cpuText(y) },
	"Suspended": func(r *AcctRow, _ *AcctSettings) string {
		if r.Step != nil {
			return longDuration(r.Step.Suspended)
		}
		return longDuration(r.Job.Suspended)
	},
	"ConsumedEnergy":    consumedEnergy,
	"ConsumedEnergyRaw": consumedEnergy,

	"ReqCPUFreq":    frequency,
	"ReqCPUFreqMin": frequency,
	"ReqCPUFreqMax": frequency,
	"ReqCPUFreqGov": frequency,
	"Container": func(r *AcctRow, _ *AcctSettings) string {
		if r.Step != nil {
			return r.Step.Container
		}
		return r.Job.Container
	},
	"SubmitLine": func(r *AcctRow, _ *AcctSettings) string {
		if r.Step != nil {
			return r.Step.SubmitLine
		}
		return r.Job.SubmitLine
	},
}

func stepSuffix(r *AcctRow) string {
	if r.Step == nil {
		return ""
	}
	return "." + r.Step.Step
}

func frequency(r *AcctRow, _ *AcctSettings) string {
	if r.Step != nil && r.Step.Step == "batch" {
		return "0"
	}
	return "Unknown"
}

// consumedEnergy returns the energy, which is not measured: as in Slurm, it is unknown of a
// running job, and 0 of other jobs and of steps.
func consumedEnergy(r *AcctRow, _ *AcctSettings) string {
	if r.Step == nil && r.Job.Start != 0 && r.Job.End == 0 {
		return ""
	}
	return "0"
}

// acctCPUs returns the number of allocated CPUs, or as in Slurm that of the
// requested CPUs of a job that has never run.
func acctCPUs(r *AcctRow) int32 {
	switch {
	case r.Step != nil:
		return r.Step.CPUs
	case r.Job.CPUs == 0:
		return r.Job.ReqCPUs
	}
	return r.Job.CPUs
}

// AcctFlagNames are the flags that sacct -F accepts.
var AcctFlagNames = []string{"SchedSubmit", "SchedMain", "SchedBackfill", "StartRecieved"}

// AcctFlags returns the flags of a job. All jobs that have started have
// SchedBackfill, as the only planner backfills.
func AcctFlags(r *status.Record) []string {
	if r.Start == 0 {
		return nil
	}
	return []string{"SchedBackfill"}
}

func reqCPUs(r *AcctRow) int32 {
	if r.Step != nil {
		return r.Step.CPUs
	}
	return r.Job.ReqCPUs
}

func acctNodes(r *AcctRow) int32 {
	if r.Step != nil {
		return r.Step.Nodes
	}
	return r.Job.Nodes
}

// exitText returns the exit code and signal as sacct shows them. It subtracts 128 from
// codes of 128 or more, by which a shell reports signals.
func exitText(code, signal int32) string {
	if code >= 128 {
		code -= 128
	}
	return itoa(code) + ":" + itoa(signal)
}

// acctState returns the state: "CANCELLED by 1000" if a user cancelled the job or
// the step.
func acctState(r *AcctRow) string {
	if s := r.Step; s != nil {
		if s.State == status.StateCancelled && s.KilledByID != nil {
			return "CANCELLED by " + itoa(*s.KilledByID)
		}
		return s.State
	}
	if r.Job.State == status.StateCancelled && r.Job.KilledBy != "" && r.Job.KilledByID >= 0 {
		return "CANCELLED by " + itoa(r.Job.KilledByID)
	}
	return r.Job.State
}

// acctTimes returns start and end within the bounds of -T.
func acctTimes(r *AcctRow, s *AcctSettings) (start, end int64) {
	start, end = r.Job.Start, r.Job.End
	if r.Step != nil {
		start, end = r.Step.Start, r.Step.End
	}
	if s.From != 0 && start != 0 && start < s.From {
		start = s.From
	}
	if s.To != 0 && (end == 0 || end > s.To) && start != 0 {
		end = s.To
	}
	return start, end
}

// AcctElapsed returns how many seconds the job or step has run.
func AcctElapsed(r *AcctRow, s *AcctSettings) int64 {
	start, end := acctTimes(r, s)
	if start == 0 {
		return 0
	}
	if end == 0 {
		end = s.Now
	}
	suspended := r.Job.Suspended
	if r.Step != nil {
		suspended = r.Step.Suspended
	}
	return max(0, end-start-suspended)
}

// acctUsed returns user and system CPU time in microseconds. That of a job is the
// sum of its steps.
func acctUsed(r *AcctRow) (user, system int64) {
	if r.Step != nil {
		return r.Step.UserCPU, r.Step.SystemCPU
	}
	for i := range r.Job.Steps {
		user += r.Job.Steps[i].UserCPU
		system += r.Job.Steps[i].SystemCPU
	}
	return user, system
}

// cpuText returns a CPU time as [D-][HH:]MM:SS, with milliseconds if it is less than
// an hour.
func cpuText(micros int64) string {
	if micros < 1000 {
		return "00:00:00"
	}
	sec := micros / 1e6
	text := fmt.Sprintf("%02d:%02d", sec/60%60, sec%60)
	switch {
	case sec >= 86400:
		text = fmt.Sprintf("%d-%02d:%s", sec/86400, sec/3600%24, text)
	case sec >= 3600:
		text = fmt.Sprintf("%02d:%s", sec/3600, text)
	default:
		text += fmt.Sprintf(".%03d", micros/1000%1000)
	}
	return text
}

var acctJob = map[string]func(*status.Record, *AcctSettings) string{
	"AdminComment": func(r *status.Record, _ *AcctSettings) string { return r.AdminComment },
	"Comment": func(r *status.Record, _ *AcctSettings) string {
		if !hasEnded(r) { // Slurm's controller sends the comment with the end of the job
			return ""
		}
		return r.Comment
	},
	"SystemComment": func(r *status.Record, _ *AcctSettings) string { return r.SystemComment },
	"Constraints":   func(r *status.Record, _ *AcctSettings) string { return r.Constraints },
	"DBIndex":       func(r *status.Record, _ *AcctSettings) string { return itoa(r.DBIndex) },
	"DerivedExitCode": func(r *status.Record, _ *AcctSettings) string {
		return itoa(r.Derived) + ":" + itoa(r.DerivedSignal)
	},
	"GID":       func(r *status.Record, _ *AcctSettings) string { return itoa(r.GroupID) },
	"Group":     func(r *status.Record, _ *AcctSettings) string { return r.Group },
	"Partition": func(r *status.Record, _ *AcctSettings) string { return r.Partition },
	"Priority":  func(r *status.Record, _ *AcctSettings) string { return itoa(r.Priority) },
	"QOS":       func(r *status.Record, _ *AcctSettings) string { return r.QOS },
	"QOSRAW":    func(r *status.Record, _ *AcctSettings) string { return r.QOS },
	"Reason": func(r *status.Record, _ *AcctSettings) string {
		if r.Reason == "" {
			return "None"
		}
		return r.Reason
	},
	"ReqMem": func(r *status.Record, s *AcctSettings) string {
		if m, ok := tresOf(r.ReqTRES, "mem"); ok {
			return memText(m, s)
		}
		return "0"
	},
	"ReqTRES":     func(r *status.Record, s *AcctSettings) string { return tresText(r.ReqTRES, s) },
	"Reservation": func(r *status.Record, _ *AcctSettings) string { return r.Reservation },
	"Reserved":    func(r *status.Record, s *AcctSettings) string { return longDuration(waitTime(r, s)) },
	"ResvCPU": func(r *status.Record, s *AcctSettings) string {
		return longDuration(waitTime(r, s) * int64(r.ReqCPUs))
	},
	"ResvCPURAW": func(r *status.Record, s *AcctSettings) string {
		return itoa(int64(uint32(waitTime(r, s) * int64(r.ReqCPUs)))) // as Slurm shows a negative time
	},
	"Timelimit": func(r *status.Record, _ *AcctSettings) string {
		switch {
		case r.TimeLimit < 0:
			return "UNLIMITED"
		case r.TimeLimit == 0:
			return "Partition_Limit"
		}
		return longDuration(int64(r.TimeLimit) * 60)
	},
	"TimelimitRaw": func(r *status.Record, _ *AcctSettings) string {
		switch {
		case r.TimeLimit < 0:
			return "UNLIMITED"
		case r.TimeLimit == 0:
			return "Partition_Limit"
		}
		return itoa(r.TimeLimit)
	},
	"UID":     func(r *status.Record, _ *AcctSettings) string { return itoa(r.UserID) },
	"User":    func(r *status.Record, _ *AcctSettings) string { return r.User },
	"WCKey":   func(r *status.Record, _ *AcctSettings) string { return r.WCKey },
	"WorkDir": func(r *status.Record, _ *AcctSettings) string { return r.WorkDir },
	"WCKeyID": func(*status.Record, *AcctSettings) string { return "0" },
	"AssocID": func(*status.Record, *AcctSettings) string { return "" },
	"Flags":   func(r *status.Record, _ *AcctSettings) string { return strings.Join(AcctFlags(r), ",") },
}

// hasEnded reports whether the run of a record has ended; a requeued job has a record of each run.
func hasEnded(r *status.Record) bool {
	return r.State == "REQUEUED" || status.JobState(r.State).IsFinal()
}

// waitTime returns how long the job was eligible before it started; it is negative, and shown
// as INVALID, if the job becomes eligible later.
func waitTime(r *status.Record, s *AcctSettings) int64 {
	if r.Eligible == 0 {
		return 0
	}
	until := r.Start
	if until == 0 {
		until = s.Now
	}
	return until - r.Eligible
}
