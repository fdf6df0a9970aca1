package admission

import (
	"cmp"
	"iter"
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/sched/limits"
	"github.com/berth-hpc/berth/translate/job"
)

// enforcement returns which rules of accounts, QOS and wckeys the cluster enforces.
func (a *Admission) enforcement() limits.Enforcement {
	return limits.Enforced(a.Directory.Parameters().AccountingStorageEnforce)
}

// checkAccount refuses an account that does not exist or that the user has no
// association with, where associations are enforced and the cluster has accounts.
func (a *Admission) checkAccount(j *job.Job, user *v1alpha1.User, caller *directory.Caller) error {
	acc, known := a.Directory.Account(j.Account)
	if !a.enforcement().Associations || !known && len(user.Spec.Accounts) == 0 {
		return nil
	}
	if known && acc == nil && j.Account != "" {
		return refuse(refusal.InvalidAccount)
	}
	if !caller.Admin && !directory.HasAssociation(user, j.Account) {
		return refuse(refusal.InvalidAccount)
	}
	return nil
}

// checkQOS refuses a QOS that does not exist and, where QOS are enforced, one that
// the job's association does not list. As in Slurm, operators may choose any.
func (a *Admission) checkQOS(j *job.Job, user *v1alpha1.User, operator bool) error {
	q, known := a.Directory.QOS(j.QOS)
	switch {
	case known && q == nil && j.QOS != "" && j.QOS != defaultQOS, // normal exists without an object
		limits.HasFlag(q, "RequiresReservation") && j.Reservation == "":
		return refuse(refusal.InvalidQOS)
	case !known || !a.enforcement().QOS || operator || j.QOS == "":
		return nil
	}
	if list := a.qosOf(user, j); len(list) > 0 && !slices.Contains(list, j.QOS) {
		return refuse(refusal.InvalidQOS)
	}
	return nil
}

// defaultQOS is the QOS of jobs that ask for none, where the cluster sets no other.
const defaultQOS = "normal"

// defaultQOSOf returns the QOS of a job that asks for none: the default of the
// user's association with the account, else of the user, else of the account or
// the nearest one above it; else the only QOS that the job may use; else normal.
func (a *Admission) defaultQOSOf(user *v1alpha1.User, j *job.Job) string {
	name := ""
	for x := range a.associations(user, j) {
		name = cmp.Or(name, x.DefaultQOS)
	}
	name = cmp.Or(name, user.Spec.DefaultQOS)
	for acc := range a.lineage(j.Account) {
		name = cmp.Or(name, acc.Spec.DefaultQOS)
	}
	if list := a.qosOf(user, j); name == "" && len(list) == 2 { // one QOS, and an empty default
		name = list[0]
	}
	return cmp.Or(name, defaultQOS)
}

// qosOf returns the QOS that the job may use, followed by the default one: the list
// of the user's association with the account, for the partition first, else that
// of the account or the nearest one above it. It returns nil if none of them has a
// list, so that the job may use every QOS.
func (a *Admission) qosOf(user *v1alpha1.User, j *job.Job) []string {
	for x := range a.associations(user, j) {
		if len(x.QOS) > 0 {
			return append(slices.Clone(x.QOS), x.DefaultQOS)
		}
	}
	for acc := range a.lineage(j.Account) {
		if len(acc.Spec.QOS) > 0 {
			return append(slices.Clone(acc.Spec.QOS), acc.Spec.DefaultQOS)
		}
	}
	return nil
}

// associations returns the associations of the user with the job's account: that for
// its partition first, then that for every partition.
func (a *Admission) associations(user *v1alpha1.User, j *job.Job) iter.Seq[*v1alpha1.Association] {
	partition := ""
	if len(j.Partitions) > 0 {
		partition = j.Partitions[0]
	} else if d := a.Directory.Default(); d != nil {
		partition = d.Name
	}
	return func(yield func(*v1alpha1.Association) bool) {
		for _, scope := range []string{partition, ""} {
			for i := range user.Spec.Associations {
				if x := &user.Spec.Associations[i]; x.Account == j.Account && x.Partition == scope && !yield(x) {
					return
				}
			}
		}
	}
}

// defaultLimit returns the time limit of a job that requests none, in minutes: where limits
// are enforced, the MaxWall of its QOS or association, as in Slurm; 0: that of the partition
// applies, as it is lower or the only one.
func (a *Admission) defaultLimit(j *job.Job, user *v1alpha1.User, part *v1alpha1.Partition) int32 {
	use := limits.RequestOf(j, user.Name, part.Name)
	wall := a.Directory.Limits().DefaultWall(&use)
	if own := cmp.Or(part.Spec.DefaultTime, part.Spec.MaxTime); own > 0 && own <= wall {
		return 0
	}
	return wall
}

// maxAccountDepth ends the walk up accounts that are their own ancestors.
const maxAccountDepth = 64

// lineage returns the account and those above it, up to root.
func (a *Admission) lineage(name string) iter.Seq[*v1alpha1.Account] {
	return func(yield func(*v1alpha1.Account) bool) {
		for range maxAccountDepth {
			acc, _ := a.Directory.Account(name)
			if acc == nil || !yield(acc) || name == rootAccount {
				return
			}
			name = cmp.Or(acc.Spec.Parent, rootAccount)
		}
	}
}

// rootAccount is the account above all others.
const rootAccount = "root"

// checkWCKey refuses a wckey that the user does not have, where wckeys are enforced.
// A job without a wckey has the user's default.
func (a *Admission) checkWCKey(j *job.Job, user *v1alpha1.User, caller *directory.Caller) error {
	if !a.enforcement().WCKeys || caller.Admin {
		return nil
	}
	key := cmp.Or(j.WCKey, user.Spec.DefaultWCKey)
	if key != "" && (key == user.Spec.DefaultWCKey || slices.Contains(user.Spec.WCKeys, key)) {
		return nil
	}
	return refuse(refusal.InvalidWCKey)
}
