package operations_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/job"
	"github.com/berth-hpc/berth/translate/status"
)

// TestAttackersOfOperations: what a user may not do to other users' jobs, to the
// cluster, or to its own job's place in the queue.
func TestAttackersOfOperations(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", nil)
	c.add(t, 2, "anna", fake.InState(v1alpha1.StateRunning))
	c.add(t, 3, "ben", func(b *v1alpha1.BatchJob) { b.Spec.Job.Hold = "admin" })
	set := func(k, v string) map[string]string { return map[string]string{k: v} }
	for _, tt := range []struct {
		op   status.Operation
		want string
	}{
		{status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"}, Set: set("Comment", "x")}, "Invalid user id"},
		{status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"}, Set: set("Priority", "0")}, "Invalid user id"},
		{status.Operation{Verb: status.OpUpdate, Jobs: []string{"3"}, Set: set("Priority", "4000000000")},
			"Job is in held state, pending scheduler release"},
		{status.Operation{Verb: status.OpUpdate, Jobs: []string{"3"}, Set: set("Nice", "-100")},
			"Access/permission denied"},
		{status.Operation{Verb: status.OpUpdate, Jobs: []string{"3"}, Set: set("AdminComment", "x")},
			"Access/permission denied"},
		{status.Operation{Verb: status.OpUpdate, Jobs: []string{"3"}, Set: set("UserID", "root")},
			"Invalid UserID: root"},
		{status.Operation{Verb: status.OpUpdate, Jobs: []string{"3"}, Set: set("UserID", "anna")},
			"No changes specified"},
		{status.Operation{Verb: status.OpRelease, Jobs: []string{"3"}}, "Access/permission denied"},
		{status.Operation{Verb: status.OpUHold, Jobs: []string{"3"}}, ""}, // changes nothing
		{status.Operation{Verb: status.OpSuspend, Jobs: []string{"2"}}, "Access/permission denied"},
		{status.Operation{Verb: status.OpResume, Jobs: []string{"2"}}, "Access/permission denied"},
		{status.Operation{Verb: status.OpRequeueHold, Jobs: []string{"2"}}, "Access/permission denied"},
		{status.Operation{Verb: status.OpNotify, Jobs: []string{"2"}, Message: "boo"}, "Invalid user id"},
		{status.Operation{Verb: status.OpTop, Jobs: []string{"3"}}, "Access/permission denied"},
		{status.Operation{Verb: status.OpTop, Jobs: []string{"999999"}}, "Access/permission denied"},
		{status.Operation{Verb: status.OpUpdate, Entity: "node", Targets: []string{"n1"}, Set: set("State", "DOWN")},
			"Invalid user id"},
		{status.Operation{Verb: status.OpUpdate, Entity: "partition", Targets: []string{"main"}, Set: set("State", "DOWN")}, "Invalid user id"},
		{status.Operation{Verb: status.OpCreate, Entity: "partition", Targets: []string{"mine"}}, "Invalid user id"},
		{status.Operation{Verb: status.OpDelete, Entity: "partition", Targets: []string{"main"}}, "Invalid user id"},
		{status.Operation{Verb: status.OpCreate, Entity: "reservation", Set: map[string]string{"Nodes": "ALL", "StartTime": "now", "Duration": "5", "Users": "ben"}}, "Invalid user id"},
		{status.Operation{Verb: status.OpCreate, Entity: "reservation", Set: set("Nodes", "ALL")},
			"A start time must be given.  No reservation created."},
		{status.Operation{Verb: status.OpUpdate, Entity: "partition", Targets: []string{"nosuch"}, Set: set("PriorityTier", "x")}, "Invalid PriorityTier value: x"},
		{status.Operation{Verb: status.OpUpdate, Entity: "node", Targets: []string{"nosuch"}, Set: set("Foo", "x")},
			"Update of this parameter is not supported: foo=x"},
		{status.Operation{Verb: status.OpUpdate, Jobs: []string{"999"}, Set: set("TimeLimit", "x")},
			"Invalid TimeLimit value"},
		{status.Operation{Verb: status.OpDelete, Entity: "reservation", Targets: []string{"r"}}, "Invalid user id"},
	} {
		if got := c.operation(t, "ben", tt.op); got.Error != tt.want {
			t.Errorf("%+v: %q, want %q", tt.op, got.Error, tt.want)
		}
	}
	if s := c.stored(t, 3); s.Job.Hold != "admin" || s.Job.Nice != 0 || s.Job.Priority != nil {
		t.Errorf("job 3 changed: %+v", s.Job)
	}
	if s := c.stored(t, 1); s.Job.Comment != "" || s.Job.Hold != "" || len(c.agents.Sent()) > 0 {
		t.Errorf("job 1 changed: %+v; sent %v", s.Job, c.agents.Sent())
	}
}

func TestUpdateIsStored(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Script = []byte("script") })
	got := c.operation(t, "anna", status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"},
		Set: map[string]string{"TimeLimit": "30", "Comment": "x", "NumTasks": "4"}})
	s := c.stored(t, 1)
	if got.Error != "" || s.Job.Time.Limit != 30 || s.Job.Comment != "x" || s.Job.Shape.Tasks != 4 || string(s.Script) != "script" {
		t.Errorf("%q %+v", got.Error, s.Job)
	}
	if got := c.operation(t, "anna", status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"}, Set: map[string]string{"Comment": ""}}); got.Error != "" || c.stored(t, 1).Job.Comment != "" {
		t.Errorf("a field is emptied: %q", got.Error)
	}
	if got := c.operation(t, "anna", status.Operation{Verb: status.OpUpdate, Jobs: []string{"77"}, Set: map[string]string{"Comment": ""}}); got.Error != "Invalid job id specified" {
		t.Errorf("no such job: %q", got.Error)
	}
}

