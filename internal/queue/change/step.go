package change

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/refusal"
)

// LimitFunc returns a new time limit for the present one; both in minutes,
// job.Unlimited for none.
type LimitFunc func(present int32) (int32, error)

// StepLimit returns the time limit that scontrol update gives a step. As in Slurm,
// a limit of 0 leaves the step's as it is.
func StepLimit(set map[string]string) (LimitFunc, error) {
	var limit LimitFunc
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if !strings.EqualFold(key, "timelimit") {
			return nil, UnknownParameter(key, set[key])
		}
		l, err := parseTimeLimit(set[key])
		if err != nil {
			return nil, err
		}
		limit = l.apply
		if l.zero {
			limit = func(present int32) (int32, error) { return present, nil }
		}
	}
	if limit == nil {
		return nil, refusal.NoChanges
	}
	return limit, nil
}
