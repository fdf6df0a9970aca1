package change

import (
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/queue/refusal"
)

// LimitFunc returns a new time limit for the present one; both in minutes,
// job.Unlimited for none.
type LimitFunc func(now int32) (int32, error)

// StepLimit is the time limit that scontrol update gives a step, as a function
// of the limit it has; both in minutes, job.Unlimited for none.
func StepLimit(set map[string]string) (limit LimitFunc, err error) {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		if !strings.EqualFold(key, "timelimit") {
			return nil, UnknownParameter(key, set[key])
		}
		l, err := readLimit(set[key])
		if err != nil {
			return nil, err
		}
		if limit = l.from; l.zero { // which leaves a step as it is, as Slurm does
			limit = func(now int32) (int32, error) { return now, nil }
		}
	}
	if limit == nil {
		return nil, refusal.NoChanges
	}
	return limit, nil
}
