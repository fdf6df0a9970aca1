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

// places are the places in the queue that are reserved for one submission: one for
// each component of a heterogeneous job.
type places []*table.Place

// reservePlaces reserves places in the queue for what b submits, or refuses it: no
// user, and not all users together, can fill the cluster.
func (a *Admission) reservePlaces(
	r *admissionv1.AdmissionRequest, b *v1alpha1.BatchJob, caller *directory.Caller,
) (places, error) {
	object := ""
	if b.Name != "" {
		object = r.Namespace + "/" + b.Name
		if a.Jobs.Resent(object) {
			return nil, nil // the API server will refuse it as a duplicate
		}
	}
	var reserved places
	for i := range 1 + len(b.Spec.Components) {
		j := &b.Spec.Job
		if i > 0 {
			j = &b.Spec.Components[i-1]
		}
		p, err := a.reservePlace(object, j, b, caller)
		if err != nil {
			a.releasePlaces(reserved)
			return nil, err
		}
		reserved = append(reserved, p)
	}
	return reserved, nil
}

// reservePlace reserves the place of one component.
func (a *Admission) reservePlace(
	object string, j *job.Job, b *v1alpha1.BatchJob, caller *directory.Caller,
) (*table.Place, error) {
	maxJobs := int(a.Directory.Parameters().MaxJobs)
	if maxJobs == 0 {
		maxJobs = DefaultMaxJobs
	}
	partition := b.Spec.Partition
	if j != &b.Spec.Job && len(j.Partitions) > 0 {
		partition = j.Partitions[0]
	}
	l := a.Directory.Limits()
	use := limits.RequestOf(j, b.Spec.User, partition)
	p := &table.Place{Object: object, User: b.Spec.User, Account: j.Account, QOS: j.QOS, Jobs: 1}
	if j.Array != nil {
		p.Jobs = max(1, len(array.Parse(j.Array.Spec)))
	}
	if j == &b.Spec.Job { // which counts for all components
		p.Bytes = b.StoredBytes()
	}
	maxBytes := a.maxBytes(b.Spec.User, caller)
	return p, a.Jobs.Reserve(p, func(all int, active func(table.Key) int, bytes int64) error {
		switch {
		case all+p.Jobs > maxJobs:
			return refuseForNow(5)
		case maxBytes >= 0 && p.Bytes > 0 && bytes+p.Bytes > maxBytes:
			return tooManyBytes(bytes, p.Bytes, maxBytes)
		}
		reason := l.CheckSubmit(&use, p.Jobs, func(account, user, qos string) int {
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

func (a *Admission) releasePlaces(list places) {
	for _, p := range list {
		a.Jobs.GiveBack(p)
	}
}

// assignPlaces assigns the places to jobs with consecutive ids.
func (a *Admission) assignPlaces(list places, first int64) {
	for i, p := range list {
		a.Jobs.Take(p, first+int64(i))
	}
}

// DefaultMaxBytes bounds the scripts, environments and descriptions of one user's
// jobs.
const DefaultMaxBytes = 128 << 20

// maxBytes returns the limit on scripts, environments and descriptions of the user's
// jobs; negative: there is no limit.
func (a *Admission) maxBytes(user string, caller *directory.Caller) int64 {
	limit := a.Directory.Parameters().MaxBytesPerUser
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	if caller.Operator {
		limit *= operatorBytes
	}
	if u := a.Directory.User(user); u != nil && u.Spec.MaxBytes != nil {
		limit = *u.Spec.MaxBytes
	}
	return limit
}

// checkGrowth refuses a change that makes a job larger than its user's limit leaves
// room for.
func (a *Admission) checkGrowth(b *v1alpha1.BatchJob, caller *directory.Caller) error {
	all, before := a.Jobs.Stored(b.Spec.User, b.Spec.JobID)
	growth, limit := b.StoredBytes()-before, a.maxBytes(b.Spec.User, caller)
	if growth <= 0 || limit < 0 || all+growth <= limit {
		return nil
	}
	return tooManyBytes(all, growth, limit)
}

func tooManyBytes(stored, added, limit int64) error {
	const kib = 1 << 10
	return refusef(
		"the scripts, environments and descriptions of your jobs in the queue take %d KiB and this takes %d KiB more, "+
			"beyond the limit of %d KiB (maxBytes of your User, or maxBytesPerUser of the Cluster): "+
			"wait until jobs have ended or cancel some, submit an array, "+
			"or leave out the environment with --export=NONE",
		stored/kib,
		(added+kib-1)/kib,
		limit/kib,
	)
}
