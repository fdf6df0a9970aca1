package format

import (
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/translate/status"
)

// The formats of squeue: the default, with -l, and with --start.
const (
	JobDefault = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
	JobLong    = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
	JobStart   = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
)

// AppendJobID appends the id in the form that users see: 12, 12_3, 12_[0-9%2], 12+1.
func AppendJobID(b []byte, j *status.Job) []byte {
	switch {
	case j.ArrayJobID != 0:
		b = appendInt(b, j.ArrayJobID)
		if _, err := strconv.Atoi(j.ArrayTaskID); err == nil && !j.ArrayWhole {
			return append(append(b, '_'), j.ArrayTaskID...)
		}
		return append(append(append(b, "_["...), j.ArrayTaskID...), ']')
	case j.HetJobID != 0:
		b = append(appendInt(b, j.HetJobID), '+')
		return appendInt(b, j.HetOffset)
	}
	return appendInt(b, j.ID)
}

// A long set of array tasks is truncated, and with it the id, unless
// SLURM_BITSTR_LEN sets the maximum length (squeue(1)).
const (
	arraySetLen = 64 // as Slurm counts: one more than is shown
	arrayIDLen  = 31
)

// ArrayLen returns the Settings.ArrayLen of a value of SLURM_BITSTR_LEN.
func ArrayLen(env string) *int {
	n, err := strconv.Atoi(env)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// ArraySet returns the set of array tasks that the row stands for, truncated as in
// Slurm. The limit on concurrent tasks is not truncated.
func ArraySet(j *status.Job, s *Settings) string {
	limitLen := arraySetLen
	if s.ArrayLen != nil {
		limitLen = *s.ArrayLen
	}
	set, limit, limited := strings.Cut(j.ArrayTaskID, "%")
	if limitLen > 4 && len(set) > limitLen-3 {
		set = set[:limitLen-4] + "..."
	}
	if limited {
		set += "%" + limit
	}
	return set
}

// appendShownID appends the id as squeue shows it.
func appendShownID(b []byte, j *status.Job, s *Settings) []byte {
	if j.ArrayJobID == 0 || len(j.ArrayTaskID) < arrayIDLen/2 {
		return AppendJobID(b, j)
	}
	from := len(b)
	b = append(appendInt(b, j.ArrayJobID), "_["...)
	b = append(append(b, ArraySet(j, s)...), ']')
	if s.ArrayLen == nil && len(b)-from > arrayIDLen {
		b = b[:from+arrayIDLen]
	}
	return b
}

// JobID returns the id in the form that users see.
func JobID(j *status.Job) string { return string(AppendJobID(nil, j)) }

// pending reports whether the job is pending or held.
func pending(j *status.Job) bool {
	return status.JobState(j.State).IsPending()
}

// running reports whether the job uses up its time limit.
func running(j *status.Job) bool { return j.State == status.StateRunning }

// Elapsed returns how long the job has run, in seconds, without the time that it
// was suspended. It is 0 before the start.
func Elapsed(j *status.Job, s *Settings) int64 { return elapsed(j, s) }

func elapsed(j *status.Job, s *Settings) int64 {
	if pending(j) || j.Start == 0 {
		return 0
	}
	if j.State == status.StateSuspended {
		return j.PreSuspend
	}
	end := s.Now
	if !running(j) && j.End != 0 && j.End < end {
		end = j.End
	}
	if j.SuspendTime != 0 { // the time of the last suspension or resumption
		return max(0, end-j.SuspendTime) + j.PreSuspend
	}
	return max(0, end-j.Start)
}

func appendTimeLeft(b []byte, j *status.Job, s *Settings) []byte {
	if j.TimeLimit < 0 {
		return append(b, "UNLIMITED"...)
	}
	return AppendDuration(b, int64(j.TimeLimit)*60-elapsed(j, s))
}

// endTime returns the end, or the expected end of a job that has a start, or 0.
func endTime(j *status.Job) int64 {
	if j.End == 0 && j.Start != 0 && j.TimeLimit >= 0 {
		return j.Start + int64(j.TimeLimit)*60
	}
	return j.End
}

func appendEnd(b []byte, j *status.Job, s *Settings) []byte {
	if neverEnds(j) {
		return append(b, "NONE"...)
	}
	return AppendInstant(b, endTime(j), "N/A", s)
}

// neverEnds reports whether the job starts at a known time and has no time limit.
func neverEnds(j *status.Job) bool { return j.End == 0 && j.Start != 0 && j.TimeLimit < 0 }

// appendReasonList appends %R: the nodes, or the reason why there are none.
func appendReasonList(b []byte, j *status.Job) []byte {
	switch j.State {
	case "PENDING", "SPECIAL_EXIT", "RESV_DEL_HOLD", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "FAILED":
		b = append(b, '(')
		return append(appendOr(b, j.Reason, "None"), ')')
	}
	return append(b, j.NodeList...)
}

// appendPriority appends %p: the priority as a fraction of the maximum.
func appendPriority(b []byte, j *status.Job) []byte {
	return strconv.AppendFloat(b, float64(j.Priority)/4294967295, 'f', 14, 64)
}

func appendTRESPerNode(b []byte, j *status.Job) []byte {
	if j.GRES == "" {
		return append(b, "N/A"...)
	}
	for i, g := range strings.Split(j.GRES, ",") {
		if i > 0 {
			b = append(b, ',')
		}
		if !strings.HasPrefix(g, "gres:") {
			b = append(b, "gres:"...)
		}
		b = append(b, g...)
	}
	return b
}

// appendFile appends path, or else the default path of the job's output.
func appendFile(b []byte, path string, j *status.Job) []byte {
	return appendOr(b, path, j.WorkDir+"/slurm-"+JobID(j)+".out")
}
