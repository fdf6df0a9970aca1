package job

import "maps"

// WithoutRlimits returns resource limits (Batch.Rlimits) without the named ones. It
// does not modify limits.
func WithoutRlimits(limits map[string]uint64, names []string) map[string]uint64 {
	if len(names) == 0 {
		return limits
	}
	out := maps.Clone(limits)
	for _, name := range names {
		delete(out, name)
	}
	return out
}
