package change_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/queue/change"
	"github.com/berth-hpc/berth/internal/queue/refusal"
	"github.com/berth-hpc/berth/translate/job"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// pending returns job 7 with a limit of an hour; running the same job on a node.
func pending() *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{Spec: v1alpha1.BatchJobSpec{JobID: 7, Partition: "debug"}}
	b.Spec.Job.Time.Limit, b.Spec.Job.Nice = 60, 10
	return b
}

func running() *v1alpha1.BatchJob {
	b := pending()
	start := metav1.NewMicroTime(now.Add(-10 * time.Minute))
	b.Status = v1alpha1.BatchJobStatus{State: v1alpha1.StateRunning, StartTime: &start, TimeLimit: 60}
	return b
}

func finished() *v1alpha1.BatchJob {
	b := running()
	b.Status.State = v1alpha1.StateCompleted
	return b
}

// stored returns a lookup of a name that ignores case.
func stored(name string) func(string) (string, bool) {
	return func(s string) (string, bool) { return name, strings.EqualFold(s, name) }
}

func environment(operator bool) *change.Environment {
	dependent := pending()
	dependent.Spec.JobID = 9
	dependent.Spec.Job.Dependencies = job.Dependencies{Items: []job.Dependency{{Type: "afterok", JobID: 7}}}
	is := func(names ...string) func(string) bool {
		return func(s string) bool {
			for _, n := range names {
				if n == s {
					return true
				}
			}
			return false
		}
	}
	return &change.Environment{
		Now: now, Operator: operator, Priority: 365, TimeLimit: 60,
		Partition: func(s string) *v1alpha1.Partition {
			if s != "batch" && s != "debug" {
				return nil
			}
			return &v1alpha1.Partition{}
		},
		Account: stored("science"), QOS: stored("normal"), Node: is("n1", "n2"), Reservation: is("resv"), License: is("matlab"),
		Job: func(id int64) *v1alpha1.BatchJob {
			if id == 9 {
				return dependent
			}
			return nil
		},
	}
}

