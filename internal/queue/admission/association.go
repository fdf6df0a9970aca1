package admission

import (
	"slices"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
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
		return refuse(TextAccount)
	}
	if !caller.Admin && !belongs(user, j.Account) {
		return refuse(TextAccount)
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
		return refuse(TextQOS)
	case !known || !a.enforced().QOS || operator || j.QOS == "":
		return nil
	}
	if list := a.qosOf(user, j); len(list) > 0 && !slices.Contains(list, j.QOS) {
		return refuse(TextQOS)
	}
	return nil
}

// defaultQOS is the QOS of jobs that ask for none.
const defaultQOS = "normal"

// maxAccountDepth ends the walk up accounts that are their own ancestors.
const maxAccountDepth = 64

// qosOf returns the QOS that the job's association lists: the user's own list in
// the account, for the partition first, else that of the account, else of the
// nearest account above that has one. Empty: every QOS, since nobody lists any.
func (a *Admission) qosOf(user *v1alpha1.User, j *job.Job) []string {
	partition := ""
	if len(j.Partitions) > 0 {
		partition = j.Partitions[0]
	} else if d := a.Directory.Default(); d != nil {
		partition = d.Name
	}
	for _, where := range []string{partition, ""} {
		for i := range user.Spec.Associations {
			x := &user.Spec.Associations[i]
			if x.Account == j.Account && x.Partition == where && len(x.QOS) > 0 {
				return append(slices.Clone(x.QOS), x.DefaultQOS)
			}
		}
	}
	name := j.Account
	for range maxAccountDepth {
		acc, _ := a.Directory.Account(name)
		switch {
		case acc == nil:
			return nil
		case len(acc.Spec.QOS) > 0:
			return append(slices.Clone(acc.Spec.QOS), acc.Spec.DefaultQOS)
		case acc.Spec.Parent == "" || acc.Spec.Parent == name:
			if name == rootAccount {
				return nil
			}
			name = rootAccount
		default:
			name = acc.Spec.Parent
		}
	}
	return nil
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
	return refuse(TextWCKey)
}
