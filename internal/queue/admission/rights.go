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

// changedFields returns the paths below spec that differ, as authz.Field has
// them.
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

// fieldBounds are the rules for fields that the table bounds (authz.Bounded). Those
// of always hold for everybody but Berth's own processes.
var fieldBounds = map[string]struct {
	always bool
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
		return denyIf(!change.Pending(old) && !a.shorter(&now.Spec.Job, old))
	}},
}

// holdAdmin is the hold of an operator.
const holdAdmin = "admin"

func denyIf(forbidden bool) error {
	if forbidden {
		return refuse(refusal.AccessDenied)
	}
	return nil
}

func (a *Admission) boundCancel(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	switch {
	case old.Spec.Cancel != nil:
		return refuse("a cancellation cannot be taken back")
	case now.Spec.Cancel.By != caller.Name:
		return refuse("spec.cancel.by is set by the cluster")
	}
	return nil
}

func (a *Admission) boundRequeues(old, now *v1alpha1.BatchJob, _ *directory.Caller) error {
	switch {
	case now.Spec.Requeues != old.Spec.Requeues+1:
		return refuse("spec.requeues may be raised by one only")
	case !a.Directory.Requeueable(&old.Spec.Job):
		return refuse(refusal.Disabled)
	}
	return nil
}

// boundArray lets nothing but the number of tasks that run at a time change.
func boundArray(o, n *job.Array) error {
	if o == nil || n == nil || n.Max < 0 || value.ArraySpec(array.Parse(o.Spec), n.Max) != n.Spec {
		return refuse(refusal.InvalidArray)
	}
	return nil
}

// checkFields lets the caller change what the table of fields gives its roles.
func (a *Admission) checkFields(old, now *v1alpha1.BatchJob, caller *directory.Caller) error {
	roles := a.Directory.RolesOnJob(caller, old)
	checked := false
	for _, path := range changedFields(&old.Spec, &now.Spec) {
		if path == "partition" && follows(old, now) {
			continue
		}
		f, ok := authz.FieldAt(path)
		if !ok {
			return refuse(refusal.AccessDenied)
		}
		if err := a.checkField(f, path, old, now, caller, roles); err != nil {
			return err
		}
		checked = checked || f.Checked
	}
	if err := a.checkForm(&now.Spec.Job, caller); err != nil && now.Spec.Job.Nice != old.Spec.Job.Nice {
		return err
	}
	if !checked || !change.Pending(old) {
		return nil
	}
	return a.judgeAs(now, caller.Operator)
}

func (a *Admission) checkField(f *authz.Field, path string, old, now *v1alpha1.BatchJob, caller *directory.Caller, roles authz.Roles) error {
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
		return refuse(refusal.AccessDenied) // the table bounds it, and nothing here says how
	}
	waits := change.Pending(old)
	switch {
	case f.While == authz.Waiting && !waits, path == "job.hold" && old.Begun() && !waits:
		return refuse(refusal.NotPending)
	case path == "suspend" && waits:
		return refuse(refusal.JobPending)
	}
	return nil
}

// follows reports whether spec.partition is the first of the partitions that
// the change asks for.
func follows(old, now *v1alpha1.BatchJob) bool {
	list := now.Spec.Job.Partitions
	return len(list) > 0 && now.Spec.Partition == list[0] && !apiequality.Semantic.DeepEqual(old.Spec.Job.Partitions, list)
}

// mayGive refuses a submission whose fields are more than the caller's roles
// may give. What prepare drops with a warning is not in it.
func mayGive(b *v1alpha1.BatchJob, roles authz.Roles) error {
	if roles.Has(authz.Process) {
		return nil
	}
	// The scheduler alone suspends a job that does not run: none.
	if f, ok := authz.FieldAt("suspend"); b.Spec.Suspend && (!ok || f.Set.Grant(roles) == authz.Deny) {
		return refuse(refusal.AccessDenied)
	}
	return nil
}
