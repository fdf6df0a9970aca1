package preemption

import (
	"slices"

	"github.com/berth-hpc/berth/translate/array"
)

// withoutPartial removes the components of heterogeneous jobs of which not all components
// are candidates: such a job is preempted as a whole, or not at all.
func withoutPartial(candidates []Victim) []Victim {
	count := map[int64]int32{} // by job
	for _, v := range candidates {
		if id := array.HetID(v.Job); id != 0 {
			count[id]++
		}
	}
	if len(count) == 0 {
		return candidates
	}
	return slices.DeleteFunc(candidates, func(v Victim) bool {
		id := array.HetID(v.Job)
		return id != 0 && count[id] != v.Job.Spec.Job.Het.Size
	})
}

// withComponents returns the victims and the other components of those that belong to
// heterogeneous jobs. The components of one job get the same mode, which is CANCEL if it is
// that of one of them, and the same grace time.
func withComponents(victims, candidates []Victim) []Victim {
	var out []Victim
	done := map[int64]bool{} // by job
	for _, v := range victims {
		switch id := array.HetID(v.Job); {
		case id == 0:
			out = append(out, v)
		case !done[id]:
			done[id] = true
			out = append(out, components(id, candidates)...)
		}
	}
	return out
}

// components returns the components of a heterogeneous job.
func components(id int64, candidates []Victim) []Victim {
	var all []Victim
	mode := ModeRequeue
	for _, v := range candidates {
		if array.HetID(v.Job) == id {
			all = append(all, v)
			if v.Mode == ModeCancel {
				mode = ModeCancel
			}
		}
	}
	grace := slices.MaxFunc(all, func(a, b Victim) int { return int(a.Grace - b.Grace) }).Grace
	for i := range all {
		all[i].Mode, all[i].Grace = mode, grace
	}
	return all
}
