package control

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// ReuseKey returns the key of the jobs that can probably run in the pod of b in that
// partition: batch jobs of the same user with the same group and container image. The tasks of
// an array have the same key. Whether the pods are really identical is decided when
// a job is placed (wire.AnnotationPodTemplateHash). The key is empty if b cannot share
// its pod.
func ReuseKey(b *v1alpha1.BatchJob, partition string) string {
	j := &b.Spec.Job
	if partition == "" || b.Spec.Workload != nil || j.Het != nil || j.Batch.Client != "" || j.Batch.NoKill {
		return ""
	}
	var s strings.Builder
	s.WriteString("reuse " + b.Namespace + "/" + b.Spec.User + "/" + partition)
	if g := j.Batch.Group; g != nil {
		s.WriteString(" gid=" + strconv.FormatInt(g.GID, 10))
	}
	for _, k := range slices.Sorted(maps.Keys(j.Batch.Container)) {
		fmt.Fprintf(&s, " %s=%q", k, j.Batch.Container[k])
	}
	return s.String()
}

// reuseKeys returns the index keys of a pending job: its reuse key in each of its
// partitions.
func reuseKeys(b *v1alpha1.BatchJob) []string {
	switch {
	case b.Status.State != "" && b.Status.State != v1alpha1.StatePending,
		b.Spec.JobID == 0, b.Spec.Cancel != nil, b.Spec.Job.Hold != "", b.DeletionTimestamp != nil:
		return nil
	}
	if len(b.Spec.Job.Partitions) < 2 {
		if k := ReuseKey(b, b.Spec.Partition); k != "" {
			return []string{k}
		}
		return nil
	}
	var keys []string
	for _, p := range b.Spec.Job.Partitions {
		if k := ReuseKey(b, p); k != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}
