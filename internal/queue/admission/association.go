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

// enforced is what of accounts and QOS the cluster enforces.
func (a *Admission) enforced() limits.Enforcement {
	return limits.Enforced(a.Directory.Parameters().AccountingStorageEnforce)
}

// checkAccount wants an account that exists and that the user belongs to, where
// associations are enforced and the cluster has accounts.
func (a *Admission) checkAccount(j *job.Job, user *v1alpha1.User, caller *directory.Caller) error {
	acc, known := a.Directory.Account(j.Account)
	if !a.enforced().Associations || !known && len(user.Spec.Accounts) == 0 {
		return nil
	}
	if known && acc == nil && j.Account != "" {
		return refuse(refusal.InvalidAccount)
	}
	if !caller.Admin && !belongs(user, j.Account) {
		return refuse(refusal.InvalidAccount)
	}
	return nil
}

// belongs reports whether the user has an association with the account.
func belongs(user *v1alpha1.User, account string) bool {
	if account == "" {
		return false
	}
	return account == user.Spec.DefaultAccount || slices.Contains(user.Spec.Accounts, account) ||
		slices.ContainsFunc(user.Spec.Associations, func(x v1alpha1.Association) bool { return x.Account == account })
}

// checkQOS wants a QOS that exists and, where QOS are enforced, that the job's
// association lists. Operators may choose any, as in Slurm.
func (a *Admission) checkQOS(j *job.Job, user *v1alpha1.User, operator bool) error {
	q, known := a.Directory.QOS(j.QOS)
	switch {
	case known && q == nil && j.QOS != "" && j.QOS != defaultQOS, // normal is there without an object
		limits.Flagged(q, "RequiresReservation") && j.Reservation == "":
		return refuse(refusal.InvalidQOS)
	case !known || !a.enforced().QOS || operator || j.QOS == "":
		return nil
	}
	if list := a.qosOf(user, j); len(list) > 0 && !slices.Contains(list, j.QOS) {
		return refuse(refusal.InvalidQOS)
	}
	return nil
}

// defaultQOS is the QOS of jobs that ask for none.
const defaultQOS = "normal"

// defaultQOSOf returns the QOS of a job that asks for none: that of the user's
// association with the account, of the user, of the account or the nearest one
// above that has one, the only one that it may use, else normal.
func (a *Admission) defaultQOSOf(user *v1alpha1.User, j *job.Job) string {
	name := ""
	for x := range a.associations(user, j) {
		name = cmp.Or(name, x.DefaultQOS)
	}
	name = cmp.Or(name, user.Spec.DefaultQOS)
	for acc := range a.lineage(j.Account) {
		name = cmp.Or(name, acc.Spec.DefaultQOS)
	}
	if list := a.qosOf(user, j); name == "" && len(list) == 2 { // one, and no default
		name = list[0]
	}
	return cmp.Or(name, defaultQOS)
}

// qosOf returns the QOS that the job's association lists: the user's own list in
// the account, for the partition first, else that of the account, else of the
// nearest account above that has one. Empty: every QOS, since nobody lists any.
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

// associations are those of the user with the job's account: for its partition
// first, then for every partition.
func (a *Admission) associations(user *v1alpha1.User, j *job.Job) iter.Seq[*v1alpha1.Association] {
	partition := ""
	if len(j.Partitions) > 0 {
		partition = j.Partitions[0]
	} else if d := a.Directory.Default(); d != nil {
		partition = d.Name
	}
	return func(yield func(*v1alpha1.Association) bool) {
		for _, where := range []string{partition, ""} {
			for i := range user.Spec.Associations {
				if x := &user.Spec.Associations[i]; x.Account == j.Account && x.Partition == where && !yield(x) {
					return
				}
			}
		}
	}
}

// maxAccountDepth ends the walk up accounts that are their own ancestors.
const maxAccountDepth = 64

// lineage is the account and those above it, up to root.
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

// checkWCKey wants a key that the user has, where keys are enforced. Without one
// the user's default counts.
func (a *Admission) checkWCKey(j *job.Job, user *v1alpha1.User, caller *directory.Caller) error {
	if !a.enforced().WCKeys || caller.Admin {
		return nil
	}
	if key := j.WCKey; key == "" && user.Spec.DefaultWCKey != "" || key != "" && (key == user.Spec.DefaultWCKey || slices.Contains(user.Spec.WCKeys, key)) {
		return nil
	}
	return refuse(refusal.InvalidWCKey)
}
