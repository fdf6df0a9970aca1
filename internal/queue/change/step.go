package change

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// StepLimit is the time limit that scontrol update gives a step, as a function
// of the limit it has; both in minutes, job.Unlimited for none.
func StepLimit(set map[string]string) (limit func(now int32) (int32, error), err error) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if !strings.EqualFold(key, "timelimit") {
			return nil, Unknown(key, set[key])
		}
		v := set[key]
		sign := int32(0)
		switch {
		case len(v) > 1 && v[0] == '+':
			sign, v = 1, v[1:]
		case len(v) > 1 && v[0] == '-':
			sign, v = -1, v[1:]
		}
		m, err := value.Minutes(v)
		if err != nil {
			return nil, unread(badTimeLimit)
		}
		limit = func(now int32) (int32, error) {
			switch {
			case sign == 0:
				return m, nil
			case now == job.Unlimited || m <= 0 || now+sign*m <= 0:
				return 0, Refused("Invalid TimeLimit increment/decrement value")
			}
			return now + sign*m, nil
		}
	}
	if limit == nil {
		return nil, NoChanges
	}
	return limit, nil
}
