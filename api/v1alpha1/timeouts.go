package v1alpha1

import "time"

const (
	// DefaultSlurmdTimeout is how many seconds a node may be unreachable by default
	// (slurm.conf(5), SlurmdTimeout).
	DefaultSlurmdTimeout = 300
	// MaxSlurmdTimeout is the largest SlurmdTimeout in seconds.
	MaxSlurmdTimeout = 65533
)

// NodeTimeout returns how long a node may be unreachable until its jobs are given up
// (SlurmdTimeout); 0: they never are.
func (s *ClusterSpec) NodeTimeout() time.Duration {
	seconds := int32(DefaultSlurmdTimeout)
	if s.SlurmdTimeout != nil {
		seconds = *s.SlurmdTimeout
	}
	return time.Duration(seconds) * time.Second
}