// TestResponsesOfSlurm: the responses of Slurm 22.05.8 to a user about its own pending
// job and its own running job; "" is success.
func TestResponsesOfSlurm(t *testing.T) {
	const (
		denied     = "Access/permission denied"
		notPending = "Job is no longer pending execution"
		noSupport  = "Requested operation not supported on this system"
	)
	for _, tt := range []struct{ key, value, pending, running string }{
		{"TimeLimit", "30", "", ""},
		{"TimeLimit", "90", "", denied},
		{"TimeLimit", "+5", "", denied},
		{"TimeLimit", "-5", "", ""},
		{"TimeLimit", "abc", "Invalid TimeLimit value", "Invalid TimeLimit value"},
		{"TimeLimit", "UNLIMITED", "", denied},
		{"Nice", "10", "", ""},
		{"Nice", "5", "", ""},
		{"Nice", "-5", denied, denied},
		{"Nice", "", "", ""},
		{"Priority", "5", string(refusal.PriorityNotPersistent), string(refusal.PriorityNotPersistent)},
		{"Priority", "99999", denied, denied},
		{"Priority", "0", "", ""},
		{"Priority", "-1", "Invalid Priority value: -1", "Invalid Priority value: -1"},
		{"Contiguous", "foo", "Invalid Contiguous value: foo", "Invalid Contiguous value: foo"},
		{"MinMemoryCPU", "foo", "Invalid MinMemoryCPU value: foo", "Invalid MinMemoryCPU value: foo"},
		{"Partition", "batch", "", notPending},
		{"Partition", "nope", "Invalid partition name specified", notPending},
		{"Partition", "batch,nope", "Invalid partition name specified", notPending},
		{"Account", "science", "", notPending},
		{"Account", "nope", "Invalid account or account/partition combination specified", notPending},
		{"QOS", "normal", "", ""},
		{"QOS", "nope", "Invalid qos specification", "Invalid qos specification"},
		{"JobName", "xx", "", ""},
		{"Comment", "hello", "", ""},
		{"NumNodes", "2", "", noSupport},
		{"NumNodes", "1-2", "", notPending},
		{"NumNodes", "-1", `Invalid numeric value "-1" for requested node count.`,
			`Invalid numeric value "-1" for requested node count.`},
		{"NumNodes", "3-1", "Node count specification invalid", noSupport},
		{"NumNodes", "0", "Node count specification invalid", "Node count specification invalid"},
		{"NumTasks", "0", "Task count specification invalid", notPending},
		{"NumNodes", "abc", `Invalid numeric value "abc" for requested node count.`, noSupport},
		{"NumCPUs", "2", "", notPending},
		{"NumTasks", "3", "", notPending},
		{"StartTime", "now+2hours", "", notPending},
		{"Dependency", "afterok:8", "", notPending},
		{"Dependency", "singleton", "", notPending},
		{"Dependency", "", "", notPending},
		{"Dependency", "foo", "Job dependency problem", "Job dependency problem"},
		{"Dependency", "afterok:7", "Job dependency problem", "Job dependency problem"},
		{"Dependency", "afterany:9", "Circular job dependency", "Circular job dependency"},
		{"ReqNodeList", "n2", "", notPending},
		{"ReqNodeList", "zz", "Invalid node name specified", "Invalid node name specified"},
		{"ExcNodeList", "n1", "", notPending},
		{"ExcNodeList", "zz", "Invalid node name specified", "Invalid node name specified"},
		{"Requeue", "0", "", ""},
		{"Licenses", "foo:1", "Invalid license specification", "Invalid license specification"},
		{"Licenses", "matlab:2", "", notPending},
		{"ReservationName", "nope", "Requested reservation is invalid", "Requested reservation is invalid"},
		{"MailUser", "bob", "", ""},
		{"MailType", "END", "", ""},
		{"MinMemoryNode", "10", "", notPending},
		{"MinCPUsNode", "2", "", notPending},
		{"Contiguous", "1", denied, notPending},
		{"EndTime", "now+10", "Job is not running", ""},
		{"Deadline", "now+3hours", denied, denied},
		{"Deadline", "now", denied, denied},
		{"ReqSockets", "x", "Invalid ReqSockets value: x", "Invalid ReqSockets value: x"},
		{"MinMemoryNode", "1G", "Invalid MinMemoryNode value: 1G", "Invalid MinMemoryNode value: 1G"},
		{"TresPerNode", "gpu:1", string(refusal.InvalidTRES), notPending},
		{"TresPerNode", "gres:gpu:1", "", notPending},
		{"TresPerJob", "gres:gpu:1", "", notPending},
		{"Gres", "", string(refusal.InvalidTRES), notPending},
		{"Gres", "none", string(refusal.InvalidGRES), notPending},
		{"Deadline", "2020-01-01", "Invalid time specified", "Invalid time specified"},
		{"TimeMin", "10", "", ""},
		{"TimeMin", "0", "", ""},
		{"TimeMin", "900", string(refusal.InvalidTimeMin), ""},
		{"AdminComment", "x", denied, denied},
		{"OverSubscribe", "YES", denied, notPending},
		{"OverSubscribe", "ok", "Invalid OverSubscribe value: ok", "Invalid OverSubscribe value: ok"},
		{"Contiguous", "y", denied, notPending},
		{"ThreadSpec", "-1", denied, notPending},
		{"ThreadSpec", "x", "Invalid ThreadSpec value: x", "Invalid ThreadSpec value: x"},
		{"SiteFactor", "1.5", denied, notPending},
		{"ArrayTaskThrottle", "-1", "Invalid ArrayTaskThrottle value", "Invalid ArrayTaskThrottle value"},
		{"MinTmpDiskNode", "500M", "Invalid MinTmpDiskNode value: 500M", "Invalid MinTmpDiskNode value: 500M"},
		{"ClusterFeatures", "2", "Unspecified error", "Unspecified error"},
		{"ReqCores", "0", "", notPending},
		{"StdOut", "/tmp/x", "", notPending},
		{"WorkDir", "/tmp", "", notPending},
		{"Gres", "gpu:1", "", notPending},
		{"WCKey", "foo", "", notPending},
		{"ArrayTaskThrottle", "2", "", ""},
		{"BurstBuffer", "1", noSupport, noSupport},
		{"Foo", "bar", "Update of this parameter is not supported: Foo=bar",
			"Update of this parameter is not supported: Foo=bar"},
	} {
		for _, b := range []*v1alpha1.BatchJob{pending(), running()} {
			_, err := change.Job(b, map[string]string{tt.key: tt.value}, environment(false))
			want := tt.running
			if change.Pending(b) {
				want = tt.pending
			}
			if got := message(err); got != want {
				t.Errorf("%s=%s of a %s job: %q, want %q", tt.key, tt.value, b.Status.State, got, want)
			}
		}
		if _, err := change.Job(finished(), map[string]string{tt.key: tt.value}, environment(true)); !errors.Is(err, refusal.JobFinished) {
			t.Errorf("%s of a finished job: %v", tt.key, err)
		}
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAllOrNothing(t *testing.T) {
	b := pending()
	before := b.DeepCopy()
	n, err := change.Job(b, map[string]string{"Comment": "hello", "Nice": "-1"}, environment(false))
	if n != nil || !errors.Is(err, refusal.AccessDenied) || !reflect.DeepEqual(b, before) {
		t.Errorf("%v %v", n, err)
	}
	if _, err := change.Job(b, nil, environment(true)); !errors.Is(err, refusal.NoChanges) {
		t.Errorf("no settings: %v", err)
	}
	refused := errors.New("too large")
	w := environment(false)
	w.Validate = func(*v1alpha1.BatchJob) error { return refused }
	if _, err := change.Job(b, map[string]string{"NumNodes": "99"}, w); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if _, err := change.Job(b, map[string]string{"Comment": "x"}, w); err != nil {
		t.Errorf("a comment needs no validation of the job: %v", err)
	}
}

func TestTheFirstOfSeveralWrongValuesIsRefused(t *testing.T) {
	for _, tt := range []struct {
		set  map[string]string
		want error
	}{
		{map[string]string{"ExcNodeList": "nosuch", "Licenses": "a:b:c"}, refusal.InvalidLicense},
		{map[string]string{"NumNodes": "0", "OverSubscribe": "no"}, refusal.InvalidNodeCount},
		{map[string]string{"ClusterFeatures": "1", "Nice": "-5"}, refusal.AccessDenied},
		{map[string]string{"SiteFactor": "1", "TresPerTask": "5"}, refusal.InvalidTRES},
		{map[string]string{"ReservationName": "nosuch", "TresPerTask": "5"}, refusal.InvalidReservation},
	} {
		if _, err := change.Job(pending(), tt.set, environment(false)); !errors.Is(err, tt.want) {
			t.Errorf("%v: %v, want %v", tt.set, err, tt.want)
		}
	}
	set := map[string]string{"Requeue": "x", "Nice": "y"}
	for _, keys := range [][]string{{"Requeue", "Nice"}, {"Nice", "Requeue"}} {
		if err := change.CheckJobSettings(set, keys, time.Now()); err == nil || !strings.Contains(err.Error(), keys[0]) {
			t.Errorf("%v: %v", keys, err)
		}
	}
}

// TestNodeCountOfAJob has answers of Slurm 22.05: a single number is the least one, each node
// has a task, and only an explicit maximum is a limit.
func TestNodeCountOfAJob(t *testing.T) {
	b := pending()
	b.Spec.Job.Shape.Tasks, b.Spec.Job.Shape.MinNodes, b.Spec.Job.Shape.MaxNodes = 2, 1, 0
	n, err := change.Job(b, map[string]string{"NumNodes": "4"}, environment(false))
	if err != nil || n.Spec.Job.Shape.MinNodes != 4 || n.Spec.Job.Shape.MaxNodes != 0 || n.Spec.Job.Shape.Tasks != 4 {
		t.Fatalf("%+v %v", n, err)
	}
	b.Spec.Job.Shape.MaxNodes = 2
	if _, err := change.Job(b, map[string]string{"NumNodes": "4"}, environment(false)); !errors.Is(err, refusal.InvalidNodeCount) {
		t.Errorf("beyond the maximum: %v", err)
	}
	if n, err := change.Job(b, map[string]string{"NumNodes": "3-4"}, environment(false)); err != nil || n.Spec.Job.Shape.Tasks != 3 {
		t.Errorf("a range: %+v %v", n, err)
	}
}

// arrayJob returns a pending array with two tasks at a time.
func arrayJob(spec string) *v1alpha1.BatchJob {
	b := pending()
	b.Spec.Job.Array = &job.Array{Spec: spec, Max: 2}
	return b
}

func TestEffects(t *testing.T) {
	five := int64(5)
	for _, tt := range []struct {
		job        *v1alpha1.BatchJob
		key, value string
		ok         func(*job.Job) bool
	}{
		{arrayJob("0-2,7%2"), "ArrayTaskThrottle", "1",
			func(j *job.Job) bool { return j.Array.Spec == "0-2,7%1" && j.Array.Max == 1 }},
		{arrayJob("1-5:2%2"), "ArrayTaskThrottle", "0",
			func(j *job.Job) bool { return j.Array.Spec == "1,3,5" && j.Array.Max == 0 }},
		{pending(), "TimeLimit", "+5", func(j *job.Job) bool { return j.Time.Limit == 65 }},
		{pending(), "TimeLimit", "UNLIMITED", func(j *job.Job) bool { return j.Time.Limit == job.Unlimited }},
		{running(), "EndTime", "now+600", func(j *job.Job) bool { return j.Time.Limit == 20 }},
		{pending(), "Nice", "", func(j *job.Job) bool { return j.Nice == 100 }},
		{pending(), "Priority", "5", func(j *job.Job) bool { return *j.Priority == five }},
		{pending(), "Priority", "0", func(j *job.Job) bool { return j.Hold == "admin" }},
		{pending(), "NumNodes", "1-2", func(j *job.Job) bool { return j.Shape.MinNodes == 1 && j.Shape.MaxNodes == 2 }},
		{pending(), "Partition", ",batch,,debug,", func(j *job.Job) bool { return len(j.Partitions) == 2 }},
		{pending(), "Partition", "batch,debug", func(j *job.Job) bool { return len(j.Partitions) == 2 }},
		{pending(), "MinMemoryCPU", "1024", func(j *job.Job) bool { return *j.Shape.MemPerCPU == 1024 }},
		{pending(), "MinMemoryCPU", "0", func(j *job.Job) bool {
			return j.Shape.MemPerCPU == nil && *j.Shape.MemPerNode == 0 // as in Slurm, all of the node's
		}},
		{pending(), "MinCPUs", "2", func(j *job.Job) bool { return j.Shape.MinCPUs == 2 && j.Shape.Tasks < 2 }},
		{pending(), "ReqSockets", "1", func(j *job.Job) bool { return j.Shape.SocketsPerNode == 1 }},
		{pending(), "TresPerJob", "gres:gpu:tesla:2", func(j *job.Job) bool {
			return j.Shape.GRES[0] == job.GRES{Name: "gpu", Type: "tesla", Count: 2, Per: job.PerJob} &&
				j.Options["gpus"] == "tesla:2"
		}},
		{pending(), "licenses", "matlab:2",
			func(j *job.Job) bool { return j.Licenses[0] == job.License{Name: "matlab", Count: 2} }},
		{pending(), "StartTime", "now+1hour", func(j *job.Job) bool { return j.Time.Begin == now.Unix()+3600 }},
		{pending(), "ExcNodeList", "n[1-2]", func(j *job.Job) bool { return len(j.Placement.Exclude) == 2 }},
		{pending(), "Prefer", "fast", func(j *job.Job) bool { return j.Placement.Prefer == "fast" }},
		{pending(), "DelayBoot", "90:00", func(j *job.Job) bool { return j.Options["delay-boot"] == "90:00" }},
		{pending(), "NodeList", "n2,n1", func(j *job.Job) bool { return j.Options["nodelist"] == "n2,n1" }},
		{pending(), "NodeList", ",", func(j *job.Job) bool { return len(j.Options) == 0 }},
		{pending(), "ExcNodeList", "n1,n1", func(j *job.Job) bool { return len(j.Placement.Exclude) == 1 }},
		{pending(), "Deadline", "now+1hour", func(j *job.Job) bool { return j.Time.Deadline == now.Unix()+3600 }},
	} {
		n, err := change.Job(tt.job, map[string]string{tt.key: tt.value}, environment(true))
		if err != nil || !tt.ok(&n.Spec.Job) {
			t.Errorf("%s=%s: %v %+v", tt.key, tt.value, err, n)
		}
	}
}

func TestReservation(t *testing.T) {
	is := func(want string) func(string) bool { return func(s string) bool { return s == want } }
	w := &change.ReservationEnvironment{Now: now, User: is("anna"), Account: is("science"), Licenses: matlab(5)}
	good := map[string]string{"starttime": "now+1day", "duration": "5", "nodes": "n1", "users": "anna"}
	for _, tt := range []struct{ key, value, want string }{
		{"flags", "maint,ignore_jobs", ""},
		{"starttime", "2020-01-01", "Invalid time specified"},
		{"starttime", "", "Invalid time specified"},
		{"duration", "1-0", ""},
		{"users", "nobody", "Invalid user id"},
		{"users", "", "Either Users/Groups and/or Accounts must be specified.  No reservation created."},
		{"users", "-anna", ""},
		{"nodes", "",
			"CoreCnt, Nodes, NodeCnt, BurstBuffer, Licenses or Watts must be specified.  No reservation created."},
		{"accounts", "nope", "Invalid account or account/partition combination specified"},
		{"flags", "foo", "Error parsing flags foo.  No reservation created."},
		{"flags", "magnetic", ""},
		{"flags", "mag,fl,week", ""},
		{"flags", "MA", "Error parsing flags MA.  No reservation created."},
		{"flags", ",DAILY,", "Error parsing flags ,DAILY,.  No reservation created."},
		{"flags", "DAILY+WEEKLY", "Error parsing flags DAILY+WEEKLY.  No reservation created."},
		{"flags", "MAGNETIC=3", "Error parsing flags MAGNETIC=3.  No reservation created."},
		{"flags", "SPEC_NODES", "Error parsing flags SPEC_NODES.  No reservation created."},
		{"flags", "time_float", "Requested operation not supported on this system"},
		{"nodecnt", "x", "Invalid node count x"},
		{"nodecnt", "-1", "Invalid node count -1"},
		{"nodecnt", "1k", ""},
		{"nodecnt", "1,2", ""},
		{"tres", "node=2", ""},
		{"tres", "cpu=4", ""},
		{"tres", "cpu=3x", "invalid TRES cpu value '3x'"},
		{"tres", "foo=3", "couldn't identify configured TRES 'foo'"},
		{"tres", "license/matlab=2", "couldn't identify configured TRES 'license/matlab'"},
		{"tres", "gres/gpu=1", "TRES type 'gres/gpu' not supported with reservations"},
		{"corecnt", "3", ""},
		{"corecnt", "2,2", ""},
		{"corecnt", "x", "Invalid core count x"},
		{"corecnt", "2x", "Invalid core count 2x"},
		{"flags", "first_cores", ""},
		{"starttime", "foo", "Invalid start time starttime=foo.  No reservation created."},
		{"endtime", "foo", "Invalid end time endtime=foo.  No reservation created."},
		{"maxstartdelay", "foo", "Invalid duration maxstartdelay=foo.  No reservation created."},
		{"maxstartdelay", "5", "Requested operation not supported on this system"},
		{"duration", "-5", "Invalid duration duration=-5.  No reservation created."},
		{"groups", "staff", string(refusal.ReservationUsersGroups)},
		{"comment", "hello", "Unknown parameter comment=hello.  No reservation created."},
		{"licenses", "foo:2", "Invalid license specification"},
		{"licenses", "matlab:2", ""},
		{"endtime", "now", "Start time cannot be after end time.  No reservation created."},
		{"watts", "3", "A power reservation must be empty and set the LICENSE_ONLY flag.  No reservation created."},
		{"bogus", "3", "Unknown parameter bogus=3.  No reservation created."},
	} {
		set := map[string]string{}
		for k, v := range good {
			set[k] = v
		}
		set[tt.key] = tt.value
		var s v1alpha1.ReservationSpec
		if _, err := change.Reservation(&s, set, w, true); message(err) != tt.want {
			t.Errorf("%s=%s: %v, want %q", tt.key, tt.value, err, tt.want)
		}
	}
	var s v1alpha1.ReservationSpec
	for _, without := range []struct{ key, want string }{{"starttime", "A start time must be given.  No reservation created."}, {"duration", "An end time or duration must be given.  No reservation created."}} {
		set := map[string]string{}
		for k, v := range good {
			if k != without.key {
				set[k] = v
			}
		}
		if _, err := change.Reservation(&s, set, w, true); message(err) != without.want {
			t.Errorf("without %s: %v", without.key, err)
		}
	}
	s = v1alpha1.ReservationSpec{Users: []string{"anna", "ben"}, Duration: 10}
	if _, err := change.Reservation(&s, map[string]string{"users-": "anna", "duration+": "5"}, w, false); err != nil || len(s.Users) != 1 || s.Duration != 15 {
		t.Errorf("%v %+v", err, s)
	}
}

// TestReservationUpdates: updates of one reservation after the other, with the results
// of Slurm 22.05.8.
func TestReservationUpdates(t *testing.T) {
	yes := func(string) bool { return true }
	w := &change.ReservationEnvironment{Now: now, User: yes, Account: yes, Licenses: matlab(5)}
	s := v1alpha1.ReservationSpec{Duration: 10, NodeCount: 1, Nodes: "n1", Users: []string{"anna"}, Partition: "debug"}
	for _, tt := range []struct {
		key, value, refused string
		moved               bool
		flags               string
		duration, nodes     int32
	}{
		{"nodecnt", "+1", "", true, "", 10, 1},
		{"nodecnt+", "1", "The +=/-= notation is not supported when updating nodecnt.  No reservation update.", false,
			"", 10, 1},
		{"nodes+", "n2", "The +=/-= notation is not supported when updating nodes.  No reservation update.", false, "",
			10, 1},
		{"nodecnt", "2", "", true, "", 10, 2},
		{"flags+", "DAILY", "", false, "DAILY", 10, 2},
		{"flags-", "DAILY", "", false, "", 10, 2},
		{"flags", "FLEX", "", false, "FLEX", 10, 2},
		{"flags", "+MAINT", "", false, "MAINT FLEX", 10, 2},
		{"flags-", "MAINT,FLEX", "", false, "", 10, 2},
		{"flags", "", "", false, "", 10, 2},
		{"flags", "REPLACE", "Requested operation not supported on this system", false, "", 10, 2},
		{"flags", "PURGE_COMP=10", "", false, "PURGE_COMP", 10, 2},
		{"flags", "MAGNETIC", "", false, "PURGE_COMP MAGNETIC", 10, 2},
		{"duration+", "5", "", true, "PURGE_COMP MAGNETIC", 15, 2},
		{"duration-", "3", "", true, "PURGE_COMP MAGNETIC", 12, 2},
		{"duration", "+5", "Invalid duration duration=+5.  No reservation update.", false, "PURGE_COMP MAGNETIC", 12,
			2},
		{"duration-", "100", "Invalid time specified", false, "PURGE_COMP MAGNETIC", 12, 2},
		{"licenses+", "matlab:1", "The +=/-= notation is not supported when updating licenses.  No reservation update.",
			false, "PURGE_COMP MAGNETIC", 12, 2},
		{"features", "fast", "Requested operation not supported on this system", false, "PURGE_COMP MAGNETIC", 12, 2},
		{"corecnt", "2", "Core-based reservation can not be updated", false, "PURGE_COMP MAGNETIC", 12, 2},
		{"tres", "cpu=4", "Core-based reservation can not be updated", false, "PURGE_COMP MAGNETIC", 12, 2},
		{"tres", "node=3", "", true, "PURGE_COMP MAGNETIC", 12, 3},
		{"groups", "staff", "Reservations can't have users and groups specified, only one or the other", false,
			"PURGE_COMP MAGNETIC", 12, 3},
		{"users", "", "Reservation request lacks users, groups or accounts", false, "PURGE_COMP MAGNETIC", 12, 3},
		{"name", "x", "Unknown parameter name=x.  No reservation update.", false, "PURGE_COMP MAGNETIC", 12, 3},
	} {
		before := s.DeepCopy()
		moved, err := change.Reservation(&s, map[string]string{tt.key: tt.value}, w, false)
		if err != nil {
			s = *before
		}
		if message(err) != tt.refused || err == nil && moved != tt.moved || strings.Join(s.Flags, " ") != tt.flags || s.Duration != tt.duration || s.NodeCount != tt.nodes {
			t.Errorf("%s=%s: %v, moved %v, %+v", tt.key, tt.value, err, moved, s)
		}
		s.Nodes = "n1"
	}
}

// TestHeldAndRelative: the priority of a held job, and time limits that change by an
// amount.
func TestHeldAndRelative(t *testing.T) {
	held := pending()
	held.Spec.Job.Hold = "user"
	if _, err := change.Job(held, map[string]string{"Priority": "5"}, environment(true)); !errors.Is(err, refusal.JobHeld) {
		t.Errorf("the priority of a held job: %v", err)
	}
	owner := environment(false)
	owner.Priority = 0
	if _, err := change.Job(held, map[string]string{"Priority": "5"}, owner); !errors.Is(err, refusal.JobHeld) {
		t.Errorf("the priority of a held job, by its user: %v", err)
	}
	if b, err := change.Job(held, map[string]string{"Priority": "0"}, environment(true)); err != nil || b.Spec.Job.Hold != "admin" {
		t.Errorf("held by an operator: %v", err)
	}
	w := environment(true)
	w.TimeLimit = 20
	for v, want := range map[string]int32{"+5": 25, "-3": 17, "-1": 19} {
		if b, err := change.Job(pending(), map[string]string{"TimeLimit": v}, w); err != nil || b.Spec.Job.Time.Limit != want {
			t.Errorf("TimeLimit=%s: %v, want %d minutes", v, err, want)
		}
	}
}

// matlab returns the numbers of licenses of a cluster that has only matlab.
func matlab(count int32) func(string) int32 {
	return func(name string) int32 {
		if name == "matlab" {
			return count
		}
		return 0
	}
}
