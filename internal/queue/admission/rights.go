package admission

import (
	"reflect"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/authz"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/array"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/value"
)

// changedFields returns the paths below spec that differ, as in authz.Field.
func changedFields(o, n *v1alpha1.BatchJobSpec) []string {
	return differences(reflect.ValueOf(o).Elem(), reflect.ValueOf(n).Elem(), "", nil)
}

func differences(o, n reflect.Value, prefix string, list []string) []string {
	for i := range o.NumField() {
		name, _, _ := strings.Cut(o.Type().Field(i).Tag.Get("json"), ",")
		switch x, y := o.Field(i), n.Field(i); {
		case name == "-":
		case x.Kind() == reflect.Struct:
			list = differences(x, y, prefix+name+".", list)
		case !apiequality.Semantic.DeepEqual(x.Interface(), y.Interface()):
			list = append(list, prefix+name)
		}
	}
	return list
}

// fieldBounds are the rules for fields that the table of fields bounds
// (authz.Bounded).
var fieldBounds = map[string]struct {
	always bool // the rule holds for operators as well
	check  func(a *Admission, old, now *v1alpha1.BatchJob, caller *directory.Caller) error
}{
	"cancel":   {always: true, check: (*Admission).boundCancel},
	"requeues": {always: true, check: (*Admission).boundRequeues},
	"job.array": {always: true, check: func(_ *Admission, old, now *v1alpha1.BatchJob, _ *directory.Caller) error {
		return boundArray(old.Spec.Job.Array, now.Spec.Job.Array)
	}},
	"job.hold": {check: func(_ *Admission, old, now *v1alpha1.BatchJob, _ *directory.Caller) error {
		return denyIf(old.Spec.Job.Hold == holdAdmin || now.Spec.Job.Hold == holdAdmin)
	}},
	"job.nice": {check: func(_ *Admission, _, now *v1alpha1.BatchJob, _ *directory.Caller) error {
		return denyIf(now.Spec.Job.Nice < 0)
	}},
	"job.priority": {check: func(_ *Admission, old, now *v1alpha1.BatchJob, _ *directory.Caller) error {
		o, n := old.Spec.Job.Priority, now.Spec.Job.Priority
		return denyIf(o == nil || n == nil || *n > *o)
	}},
	"job.time.limit": {check: func(a *Admission, old, now *v1alpha1.BatchJob, _ *directory.Caller) error {
		return denyIf(!change.Pending(old) && !a.isShorter(&now.Spec.Job, old))
	}},
}

// The holds that users and operators place.
const (
	holdUser  = "user"
	holdAdmin = "admin"
)

func denyIf(forbidden bool) error {
	if forbidden {
		return refuse(refusal.AccessDenied)
	}
	return nil
}

func (a *Admission) boundCancel(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	switch {
	case old.Spec.Cancel != nil:
		return refuse("a cancellation cannot be undone")
	case now.Spec.Cancel.By != caller.Name:
		return refuse("spec.cancel.by is set by the cluster")
	}
	return nil
}

func (a *Admission) boundRequeues(old, now *v1alpha1.BatchJob, _ *directory.Caller) error {
	switch {
	case now.Spec.Requeues != old.Spec.Requeues+1:
		return refuse("spec.requeues may only be raised by one")
	case !a.Directory.Requeueable(&old.Spec.Job):
		return refuse(refusal.Disabled)
	}
	return nil
}

// boundArray refuses any change but that of the number of tasks that run at a time.
func boundArray(o, n *job.Array) error {
	if o == nil || n == nil || n.Max < 0 || value.ArraySpec(array.Parse(o.Spec), n.Max) != n.Spec {
		return refuse(refusal.InvalidArray)
	}
	return nil
}

// checkFieldChanges refuses changes that the table of fields does not grant to the
// caller's roles.
func (a *Admission) checkFieldChanges(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	roles := a.Directory.RolesOnJob(caller, old)
	checked := false
	for _, path := range changedFields(&old.Spec, &now.Spec) {
		if path == "partition" && isFirstPartition(old, now) {
			continue
		}
		f, ok := authz.FieldAt(path)
		if !ok {
			return refuse(refusal.AccessDenied)
		}
		if err := a.checkFieldChange(f, path, old, now, caller, roles); err != nil {
			return err
		}
		checked = checked || f.Checked
	}
	if now.Spec.Job.Nice != old.Spec.Job.Nice {
		if err := checkNice(&now.Spec.Job, caller); err != nil {
			return err
		}
	}
	if !checked || !change.Pending(old) {
		return nil
	}
	return a.validateUnheld(now, caller.Operator)
}

func (a *Admission) checkFieldChange(
	f *authz.Field, path string, old, now *v1alpha1.BatchJob, caller *directory.Caller, roles authz.Roles,
) error {
	grant := f.Change.Grant(roles)
	bound, bounded := fieldBounds[path]
	switch {
	case f.Change == authz.Nobody:
		return refusef("spec.%s of a job cannot be changed", path)
	case grant == authz.Deny:
		return refuse(refusal.AccessDenied)
	case bounded && (bound.always || grant == authz.Limited):
		if err := bound.check(a, old, now, caller); err != nil {
			return err
		}
	case grant == authz.Limited:
		return refuse(refusal.AccessDenied) // the table bounds the field, but it has no rule
	}
	pending := change.Pending(old)
	switch {
	case f.While == authz.Waiting && !pending, path == "job.hold" && old.HasStatus() && !pending:
		return refuse(refusal.NotPending)
	case path == "suspend" && pending:
		return refuse(refusal.JobPending)
	}
	return nil
}

// isFirstPartition reports whether spec.partition is the first of the partitions that
// the change requests.
func isFirstPartition(old, now *v1alpha1.BatchJob) bool {
	list := now.Spec.Job.Partitions
	return len(list) > 0 && now.Spec.Partition == list[0] &&
		!apiequality.Semantic.DeepEqual(old.Spec.Job.Partitions, list)
}

// checkGivenFields refuses a submission with fields that the caller's roles may not
// set, except those that prepare drops with a warning.
func checkGivenFields(b *v1alpha1.BatchJob, roles authz.Roles) error {
	if roles.Has(authz.Process) {
		return nil
	}
	// Only a running job can be suspended.
	if f, ok := authz.FieldAt("suspend"); b.Spec.Suspend && (!ok || f.Set.Grant(roles) == authz.Deny) {
		return refuse(refusal.AccessDenied)
	}
	return nil
}