func TestSuspendAndRequeueHold(t *testing.T) {
	c := newCluster(t)
	c.add(t, 1, "anna", fake.InState(v1alpha1.StateRunning))
	c.add(t, 2, "anna", func(b *v1alpha1.BatchJob) {
		b.Status.State, b.Spec.Cancel = v1alpha1.StateCancelled, &v1alpha1.CancelRequest{By: "anna"}
	})
	c.add(t, 3, "anna", nil)
	for _, tt := range []struct{ verb, job, want string }{
		{status.OpResume, "1", "Job is not suspended"},
		{status.OpSuspend, "1", ""},
		{status.OpSuspend, "1", ""},
		{status.OpSuspend, "2", "Job/step already completing or completed"},
		{status.OpSuspend, "3", "Job is pending execution"},
		{status.OpResume, "1", ""},
		{status.OpRequeueHold, "1", ""},
		{status.OpRequeueHold, "3", "Job is pending execution"},
		{status.OpRequeue, "2", ""},
		{status.OpNotify, "3", "Requested operation is presently disabled"},
		{status.OpNotify, "1", ""},
	} {
		if got := c.operation(t, "opal", status.Operation{Verb: tt.verb, Jobs: []string{tt.job}, Message: "a\nb"}); got.Error != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.verb, tt.job, got.Error, tt.want)
		}
	}
	if s := c.stored(t, 1); s.Suspend || s.Requeues != 1 || s.Job.Hold != job.HoldRequeue {
		t.Errorf("1: %+v", s)
	}
	if s := c.stored(t, 2); s.Cancel != nil || s.Requeues != 1 {
		t.Errorf("2: %+v", s)
	}
	c.add(t, 4, "anna", fake.InState(v1alpha1.StateRunning))
	special := status.Operation{Verb: status.OpRequeueHold, Jobs: []string{"4"}, Set: map[string]string{"State": "SpecialExit"}}
	if got := c.operation(t, "anna", special); got.Error != "" {
		t.Errorf("special exit: %q", got.Error)
	}
	if s := c.stored(t, 4); s.Job.Hold != job.HoldSpecial || s.Requeues != 1 {
		t.Errorf("4: %+v", s)
	}
	if len(c.agents.Sent()) != 1 || c.agents.Sent()[0].Text != "a b" {
		t.Errorf("sent %+v", c.agents.Sent())
	}
}

