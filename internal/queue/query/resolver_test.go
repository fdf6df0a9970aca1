package query

import (
	"net/url"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/job"
)

// newResolver returns a resolver of a cluster with the users anna (1001) and bob (1002).
func newResolver() (*control.Cluster, Resolver) {
	c := fake.Cluster(interceptor.Funcs{})
	d := directory.New(c, nil)
	r := Resolver{Table: table.New(c, d, nil), Directory: d}
	fake.Feed(c, fake.User("anna", 1001), fake.User("bob", 1002))
	return c, r
}

// ids returns the ids of the rows.
func ids(rows []*table.Row) []int64 {
	var out []int64
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}

// TestJobIDOfAReference: a single task has its own id, everything else that of the job.
func TestJobIDOfAReference(t *testing.T) {
	c, r := newResolver()
	task := fake.Job(11, "anna", func(b *v1alpha1.BatchJob) {
		b.Spec.Origin, b.Spec.Task = &v1alpha1.Origin{JobID: 10}, &v1alpha1.ArrayTask{Index: 2}
		b.Status.State = v1alpha1.StateCompleted
	})
	fake.Feed(c, fake.Job(10, "anna", func(b *v1alpha1.BatchJob) { b.Spec.Job.Array = &job.Array{Spec: "1-3"} }), task,
		fake.Job(20, "bob", nil))
	for text, want := range map[string]struct {
		id   int64
		rows []int64
	}{
		"10":       {10, []int64{10, 11}},
		"10_*":     {10, []int64{10, 11}},
		"10_2":     {11, []int64{11}},
		"10_1":     {10, []int64{10}}, // it is still part of the array
		"10_[1-2]": {10, []int64{10, 11}},
		"10_7":     {noID, nil},
		"20":       {20, []int64{20}},
		"20_1":     {noID, nil},
		"99":       {99, nil},
		"19+1":     {20, nil}, // 20 is no component of 19
	} {
		ref, ok := ParseRef(text)
		if !ok {
			t.Fatalf("%s is no reference", text)
		}
		if got := r.JobID(t.Context(), ref); got != want.id {
			t.Errorf("%s: job %d, want %d", text, got, want.id)
		}
		if got := ids(r.Rows(t.Context(), ref)); !slices.Equal(got, want.rows) {
			t.Errorf("%s: rows %v, want %v", text, got, want.rows)
		}
	}
}

// TestUsersOfAQuery: users are named by name or uid. A query for users none of which exists
// matches no job, and not every job.
func TestUsersOfAQuery(t *testing.T) {
	c, r := newResolver()
	fake.Feed(c, fake.Job(1, "anna", nil), fake.Job(2, "bob", nil))
	for name, tt := range map[string]struct {
		users, unknown []string
		want           []int64
	}{
		"no filter":         {nil, nil, []int64{1, 2}},
		"by name":           {[]string{"anna"}, nil, []int64{1}},
		"by uid":            {[]string{"1002"}, nil, []int64{2}},
		"both":              {[]string{"1001", "bob", "anna"}, nil, []int64{1, 2}},
		"one is unknown":    {[]string{"eve", "bob"}, []string{"eve"}, []int64{2}},
		"all are unknown":   {[]string{"eve", "7", "-1", ""}, []string{"eve", "7", "-1", ""}, nil},
		"a pattern is none": {[]string{"*", "ann"}, []string{"*", "ann"}, nil},
	} {
		q := table.Query{Users: tt.users}
		unknown := r.ResolveUsers(&q)
		if !slices.Equal(unknown, tt.unknown) || !slices.Equal(ids(r.Table.Select(t.Context(), q)), tt.want) {
			t.Errorf("%s: unknown %q, jobs %v; want %q, %v", name, unknown, ids(r.Table.Select(t.Context(), q)), tt.unknown, tt.want)
		}
	}
}

