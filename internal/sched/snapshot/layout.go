package snapshot

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/sched/backfill"
	"github.com/berth-hpc/berth/translate/job"
)

// fillLayout sets what j wants of sockets, cores, threads and the network.
func fillLayout(out *backfill.Job, s *job.Shape, pl *job.Placement) {
	out.SocketsPerNode, out.CoresPerSocket, out.ThreadsPerCore = int(s.SocketsPerNode), int(s.CoresPerSocket), int(s.ThreadsPerCore)
	out.TasksPerSocket, out.TasksPerCore = int(s.TasksPerSocket), int(s.TasksPerCore)
	switch pl.Hint {
	case "nomultithread", "compute_bound":
		out.NoMultithread = true
	case "memory_bound": // one core of each socket
		out.NoMultithread, out.TasksPerSocket = true, 1
	}
	out.NoMultithread = out.NoMultithread || s.ThreadsPerCore == 1
	levels, _, _ := strings.Cut(pl.Distribution, ",")
	if l := strings.Split(levels, ":"); len(l) > 1 && l[1] == "block" {
		out.CoreDistribution = backfill.CoresBlock
	}
	out.SpreadJob, out.UseMinNodes = pl.SpreadJob, pl.UseMinNodes
	out.Contiguous, out.Switches = pl.Contiguous, int(pl.Switches)
	out.Segment = int(pl.Segment)
	switch pl.Segments {
	case job.SegmentsTogether:
		out.SegmentLayout = backfill.SegmentsConsolidated
	case job.SegmentsApart:
		out.SegmentLayout = backfill.SegmentsSpread
	}
}

// licenses that the job wants or holds.
func licenses(j *job.Job) []backfill.License {
	out := make([]backfill.License, 0, len(j.Licenses))
	for _, l := range j.Licenses {
		out = append(out, backfill.License{Name: l.Name, Total: int64(max(1, l.Count))})
	}
	return out
}

// addLicenses takes over the cluster's licences, by name.
func (v *View) addLicenses() {
	for name, count := range v.params.Licenses {
		v.Licenses = append(v.Licenses, backfill.License{Name: name, Total: int64(count)})
	}
	slices.SortFunc(v.Licenses, func(a, b backfill.License) int { return strings.Compare(a.Name, b.Name) })
}

// mostSwitchWait is how long a job waits for few switches at most, as Slurm's
// max_switch_wait has it by default.
const mostSwitchWait = 300

// fillTime sets how long the job takes, and between when.
func (v *View) fillTime(out *backfill.Job, b *v1alpha1.BatchJob, w *Wanted) {
	t := &b.Spec.Job.Time
	out.Duration = duration(w.TimeLimit)
	if t.Min > 0 {
		out.MinDuration = min(int64(t.Min)*60, out.Duration)
	}
	if out.Deadline = t.Deadline; out.Deadline > 0 && out.Duration == backfill.Forever {
		// Without a limit of its own it may run until then.
		out.Duration = max(60, (out.Deadline-max(v.Now, out.Begin))/60*60)
		w.TimeLimit = int32(min(out.Duration/60, 1<<30))
	}
	if out.Switches > 0 {
		wait := int64(b.Spec.Job.Placement.SwitchesWait)
		if wait <= 0 || wait > mostSwitchWait {
			wait = mostSwitchWait
		}
		if b.Spec.SubmitTime != nil {
			out.SwitchesUntil = max(b.Spec.SubmitTime.Unix(), out.Begin) + wait
		}
	}
}

// sharers reads OverSubscribe (slurm.conf(5)): how many jobs may have the same
// CPU; 1: only one.
func sharers(p *partition, asked bool) int {
	word, count, counted := strings.Cut(strings.ToUpper(p.spec.OverSubscribe), ":")
	if word != "FORCE" && (word != "YES" || !asked) {
		return 1
	}
	if n, err := strconv.Atoi(count); counted && err == nil && n > 0 {
		return min(n, mostSharers)
	}
	return 4
}

// mostSharers bounds what a partition may say.
const mostSharers = 64

// userNumber is a number for a user of this view.
func (v *View) userNumber(name string) int64 {
	n, ok := v.users[name]
	if !ok {
		n = int64(len(v.users) + 1)
		v.users[name] = n
	}
	return n
}
