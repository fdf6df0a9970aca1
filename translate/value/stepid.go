package value

import (
	"strconv"
	"strings"
)

// StepID is a job, or a step of it, as sattach, sbcast and sstat are told:
// 12, 12.0, 12_3.batch, 12+1.0.
type StepID struct {
	Job  int64
	Of   string // "", _3 (a task of the array) or +1 (a component)
	Step string // the number, or a name of stepNames; "": the job is meant
}

// stepNames are the steps that have a name.
var stepNames = []string{"batch", "extern", "interactive"}

// ParseStepID reads a job or step as Slurm does: what follows a number is
// ignored, and no number is 0. An error is Slurm's text, without its end.
func ParseStepID(text string) (id StepID, err error) {
	front, step, dotted := strings.Cut(text, ".")
	job, rest := leadingDigits(front)
	id.Job = int64(uint32(Leading(job)))
	if rest != "" && (rest[0] == '_' || rest[0] == '+') {
		n, _ := leadingDigits(rest[1:])
		if n == "" {
			return id, stepIDError("Bad job array element specified: " + job)
		}
		id.Of = rest[:1] + n
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

// leadingDigits splits behind the number at the front of s.
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

// Whole is the job as users name it.
func (id *StepID) Whole() string { return strconv.FormatInt(id.Job, 10) + id.Of }

func (id *StepID) String() string {
	if id.Step == "" {
		return id.Whole()
	}
	return id.Whole() + "." + id.Step
}