func TestNodesAreDrained(t *testing.T) {
	c := newCluster(t)
	if err := c.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}); err != nil {
		t.Fatal(err)
	}
	update := func(name string, set map[string]string) string {
		return c.operation(t, "opal", status.Operation{Verb: status.OpUpdate, Entity: "node", Targets: []string{name}, Set: set}).Error
	}
	for _, tt := range []struct {
		name string
		set  map[string]string
		want string
	}{
		{"zz", map[string]string{"State": "DRAIN", "Reason": "x"}, "Invalid node name specified"},
		{"n1", map[string]string{"State": "DRAIN"},
			"You must specify a reason when DOWNING or DRAINING a node. Request denied"},
		{"n1", map[string]string{"State": "RESUME"}, "Invalid node state specified"},
		{"n1", map[string]string{"State": "BOGUS", "Reason": "x"}, "Invalid node state specified"},
		{"n1", map[string]string{"ActiveFeatures": "x"}, "Active features not subset of available features"},
		{"n1", map[string]string{"Weight": "heavy"}, "Requested operation not supported on this system"},
		{"n1", map[string]string{"State": "drain", "Reason": "bad\ndisk"}, ""},
	} {
		if got := update(tt.name, tt.set); got != tt.want {
			t.Errorf("%s %v: %q, want %q", tt.name, tt.set, got, tt.want)
		}
	}
	n := &corev1.Node{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: "n1"}, n); err != nil {
		t.Fatal(err)
	}
	want := "bad disk [opal@" + c.now.UTC().Format("2006-01-02T15:04:05") + "]"
	if !n.Spec.Unschedulable || n.Annotations[wire.AnnotationState] != "drain" || n.Annotations[wire.AnnotationReason] != want {
		t.Errorf("%+v %+v", n.Spec, n.Annotations)
	}
}

