package admission

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
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
	if !caller.Operator && !a.allowRate(b.Spec.User) {
		return nil, again(1)
	}
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
		p, err := a.reserve(object, j, b)
		if err != nil {
			a.giveBack(kept)
			return nil, err
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// reserve keeps the place of one component.
func (a *Admission) reserve(object string, j *job.Job, b *v1alpha1.BatchJob) (*table.Place, error) {
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
	return p, a.Jobs.Reserve(p, func(all int, active func(table.Key) int) error {
		if all+p.Jobs > most {
			return again(5)
		}
		reason := l.Submitted(&use, p.Jobs, func(account, user, qos string) int {
			return active(table.Key{User: user, Account: account, QOS: qos})
		})
		switch {
		case reason != "":
			return refuse(reason + "\n" + TextPolicy)
		case l.Denied(&use):
			return refuse(TextPolicy)
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
