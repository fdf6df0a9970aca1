package admission

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
)

// places are kept for one submission: of a heterogeneous job, one for each
// component.
type places []*table.Place

// quota keeps one user, and all together, from filling the cluster: it keeps
// places for what b submits, or refuses it.
func (a *Admission) quota(r *admissionv1.AdmissionRequest, b *v1alpha1.BatchJob, caller *directory.Caller) (places, error) {
	object := ""
	if b.Name != "" {
		object = r.Namespace + "/" + b.Name
		if a.Jobs.Resent(object) {
			return nil, nil // the API server will say that it exists
		}
	}
	var kept places
	for i := range 1 + len(b.Spec.Components) {
		j := &b.Spec.Job
		if i > 0 {
			j = &b.Spec.Components[i-1]
		}
		p, err := a.reserve(object, j, b, caller)
		if err != nil {
			a.giveBack(kept)
			return nil, err
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// reserve keeps the place of one component.
func (a *Admission) reserve(object string, j *job.Job, b *v1alpha1.BatchJob, caller *directory.Caller) (*table.Place, error) {
	most := int(a.Directory.Parameters().MaxJobs)
	if most == 0 {
		most = DefaultMaxJobs
	}
	partition := b.Spec.Partition
	if j != &b.Spec.Job && len(j.Partitions) > 0 {
		partition = j.Partitions[0]
	}
	l := a.Directory.Limits()
	use := limits.Asked(j, b.Spec.User, partition)
	p := &table.Place{Object: object, User: b.Spec.User, Account: j.Account, QOS: j.QOS, Jobs: 1}
	if j.Array != nil {
		p.Jobs = max(1, len(array.Parse(j.Array.Spec)))
	}
	if j == &b.Spec.Job { // the other components have the first one's
		p.Bytes = b.StoredBytes()
	}
	room := a.maxBytes(b.Spec.User, caller)
	return p, a.Jobs.Reserve(p, func(all int, active func(table.Key) int, bytes int64) error {
		switch {
		case all+p.Jobs > most:
			return refuseForNow(5)
		case room >= 0 && p.Bytes > 0 && bytes+p.Bytes > room:
			return tooManyBytes(bytes, p.Bytes, room)
		}
		reason := l.Submitted(&use, p.Jobs, func(account, user, qos string) int {
			return active(table.Key{User: user, Account: account, QOS: qos})
		})
		switch {
		case reason != "":
			return refuse(refusal.Text(reason) + "\n" + refusal.PolicyViolation)
		case l.Denied(&use):
			return refuse(refusal.PolicyViolation)
		}
		return nil
	})
}

func (a *Admission) giveBack(kept places) {
	for _, p := range kept {
		a.Jobs.GiveBack(p)
	}
}

// take says which jobs the places are for: their ids follow each other.
func (a *Admission) take(kept places, first int64) {
	for i, p := range kept {
		a.Jobs.Take(p, first+int64(i))
	}
}

// DefaultMaxBytes bounds the scripts, environments and descriptions of one user's
// jobs.
const DefaultMaxBytes = 128 << 20

// maxBytes is how much the scripts, environments and descriptions of the user's
// jobs may take; negative: there is no limit.
func (a *Admission) maxBytes(user string, caller *directory.Caller) int64 {
	most := a.Directory.Parameters().MaxBytesPerUser
	if most == 0 {
		most = DefaultMaxBytes
	}
	if caller.Operator {
		most *= operatorBytes
	}
	if u := a.Directory.User(user); u != nil && u.Spec.MaxBytes != nil {
		most = *u.Spec.MaxBytes
	}
	return most
}

// grows refuses a change that makes a job larger than its user's share of what is
// stored has room for.
func (a *Admission) grows(b *v1alpha1.BatchJob, caller *directory.Caller) error {
	all, before := a.Jobs.Stored(b.Spec.User, b.Spec.JobID)
	more, room := b.StoredBytes()-before, a.maxBytes(b.Spec.User, caller)
	if more <= 0 || room < 0 || all+more <= room {
		return nil
	}
	return tooManyBytes(all, more, room)
}

func tooManyBytes(have, more, most int64) error {
	const kib = 1 << 10
	return refusef("the scripts, environments and descriptions of your jobs in the queue take %d KiB and this takes %d KiB more, beyond the limit of %d KiB "+
		"(maxBytes of your User, or maxBytesPerUser of the Cluster): wait until jobs are over or cancel some, submit an array, or leave the environment behind with --export=NONE",
		have/kib, (more+kib-1)/kib, most/kib)
}
