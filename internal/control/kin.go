package control

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Kin are jobs that can probably run in each other's pods, one after the other:
// batch jobs of one user in one partition, with the same group and image. The tasks
// of an array are kin. Whether they really can is seen when one is placed: by what
// its pod would be made of (wire.AnnotationMold).

// Kin names the kin of b in a partition; "": it has none, its pods are its own.
func Kin(b *v1alpha1.BatchJob, partition string) string {
	j := &b.Spec.Job
	if partition == "" || b.Spec.Workload != nil || j.Het != nil || j.Batch.Client != "" || j.Batch.NoKill {
		return ""
	}
	var s strings.Builder
	s.WriteString("kin " + b.Namespace + "/" + b.Spec.User + "/" + partition)
	if g := j.Batch.Group; g != nil {
		s.WriteString(" gid=" + strconv.FormatInt(g.GID, 10))
	}
	for _, k := range slices.Sorted(maps.Keys(j.Batch.Container)) {
		fmt.Fprintf(&s, " %s=%q", k, j.Batch.Container[k])
	}
	return s.String()
}

// kinKeys index the jobs that may start by their kin in every partition that they
// wait in.
func kinKeys(b *v1alpha1.BatchJob) []string {
	switch {
	case b.Status.State != "" && b.Status.State != v1alpha1.StatePending,
		b.Spec.JobID == 0, b.Spec.Cancel != nil, b.Spec.Job.Hold != "", b.DeletionTimestamp != nil:
		return nil
	}
	if len(b.Spec.Job.Partitions) < 2 {
		if k := Kin(b, b.Spec.Partition); k != "" {
			return []string{k}
		}
		return nil
	}
	var keys []string
	for _, p := range b.Spec.Job.Partitions {
		if k := Kin(b, p); k != "" && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}