// TestPartitionsOfAnyName: what Slurm 22.05.8 answers about partitions whose names
// Kubernetes does not accept, and about their nodes.
func TestPartitionsOfAnyName(t *testing.T) {
	c := newCluster(t)
	ada := fake.User("ada", 1004)
	ada.Spec.AdminLevel = directory.LevelAdministrator
	fake.Feed(c.Cluster, ada, fake.Partition("main", nil))
	partition := func(verb, name string, settings ...string) string {
		set := map[string]string{}
		for _, s := range settings {
			key, v, _ := strings.Cut(s, "=")
			set[key] = v
		}
		return c.operation(t, "ada", status.Operation{
			Verb: verb, Entity: "partition", Targets: []string{name}, Set: set,
		}).Error
	}
	for _, name := range []string{"gpu_short", "GPU_short", "QA", "Gpu.x", "a+b", "a:b", "a@b"} {
		if got := partition(status.OpCreate, name, "Nodes=n1"); got != "" {
			t.Errorf("creating %s: %s", name, got)
		}
		if got := partition(status.OpCreate, name); got != "Invalid partition name specified" {
			t.Errorf("creating %s again: %q", name, got)
		}
		if got := partition(status.OpUpdate, name, "MaxTime=5"); got != "" {
			t.Errorf("updating %s: %s", name, got)
		}
		p := c.service.Directory.Partition(name)
		if p == nil || p.Name != name || p.Spec.MaxTime != 5 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if got := partition(status.OpUpdate, "QA", "OverTimeLimit=UNLIMITED"); got != "" {
		t.Error(got)
	}
	if over := c.service.Directory.Partition("QA").Spec.OverTimeLimit; over == nil || *over != math.MaxInt32 {
		t.Errorf("OverTimeLimit=UNLIMITED is %v", over)
	}
	if p := c.service.Directory.Partition("qa"); p != nil {
		t.Errorf("qa is %+v", p)
	}
	if got := partition(status.OpUpdate, "QA", "Default=YES"); got != "" {
		t.Error(got)
	}
	if got := partition(status.OpUpdate, "Gpu.x", "Default=YES"); got != "" {
		t.Error(got)
	}
	if got := c.service.Directory.Default().Name; got != "Gpu.x" {
		t.Errorf("the default partition is %s", got)
	}
	if got := partition(status.OpDelete, "QA"); got != "" {
		t.Error(got)
	}
	stored := &v1alpha1.PartitionList{}
	if err := c.Client.List(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	for i := range stored.Items {
		p := &stored.Items[i]
		if v1alpha1.PartitionName(p.Name, p.Annotations) == "QA" || p.Annotations["berth.hpc/object"] != "" {
			t.Errorf("stored: %+v", p.ObjectMeta)
		}
	}
	for _, nodes := range []string{"n99", "n1,n99", "n[1-2]"} {
		if got := partition(status.OpCreate, "p", "Nodes="+nodes); got != "Invalid node name specified" {
			t.Errorf("nodes %s: %q", nodes, got)
		}
	}
	if got := partition(status.OpCreate, "p", "Priority=3"); got != "" {
		t.Error(got)
	}
	spec := c.service.Directory.Partition("p").Spec
	if spec.Nodes != v1alpha1.NoNodes || spec.MinNodes != 1 || spec.PriorityTier != 3 || spec.PriorityJobFactor != 3 {
		t.Errorf("%+v", spec)
	}
}

// TestNodeSettings: what Slurm 22.05.8 answers to scontrol update nodename=n1.
func TestNodeSettings(t *testing.T) {
	c := newCluster(t)
	c.nodes[0].Features, c.nodes[0].GRES = []string{"old"}, "gpu:tesla:2"
	node := &corev1.Node{}
	node.Name = "n1"
	if err := c.Client.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		set  map[string]string
		want string
	}{
		{map[string]string{"AvailableFeatures": "slow,x", "ActiveFeatures": "slow,x"}, ""},
		{map[string]string{"ActiveFeatures": "slow"}, "Active features not subset of available features"},
		{map[string]string{"Comment": "hi", "Extra": "e"}, ""},
		{map[string]string{"CpuBind": "cores"}, ""},
		{map[string]string{"Gres": "gpu:1"}, "Invalid generic resource (gres) specification"},
		{map[string]string{"Gres": "gpu:tesla:2"}, ""},
	} {
		got := c.operation(t, "opal", status.Operation{
			Verb: status.OpUpdate, Entity: "node", Targets: []string{"n1"}, Set: x.set,
		})
		if got.Error != x.want {
			t.Errorf("%v: %q, want %q", x.set, got.Error, x.want)
		}
	}
	if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		wire.AnnotationFeatures: "slow,x", wire.AnnotationComment: "hi", wire.AnnotationExtra: "e",
		wire.AnnotationCPUBind: "cores",
	} {
		if got := node.Annotations[key]; got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestReservations(t *testing.T) {
	c := newCluster(t)
	create := func(name string, set map[string]string) status.OperationStatus {
		op := status.Operation{Verb: status.OpCreate, Entity: "reservation", Set: set}
		if name != "" {
			op.Targets = []string{name}
		}
		return c.operation(t, "opal", op)
	}
	good := map[string]string{"StartTime": "now+1day", "Duration": "5", "Nodes": "n1", "Users": "anna"}
	if got := create("", good); got.Error != "" || got.Job != "anna_1" {
		t.Fatalf("%+v", got)
	}
	if got := create("second", good); got.Error != "Requested reservation overlaps with another reservation" {
		t.Errorf("%+v", got)
	}
	if got := create("many", map[string]string{"StartTime": "now+2day", "Duration": "5", "NodeCnt": "1", "Features": "nope", "Users": "anna"}); got.Error != "Invalid feature specification" {
		t.Errorf("%+v", got)
	}
	c.add(t, 1, "ben", func(b *v1alpha1.BatchJob) {
		b.Status.State = v1alpha1.StateRunning
		b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: "n1"}}}
	})
	later := map[string]string{"StartTime": "now+2day", "Duration": "5", "NodeCnt": "1", "Users": "anna"}
	if got := create("later", later); got.Error != "Requested nodes are busy" {
		t.Errorf("a job without a limit holds the node: %+v", got)
	}
	later["Flags"] = "ignore_jobs"
	if got := create("later", later); got.Error != "" {
		t.Errorf("%+v", got)
	}
	r := c.service.Directory.Reservation("anna_1")
	if r == nil || r.Spec.Duration != 5 || r.Spec.By != "opal" {
		t.Errorf("%+v", r)
	}
	if r = c.service.Directory.Reservation("later"); r == nil || r.Spec.Nodes != "n1" {
		t.Errorf("%+v", r)
	}
	remove := func(name string) string {
		return c.operation(t, "opal", status.Operation{Verb: status.OpDelete, Entity: "reservation", Targets: []string{name}}).Error
	}
	if got := remove("anna_1"); got != "" {
		t.Error(got)
	}
	if got := remove("anna_1"); got != "Requested reservation is invalid" {
		t.Error(got)
	}
	c.add(t, 2, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Reservation = "later" })
	if got := remove("later"); got != "Requested reservation is in use" { // by a pending job
		t.Error(got)
	}
}

