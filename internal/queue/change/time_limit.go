package change

import (
	"fmt"
	"math"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
	"github.com/berth-hpc/berth/translate/value"
)

// timeLimit is a time limit as scontrol update accepts it: a new one, or a change
// of the present one.
type timeLimit struct {
	sign    byte  // '+' or '-'; 0: a new limit
	zero    bool  // the text was 0, which value.Minutes reads as no limit
	minutes int32 // or job.Unlimited
}

func parseTimeLimit(v string) (l timeLimit, err error) {
	if len(v) > 1 && (v[0] == '+' || v[0] == '-') {
		l.sign, v = v[0], v[1:]
	}
	l.zero = v == "0"
	if l.minutes, err = value.Minutes(v); err != nil {
		return l, malformed("TimeLimit", v, "Invalid TimeLimit value")
	}
	return l, nil
}

// clampMinutes returns minutes, or the largest value of a time limit, which no partition
// permits.
func clampMinutes(minutes int64) int32 { return int32(min(minutes, math.MaxInt32)) }

func invalidLimit(message string) error {
	return refuseSetting(status.CodeInvalidValue, "TimeLimit", "", message)
}

// apply returns the limit that follows from the present one; both in minutes,
// job.Unlimited for none.
func (l timeLimit) apply(present int32) (int32, error) {
	switch {
	case l.sign == 0:
		return l.minutes, nil
	case l.zero:
		return present, nil
	case present == job.Unlimited, l.minutes <= 0, l.sign == '-' && l.minutes == present:
		return 0, invalidLimit("Invalid TimeLimit increment/decrement value")
	case l.sign == '+':
		return clampMinutes(int64(present) + int64(l.minutes)), nil
	case l.minutes > present:
		return 0, invalidLimit(
			fmt.Sprintf("TimeLimit decrement larger than current time limit (%d > %d)", l.minutes, present),
		)
	}
	return present - l.minutes, nil
}
