package change

import (
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/value"
)

// What concerns nodes that boot for a job, or threads kept for the system, which
// there are not here.

func impossible(*changing, string) error { return refusal.NotSupported }

// delayBoot takes a duration: without nodes that boot for a job, none matters.
func delayBoot(_ *changing, v string) error {
	if _, err := value.Minutes(v); err != nil {
		return unread("Invalid DelayBoot value")
	}
	return nil
}

// threadSpec refuses what could not be a number of threads first.
func threadSpec(c *changing, v string) error {
	switch _, err := value.CountOrZero(v); {
	case err != nil:
		return invalid("ThreadSpec", v)
	case !c.Operator:
		return refusal.AccessDenied
	}
	return refusal.NotSupported
}