// TestUpdatedReservations: what Slurm 22.05.8 answers: another duration leaves the flags,
// and users need associations with the accounts that a reservation names beside them.
func TestUpdatedReservations(t *testing.T) {
	c := newCluster(t)
	science := &v1alpha1.Account{}
	science.Name = "science"
	anna := fake.User("anna", 1001)
	anna.Spec.Accounts = []string{"science"}
	fake.Feed(c.Cluster, science, anna)
	reserve := func(verb, name string, set map[string]string) string {
		op := status.Operation{Verb: verb, Entity: "reservation", Targets: []string{name}, Set: set}
		return c.operation(t, "opal", op).Error
	}
	spec := map[string]string{
		"StartTime": "now+1day", "Duration": "60", "NodeCnt": "1", "Flags": "replace", "Users": "anna", "Accounts": "science",
	}
	if got := reserve(status.OpCreate, "r", spec); got != "" {
		t.Fatal(got)
	}
	flags := c.service.Directory.Reservation("r").Spec.Flags
	if got := reserve(status.OpUpdate, "r", map[string]string{"Duration": "5"}); got != "" {
		t.Fatal(got)
	}
	if now := c.service.Directory.Reservation("r").Spec; now.Duration != 5 || !reflect.DeepEqual(now.Flags, flags) {
		t.Errorf("the flags were %v, and are %+v", flags, now)
	}
	spec["Users"] = "ben"
	if got := reserve(status.OpCreate, "s", spec); got != "Invalid account or account/partition combination specified" {
		t.Errorf("of a user without an association: %q", got)
	}
}

