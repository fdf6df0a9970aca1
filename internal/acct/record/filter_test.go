package record

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth/translate/status"
)

// jobRecord returns a record of a job that ran from 110 to 200, submitted at 100; change may
// be nil.
func jobRecord(change func(*status.Record)) *status.Record {
	r := &status.Record{
		ID: 12, UID: "u", Name: "ring", User: "anna", UserID: 1001, Group: "staff", GroupID: 50, Account: "lab",
		QOS: "normal", Partition: "main", WCKey: "w", State: "COMPLETED", Submit: 100, Eligible: 100, Start: 110, End: 200,
		Nodes: 2, CPUs: 8, NodeList: "n[1-2]", TimeLimit: 60, Constraints: "fast&big",
	}
	if change != nil {
		change(r)
	}
	return r
}

// TestFiltersOfSacct: each option of sacct selects by its own field, and all must match.
func TestFiltersOfSacct(t *testing.T) {
	for name, tt := range map[string]struct {
		q    status.RecordQuery
		want bool
	}{
		"nothing":            {status.RecordQuery{}, true},
		"user":               {status.RecordQuery{Users: []string{"ben", "anna"}}, true},
		"another user":       {status.RecordQuery{Users: []string{"ben"}}, false},
		"uid":                {status.RecordQuery{UserIDs: []int64{1001}}, true},
		"user or uid":        {status.RecordQuery{Users: []string{"ben"}, UserIDs: []int64{1001}}, true},
		"another uid":        {status.RecordQuery{UserIDs: []int64{0}}, false},
		"group":              {status.RecordQuery{Groups: []string{"staff"}}, true},
		"gid":                {status.RecordQuery{GroupIDs: []int64{51}}, false},
		"account":            {status.RecordQuery{Accounts: []string{"lab"}}, true},
		"another account":    {status.RecordQuery{Accounts: []string{"la"}}, false},
		"QOS":                {status.RecordQuery{QOS: []string{"high"}}, false},
		"name":               {status.RecordQuery{Names: []string{"ring"}}, true},
		"name in capitals":   {status.RecordQuery{Names: []string{"RING"}}, true},
		"part of the name":   {status.RecordQuery{Names: []string{"rin"}}, false},
		"wckey":              {status.RecordQuery{WCKeys: []string{"w"}}, true},
		"partition":          {status.RecordQuery{Partitions: []string{"x", "main"}}, true},
		"partition Main":     {status.RecordQuery{Partitions: []string{"Main"}}, true},
		"another partition":  {status.RecordQuery{Partitions: []string{"mai"}}, false},
		"constraint":         {status.RecordQuery{Constraints: []string{"big"}}, true},
		"another constraint": {status.RecordQuery{Constraints: []string{"slow"}}, false},
		"node":               {status.RecordQuery{Nodes: []string{"n2"}}, true},
		"another node":       {status.RecordQuery{Nodes: []string{"n3"}}, false},
		"nodes exactly":      {status.RecordQuery{NNodes: [2]int64{2, 0}}, true},
		"more nodes":         {status.RecordQuery{NNodes: [2]int64{3, 0}}, false},
		"CPUs from to":       {status.RecordQuery{NCPUs: [2]int64{8, 9}}, true},
		"fewer CPUs":         {status.RecordQuery{NCPUs: [2]int64{1, 7}}, false},
		"time limit":         {status.RecordQuery{TimeLimit: [2]int64{60, 60}}, true},
		"one of two fails":   {status.RecordQuery{Users: []string{"anna"}, QOS: []string{"high"}}, false},
	} {
		if got := NewFilter(&tt.q).Match(jobRecord(nil)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !NewFilter(&status.RecordQuery{Partitions: []string{"b"}}).Match(jobRecord(func(r *status.Record) { r.Partition = "a,b" })) {
		t.Error("a pending job of two partitions is in neither")
	}
	if NewFilter(&status.RecordQuery{Nodes: []string{"n1"}}).Match(jobRecord(func(r *status.Record) { r.NodeList = "n[1" })) {
		t.Error("a malformed list of nodes has a node")
	}
}

// TestJobsOfSacct: -j names a job, with all its tasks and components, or one of them. A text
// that names no job selects none, and never all.
func TestJobsOfSacct(t *testing.T) {
	task := func(id string) *status.Record {
		return jobRecord(func(r *status.Record) { r.ID, r.ArrayJobID, r.ArrayTaskID = 20, 12, id })
	}
	component := jobRecord(func(r *status.Record) { r.ID, r.HetJobID, r.HetOffset = 13, 12, 1 })
	for _, tt := range []struct {
		text string
		r    *status.Record
		want bool
	}{
		{"12", jobRecord(nil), true},
		{"12.batch", jobRecord(nil), true},
		{"13", jobRecord(nil), false},
		{"1", jobRecord(nil), false},
		{"12", task("3"), true},
		{"20", task("3"), true},
		{"12_3", task("3"), true},
		{"12_3.0", task("3"), true},
		{"12_4", task("3"), false},
		{"12_[1-3,9]", task("3"), true},
		{"12_[4-9]", task("3"), false},
		{"12_*", task("3"), true},
		{"12_3", task("0-9%2"), false}, // pending tasks, as in Slurm
		{"12_3", jobRecord(nil), false},
		{"12", component, true},
		{"13", component, true},
		{"12+1", component, true},
		{"12+2", component, false},
		{"12+1", jobRecord(nil), false},
		{"12+-1", jobRecord(nil), false},
		{"12+x", jobRecord(nil), false},
		{"12_", task("3"), false},
		{"12_-3", task("3"), false},
		{"12_x", task("3"), false},
		{"-12", jobRecord(nil), false},
		{"0", jobRecord(func(r *status.Record) { r.ID = 0 }), false},
		{"x", jobRecord(nil), false},
		{"", jobRecord(nil), false},
		{"99999999999999999999", jobRecord(nil), false},
	} {
		if got := NewFilter(&status.RecordQuery{Jobs: []string{tt.text}}).Match(tt.r); got != tt.want {
			t.Errorf("-j %q: job %d, task %q: %v", tt.text, tt.r.ID, tt.r.ArrayTaskID, got)
		}
	}
	if !NewFilter(&status.RecordQuery{Jobs: []string{"x", "12"}}).Match(jobRecord(nil)) {
		t.Error("a text that names no job hides the others")
	}
	if got := JobIDs([]string{"12", "x", "7_3", "12+1", "12.0"}); !slices.Equal(got, []int64{7, 12}) {
		t.Errorf("job ids %v", got)
	}
}

// TestWindowOfSacct: without states, a job counts from when it was eligible until its end.
func TestWindowOfSacct(t *testing.T) {
	for name, tt := range map[string]struct {
		start, end int64
		change     func(*status.Record)
		want       bool
	}{
		"open":                    {0, 0, nil, true},
		"around it":               {50, 300, nil, true},
		"within it":               {150, 160, nil, true},
		"before it":               {1, 99, nil, false},
		"until it is eligible":    {1, 100, nil, true},
		"after it":                {201, 300, nil, false},
		"from its end":            {200, 300, nil, true},
		"while it runs":           {201, 300, func(r *status.Record) { r.End = 0 }, true},
		"never eligible":          {50, 300, func(r *status.Record) { r.Eligible = 0 }, false},
		"never eligible, no time": {0, 0, func(r *status.Record) { r.Eligible = 0 }, true},
		"only an end":             {0, 99, nil, false},
	} {
		q := status.RecordQuery{Start: tt.start, End: tt.end}
		if got := NewFilter(&q).Match(jobRecord(tt.change)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestStatesOfSacct: with states, a job counts if it was in one of them in the window.
func TestStatesOfSacct(t *testing.T) {
	pending := func(r *status.Record) { r.Start, r.End, r.State = 0, 0, "PENDING" }
	cancelled := func(r *status.Record) { r.Start, r.End, r.State = 0, 150, "CANCELLED" }
	suspended := func(r *status.Record) { r.History = []status.StateChange{{State: "SUSPENDED", At: 130e6}} }
	for name, tt := range map[string]struct {
		state      string
		start, end int64
		change     func(*status.Record)
		want       bool
	}{
		"it ended then":                {"COMPLETED", 190, 210, nil, true},
		"it ended before":              {"COMPLETED", 201, 210, nil, false},
		"it ended later":               {"COMPLETED", 120, 199, nil, false},
		"it ended otherwise":           {"FAILED", 190, 210, nil, false},
		"it ran":                       {"RUNNING", 150, 160, nil, true},
		"it did not run yet":           {"RUNNING", 100, 109, nil, false},
		"it ran no more":               {"RUNNING", 201, 300, nil, false},
		"it still runs":                {"RUNNING", 500, 600, func(r *status.Record) { r.End = 0 }, true},
		"it was starting":              {"CONFIGURING", 150, 160, nil, true},
		"it waited":                    {"PENDING", 100, 105, nil, true},
		"it waited no more":            {"PENDING", 120, 130, nil, false},
		"it still waits":               {"PENDING", 500, 600, pending, true},
		"it waited until it was ended": {"PENDING", 140, 160, cancelled, true},
		"it was ended before":          {"PENDING", 151, 160, cancelled, false},
		"it was suspended":             {"SUSPENDED", 125, 135, suspended, true},
		"it was suspended before":      {"SUSPENDED", 140, 150, suspended, false},
		"it is suspended":              {"SUSPENDED", 150, 160, func(r *status.Record) { r.State = "SUSPENDED" }, true},
	} {
		q := status.RecordQuery{Start: tt.start, End: tt.end, States: []string{"NODE_FAIL", tt.state}}
		if got := NewFilter(&q).Match(jobRecord(tt.change)); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMayMatchUser(t *testing.T) {
	for _, tt := range []struct {
		q    status.RecordQuery
		want bool
	}{
		{status.RecordQuery{}, true},
		{status.RecordQuery{Users: []string{"anna"}}, true},
		{status.RecordQuery{Users: []string{"ben"}}, false},
		{status.RecordQuery{Users: []string{"ben"}, UserIDs: []int64{7}}, true}, // the uid may be anna's
	} {
		if got := NewFilter(&tt.q).MayMatchUser("anna"); got != tt.want {
			t.Errorf("%+v: %v", tt.q, got)
		}
	}
}

func TestMayMatchID(t *testing.T) {
	for _, tt := range []struct {
		jobs []string
		want bool
	}{
		{nil, true},
		{[]string{"7"}, true},
		{[]string{"1", "5_3"}, true},
		{[]string{"6+1"}, true},
		{[]string{"8", "3_7"}, false},
	} {
		if got := NewFilter(&status.RecordQuery{Jobs: tt.jobs}).MayMatchID(7, 5, 6); got != tt.want {
			t.Errorf("%v: %v", tt.jobs, got)
		}
	}
}

// TestNewestRuns: of the runs of a job, and of jobs that had the same id, the last remains.
func TestNewestRuns(t *testing.T) {
	list := []status.Record{
		{ID: 1, UID: "a", Restarts: 1, Submit: 10}, {ID: 1, UID: "a", Restarts: 2, Submit: 9}, {ID: 1, UID: "a", Submit: 11},
		{ID: 2, UID: "old", Restarts: 5, Submit: 10}, {ID: 2, UID: "new", Submit: 20}, {ID: 2, UID: "older", Submit: 5},
		{ID: 3, UID: "c"},
	}
	got := Newest(list)
	if len(got) != 3 || got[0].Restarts != 2 || got[1].UID != "new" || got[2].ID != 3 {
		t.Errorf("%+v", got)
	}
	if got := Newest(nil); len(got) != 0 {
		t.Errorf("of no records: %v", got)
	}
}
