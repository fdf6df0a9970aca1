package value

import (
	"strconv"
	"strings"
)

// StepID is a job or step in an argument of sattach, sbcast and sstat: 12, 12.0,
// 12_3.batch, 12+1.0.
type StepID struct {
	Job int64
	// Suffix is "", _3 (a task of the array) or +1 (a component).
	Suffix string
	Step   string // the number, or a name of stepNames; "": the whole job
}

// stepNames are the names of special steps.
var stepNames = []string{"batch", "extern", "interactive"}

// ParseStepID parses a job or step as Slurm does: text after a number is ignored, and a
// missing number is 0. The error's text is the beginning of Slurm's message.
func ParseStepID(text string) (id StepID, err error) {
	front, step, dotted := strings.Cut(text, ".")
	job, rest := leadingDigits(front)
	id.Job = int64(uint32(Leading(job)))
	if rest != "" && (rest[0] == '_' || rest[0] == '+') {
		n, _ := leadingDigits(rest[1:])
		if n == "" {
			return id, stepIDError("Bad job array element specified: " + job)
		}
		id.Suffix = rest[:1] + n
	}
	if !dotted {
		return id, nil
	}
	for _, name := range stepNames {
		if strings.EqualFold(step, name) {
			id.Step = name
			return id, nil
		}
	}
	if n, _ := leadingDigits(step); n != "" && n[0] != '-' {
		id.Step = strconv.FormatUint(uint64(uint32(Leading(n))), 10)
		return id, nil
	}
	return id, stepIDError("Bad step specified: " + front)
}

type stepIDError string

func (e stepIDError) Error() string { return string(e) }

// leadingDigits splits s after the number that it begins with.
func leadingDigits(s string) (digits, rest string) {
	end := 0
	if strings.HasPrefix(s, "-") {
		end = 1
	}
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	if s[:end] == "-" {
		end = 0
	}
	return s[:end], s[end:]
}

// JobID returns the job's id in the form that users see.
func (id *StepID) JobID() string { return strconv.FormatInt(id.Job, 10) + id.Suffix }

func (id *StepID) String() string {
	if id.Step == "" {
		return id.JobID()
	}
	return id.JobID() + "." + id.Step
}