// TestRestrictHidesOtherUsersJobs: with PrivateData=jobs, a user sees its own jobs only,
// whatever users the query names, and a caller without a User sees none.
func TestRestrictHidesOtherUsersJobs(t *testing.T) {
	c, r := newResolver()
	operator := fake.User("op", 1003)
	operator.Spec.AdminLevel = directory.LevelOperator
	fake.Feed(c, operator, fake.Job(1, "anna", nil), fake.Job(2, "bob", nil))
	visible := func(identity string, groups []string, users ...string) []int64 {
		q := table.Query{Users: users}
		r.ResolveUsers(&q)
		r.Restrict(&q, r.Directory.Resolve(identity, groups))
		return ids(r.Table.Select(t.Context(), q))
	}
	if got := visible("bob", nil); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("without PrivateData: %v", got)
	}
	fake.Feed(c, fake.Settings(v1alpha1.ClusterSpec{PrivateData: []string{"jobs"}}))
	for name, tt := range map[string]struct {
		identity string
		groups   []string
		users    []string
		want     []int64
	}{
		"own":                     {"anna", nil, nil, []int64{1}},
		"own by name":             {"anna", nil, []string{"anna"}, []int64{1}},
		"own by uid, and another": {"anna", nil, []string{"1001", "bob"}, []int64{1}},
		"another's":               {"anna", nil, []string{"bob"}, nil},
		"an unknown user's":       {"anna", nil, []string{"eve"}, nil},
		"no User":                 {"nobody", nil, nil, nil},
		"the name of no user":     {noUser, nil, nil, nil},
		"an operator":             {"op", nil, nil, []int64{1, 2}},
		"masters":                 {"cert", []string{directory.Masters}, []string{"bob"}, []int64{2}},
	} {
		if got := visible(tt.identity, tt.groups, tt.users...); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestFiltersOfAURL: every parameter of GET jobs is applied.
func TestFiltersOfAURL(t *testing.T) {
	c, r := newResolver()
	fake.Feed(c,
		fake.Partition("main", nil), fake.Partition("secret", func(s *v1alpha1.PartitionSpec) { s.Hidden = true }),
		fake.Job(1, "anna", func(b *v1alpha1.BatchJob) {
			b.Spec.Job.Name, b.Spec.Job.Account, b.Spec.Job.QOS = "ring", "lab", "high"
			b.Spec.Job.Licenses = []job.License{{Name: "matlab", Count: 1}}
		}),
		fake.Job(2, "bob", func(b *v1alpha1.BatchJob) {
			b.Spec.Partition, b.Spec.Job.Reservation, b.Spec.Job.WCKey = "secret", "res", "w"
		}),
		fake.Job(3, "bob", func(b *v1alpha1.BatchJob) {
			onNode(b, "n7")
			b.Spec.Partition = "main"
		}),
	)
	for text, want := range map[string][]int64{
		"":                             {1, 2, 3},
		"id=1,3":                       {1, 3},
		"id=1&id=2":                    {1, 2},
		"user=bob":                     {2, 3},
		"user=1001&state=pending":      {1},
		"name=ring&account=lab":        {1},
		"name=ring&account=lob":        nil,
		"qos=high":                     {1},
		"partition=secret":             {2},
		"hide=true":                    {1, 3},
		"hide=1":                       {1, 2, 3},
		"reservation=res&wckey=w":      {2},
		"licenses=matlab":              {1},
		"state=running":                {3},
		"state=ALL&nodes=n[5-8]":       {3},
		"state=CD":                     nil, // the commands expand abbreviations
		"unknown=1":                    {1, 2, 3},
		"id=1_2":                       nil,
		"name=,&user=%20bob%20&id=%2C": {2, 3},
	} {
		v, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Parse(v)
		if err != nil {
			t.Fatal(err)
		}
		r.ResolveUsers(&q)
		r.AddExtra(&q, v)
		if got := ids(r.Table.Select(t.Context(), q)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	if _, err := Parse(url.Values{"nodes": {"n[3-1]"}}); err == nil {
		t.Error("a malformed list of nodes is accepted")
	}
}

// onNode puts the job on a node.
func onNode(b *v1alpha1.BatchJob, name string) {
	fake.InState(v1alpha1.StateRunning)(b)
	b.Status.Allocation = &v1alpha1.Allocation{Nodes: []v1alpha1.NodeAllocation{{Name: name, CPUs: 1}}}
}

func TestIsWatch(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "1": true, "": false, "false": false, "0": false, "yes": false} {
		if got := IsWatch(url.Values{"watch": {text}}); got != want {
			t.Errorf("watch=%s: %v", text, got)
		}
	}
	if IsWatch(nil) {
		t.Error("a query without watch is one")
	}
}

// TestComponentsOfAQuery: a component that is named by its job and by its own id is not
// limited to that job.
func TestComponentsOfAQuery(t *testing.T) {
	for _, tt := range []struct {
		refs    []string
		leaders int
	}{
		{[]string{"12+1"}, 1},
		{[]string{"12+1", "12+2"}, 2},
		{[]string{"12+1", "13"}, 0},
		{[]string{"13", "12+1"}, 0},
	} {
		q, err := Parse(url.Values{"id": tt.refs})
		if err != nil || len(q.Leaders) != tt.leaders {
			t.Errorf("%q: %v, %v", tt.refs, q.Leaders, err)
		}
	}
}