// TestImpossibleReservations: the refusals of Slurm 22.05.8, none of which changes
// anything.
func TestImpossibleReservations(t *testing.T) {
	c := newCluster(t)
	reserve := func(verb, name string, changes ...string) string {
		set := map[string]string{}
		if verb == status.OpCreate {
			set = map[string]string{"StartTime": "now+1hour", "Duration": "5", "Nodes": "n1", "Users": "anna"}
		}
		for i := 0; i < len(changes); i += 2 {
			set[changes[i]] = changes[i+1]
		}
		return c.operation(t, "opal", status.Operation{Verb: verb, Entity: "reservation", Targets: []string{name}, Set: set}).Error
	}
	all := func() []v1alpha1.ReservationSpec {
		var l v1alpha1.ReservationList
		if err := c.Client.List(t.Context(), &l); err != nil {
			t.Fatal(err)
		}
		var out []v1alpha1.ReservationSpec
		for i := range l.Items {
			out = append(out, l.Items[i].Spec)
		}
		return out
	}
	if got := reserve(status.OpCreate, "held"); got != "" {
		t.Fatal(got)
	}
	before := all()
	for _, tt := range []struct {
		verb, name, key, value, want string
	}{
		{status.OpCreate, "r", "StartTime", "2020-01-01", "Invalid time specified"},
		{status.OpCreate, "r", "Nodes", "n9", "Invalid node name specified"},
		{status.OpCreate, "r", "Nodes", "n[1-9]", "Invalid node name specified"},
		{status.OpCreate, "r", "Nodes", "n[1-", "Invalid node name specified"},
		{status.OpCreate, "r", "Users", "nobody", "Invalid user id"},
		{status.OpCreate, "r", "Partition", "nope", "Invalid partition name specified"},
		{status.OpCreate, "r", "Licenses", "nope", "Invalid license specification"},
		{status.OpCreate, "r", "MaxStartDelay", "5", "Requested operation not supported on this system"},
		{status.OpCreate, "r", "Comment", "x", "Unknown parameter comment=x.  No reservation created."},
		{status.OpUpdate, "nope", "Duration", "6", "Requested reservation is invalid"},
		{status.OpUpdate, "held", "StartTime", "2020-01-01", "Invalid time specified"},
		{status.OpUpdate, "held", "EndTime", "now", "Invalid time specified"},
		{status.OpUpdate, "held", "Nodes", "n9", "Invalid node name specified"},
		{status.OpUpdate, "held", "Users", "nobody", "Invalid user id"},
		{status.OpUpdate, "held", "Users-", "anna", "Reservation request lacks users, groups or accounts"},
		{status.OpUpdate, "held", "Partition", "nope", "Invalid partition name specified"},
		{status.OpUpdate, "held", "Flags", "foo", "Error parsing flags foo.  No reservation update."},
		{status.OpUpdate, "held", "Licenses", "nope", "Invalid license specification"},
	} {
		if got := reserve(tt.verb, tt.name, tt.key, tt.value); got != tt.want {
			t.Errorf("%s %s %s=%s: %q, want %q", tt.verb, tt.name, tt.key, tt.value, got, tt.want)
		}
		if after := all(); !reflect.DeepEqual(before, after) {
			t.Fatalf("%s %s %s=%s changes what is: %+v", tt.verb, tt.name, tt.key, tt.value, after)
		}
	}
}

// TestImpossibleUpdates: no setting is made if one of them is refused. The refusals are
// those of Slurm 22.05.8.
func TestImpossibleUpdates(t *testing.T) {
	c := newCluster(t)
	dependsOn := func(id int64) func(*v1alpha1.BatchJob) {
		return func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Dependencies = job.Dependencies{Items: []job.Dependency{{Type: "afterok", JobID: id}}}
		}
	}
	c.add(t, 1, "anna", nil)
	c.add(t, 2, "anna", dependsOn(1))
	c.add(t, 3, "anna", dependsOn(2))
	before := c.stored(t, 1)
	for _, tt := range []struct{ key, value, want string }{
		{"Dependency", "afterok:2", "Circular job dependency"},
		{"Dependency", "afterany:3", "Circular job dependency"},
		{"Dependency", "singleton,afterok:3", "Circular job dependency"},
		{"Dependency", "afterok:1", "Job dependency problem"},
		{"Partition", "nope", "Invalid partition name specified"},
		{"ReqNodeList", "n9", "Invalid node name specified"},
		{"TimeMin", "900", string(refusal.InvalidTimeMin)},
	} {
		op := status.Operation{Verb: status.OpUpdate, Jobs: []string{"1"}, Set: map[string]string{"Comment": "x", "TimeLimit": "7", tt.key: tt.value}}
		if got := c.operation(t, "anna", op); got.Error != tt.want {
			t.Errorf("%s=%s: %q, want %q", tt.key, tt.value, got.Error, tt.want)
		}
		if after := c.stored(t, 1); !reflect.DeepEqual(before, after) {
			t.Fatalf("%s=%s changes the job: %+v", tt.key, tt.value, after.Job)
		}
	}
}
