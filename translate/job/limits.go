package job

import "maps"

// WithoutRlimits are resource limits (Batch.Rlimits) less those of the names.
// limits stays as it is.
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
