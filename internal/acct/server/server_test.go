package server

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/api"
	"github.com/berth-hpc/berth/internal/queue/directory"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/queue/operations"
	"github.com/berth-hpc/berth/internal/queue/table"
	"github.com/berth-hpc/berth/translate/status"
)

// fixture is a server with a cluster in memory, a table of jobs and a queue API.
type fixture struct {
	*Server
	dir   *directory.Directory
	table *table.Table
	api   *api.API
}

func (h *fixture) Table() *table.Table { return h.table }
func (h *fixture) API() *api.API       { return h.api }
func (h *fixture) Handle(api.Route)    {}

// noPool is a pool without nodes and partitions.
type noPool struct{}

func (noPool) NodesView() []status.Node           { return nil }
func (noPool) Shows(time.Time) bool               { return true }
func (noPool) TopologyView() *status.Topology     { return &status.Topology{} }
func (noPool) PartitionsView() []status.Partition { return nil }

func newFixture(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) *fixture {
	t.Helper()
	c := fake.Cluster(hooks)
	dir := directory.New(c, nil)
	h := &fixture{dir: dir, table: table.New(c, dir, nil)}
	h.api = api.New(
		api.Options{
			Directory:  dir,
			Table:      h.table,
			Pool:       noPool{},
			Now:        time.Now,
			Operations: &operations.Service{Cluster: c},
		},
	)
	rec := acct.NewRecorder(acct.Config{
		Address: filepath.Join(t.TempDir(), "a.db"), Cluster: c, Now: time.Now,
		Row: func(b *v1alpha1.BatchJob) status.Job { return table.RowOf(b, dir) },
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	h.Server = &Server{Cluster: c, Recorder: rec, Now: time.Now}
	h.Register(h)
	for _, o := range objects {
		h.add(t, o) // before the recorder reads what this changes
	}
	go func() { rec.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done })
	return h
}

// add puts an object into the API server and the stores.
func (h *fixture) add(t *testing.T, o client.Object) {
	t.Helper()
	if err := h.Cluster.Client.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	version := o.GetResourceVersion()
	fake.Feed(h.Cluster, o)
	o.SetResourceVersion(version)
}

func (h *fixture) as(name string, groups ...string) *directory.Caller {
	return h.dir.Resolve(name, groups)
}

func (h *fixture) list(t *testing.T, c *directory.Caller, q status.RecordQuery) (int, []int64) {
	t.Helper()
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.records(
		w,
		httptest.NewRequestWithContext(t.Context(), "GET", "/?"+url.Values{"q": {string(text)}}.Encode(), nil),
		c,
	)
	var out status.RecordList
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
	}
	ids := []int64{}
	for _, r := range out.Items {
		ids = append(ids, r.ID)
	}
	return w.Code, ids
}

func job(id int64, user, account string) *v1alpha1.BatchJob {
	b := &v1alpha1.BatchJob{ObjectMeta: metav1.ObjectMeta{Name: "j" + user, Namespace: "user-" + user}}
	b.Spec = v1alpha1.BatchJobSpec{JobID: id, User: user, Partition: "main"}
	b.Spec.Job.Account = account
	now := metav1.NowMicro()
	b.Spec.SubmitTime = &now
	return b
}

func usersAndAccounts() []client.Object {
	opal := fake.User("opal", 1003)
	opal.Spec.AdminLevel = directory.LevelOperator
	anna, ben, carl := fake.User("anna", 1001), fake.User("ben", 1002), fake.User("carl", 1004)
	anna.Spec.Accounts, ben.Spec.Accounts = []string{"science"}, []string{"arts"}
	science, arts := &v1alpha1.Account{}, &v1alpha1.Account{}
	science.Name, arts.Name = "science", "arts"
	science.Spec.Coordinators = []string{"carl"}
	return []client.Object{anna, ben, carl, opal, science, arts}
}

// With PrivateData no filter returns the records of other users.
func TestRecordsOfOtherUsersAreHidden(t *testing.T) {
	h := newFixture(t, interceptor.Funcs{}, append(usersAndAccounts(), job(1, "anna", "science"), job(2, "ben", "arts"))...)
	for name, c := range map[string]struct {
		private bool
		caller  string
		q       status.RecordQuery
		want    []int64
	}{
		"open":                     {false, "anna", status.RecordQuery{}, []int64{1, 2}},
		"own":                      {true, "anna", status.RecordQuery{}, []int64{1}},
		"by user":                  {true, "anna", status.RecordQuery{Users: []string{"ben"}}, []int64{}},
		"by number":                {true, "anna", status.RecordQuery{UserIDs: []int64{1002}}, []int64{}},
		"by name and number":       {true, "anna", status.RecordQuery{Users: []string{"anna"}, UserIDs: []int64{1002}}, []int64{1}},
		"by id":                    {true, "anna", status.RecordQuery{Jobs: []string{"2"}}, []int64{}},
		"by account":               {true, "anna", status.RecordQuery{Accounts: []string{"arts"}}, []int64{}},
		"a stranger":               {true, "mallory", status.RecordQuery{}, []int64{}},
		"a stranger, me":           {true, "mallory", status.RecordQuery{Me: true}, []int64{}},
		"a stranger, no user":      {true, "mallory", status.RecordQuery{UserIDs: []int64{0}}, []int64{}},
		"a coordinator":            {true, "carl", status.RecordQuery{}, []int64{1}},
		"a coordinator, by id":     {true, "carl", status.RecordQuery{Jobs: []string{"1", "2"}}, []int64{1}},
		"an operator":              {true, "opal", status.RecordQuery{}, []int64{1, 2}},
		"me":                       {false, "ben", status.RecordQuery{Me: true}, []int64{2}},
		"an injection":             {true, "anna", status.RecordQuery{Users: []string{"x' OR '1'='1"}}, []int64{}},
		"an injection by an admin": {true, "opal", status.RecordQuery{Names: []string{"') OR 1=1; DROP TABLE jobs; --"}}, []int64{}},
	} {
		spec := v1alpha1.ClusterSpec{}
		if c.private {
			spec.PrivateData = []string{"jobs"}
		}
		fake.Feed(h.Cluster, fake.Settings(spec))
		if code, got := h.list(t, h.as(c.caller), c.q); code != http.StatusOK || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %d %v, want %v", name, code, got, c.want)
		}
	}
}

func (h *fixture) change(t *testing.T, c *directory.Caller, items ...status.AcctChange) int {
	t.Helper()
	body, err := json.Marshal(status.AcctChanges{Items: items})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.manage(w, httptest.NewRequestWithContext(t.Context(), "POST", "/", bytes.NewReader(body)), c)
	return w.Code
}

func (h *fixture) now(t *testing.T, name string) status.AcctUser {
	t.Helper()
	u := &v1alpha1.User{}
	if err := h.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: name}, u); err != nil {
		t.Fatal(err)
	}
	return user(u)
}

func account1(name, parent string) *status.AcctAccount {
	return &status.AcctAccount{Name: name, Parent: parent}
}

// Permissions for changes. No user can raise its own level.
func TestWhoMayChange(t *testing.T) {
	for name, c := range map[string]struct {
		caller string
		change func(h *fixture) status.AcctChange
		want   int
	}{
		"a user makes an account":          {"anna", func(*fixture) status.AcctChange { return status.AcctChange{Account: account1("mine", "")} }, 403},
		"an operator does":                 {"opal", func(*fixture) status.AcctChange { return status.AcctChange{Account: account1("new", "")} }, 200},
		"a coordinator below his":          {"carl", func(*fixture) status.AcctChange { return status.AcctChange{Account: account1("sub", "science")} }, 200},
		"a coordinator elsewhere":          {"carl", func(*fixture) status.AcctChange { return status.AcctChange{Account: account1("sub", "arts")} }, 403},
		"a coordinator makes a QOS":        {"carl", func(*fixture) status.AcctChange { return status.AcctChange{QOS: &status.AcctQOS{Name: "fast"}} }, 403},
		"a user raises himself":            {"anna", raise("anna"), 403},
		"an operator raises himself":       {"opal", raise("opal"), 403},
		"a coordinator raises himself":     {"carl", raise("carl"), 403},
		"a user joins an account":          {"anna", join("anna", "arts"), 403},
		"a coordinator adds a user":        {"carl", join("ben", "science"), 200},
		"a coordinator adds one elsewhere": {"carl", join("anna", "arts"), 403},
		"a coordinator changes the wckey": {"carl", func(h *fixture) status.AcctChange {
			x := join("ben", "science")(h)
			x.User.DefaultWCKey = "carls"
			return x
		}, 403},
		"an operator changes the wckey": {"opal", func(h *fixture) status.AcctChange {
			x := join("ben", "science")(h)
			x.User.DefaultWCKey = "carls"
			return x
		}, 200},
		"an operator adds a user":   {"opal", join("anna", "arts"), 200},
		"an old version":            {"opal", func(h *fixture) status.AcctChange { x := join("anna", "arts")(h); x.User.Version = "77777"; return x }, 409},
		"a user object that is new": {"opal", func(*fixture) status.AcctChange { return status.AcctChange{User: &status.AcctUser{Name: "new"}} }, 409},
		"an empty change":           {"anna", func(*fixture) status.AcctChange { return status.AcctChange{} }, 403},
		"a coordinator deletes a whole user": {"carl", func(h *fixture) status.AcctChange {
			u := h.now(t, "anna")
			return status.AcctChange{Delete: true, User: &u}
		}, 403},
		"a coordinator deletes his account": {"carl", func(h *fixture) status.AcctChange {
			return status.AcctChange{Delete: true, Account: account1("science", "")}
		}, 403},
		"the number of a user is not changed": {"opal", func(h *fixture) status.AcctChange { x := join("anna", "arts")(h); x.User.UID = 0; return x }, 200},
	} {
		h := newFixture(t, interceptor.Funcs{}, usersAndAccounts()...)
		if got := h.change(t, h.as(c.caller), c.change(h)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if u := h.now(t, "anna"); u.UID != 1001 {
			t.Errorf("%s: anna has the number %d", name, u.UID)
		}
	}
}

func raise(name string) func(*fixture) status.AcctChange {
	return func(h *fixture) status.AcctChange {
		u, _ := h.Cluster.Users.Get(name)
		x := user(u)
		x.AdminLevel = directory.LevelAdministrator
		return status.AcctChange{User: &x}
	}
}

func join(name, account string) func(*fixture) status.AcctChange {
	return func(h *fixture) status.AcctChange {
		u, _ := h.Cluster.Users.Get(name)
		x := user(u)
		x.Accounts = append(x.Accounts, account)
		return status.AcctChange{User: &x}
	}
}

// If one of several changes fails, none of them is made.
func TestChangesAreAllOrNothing(t *testing.T) {
	fail := false
	h := newFixture(
		t,
		interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				var all client.UpdateOptions
				all.ApplyOptions(opts)
				if fail && o.GetName() == "ben" && len(all.DryRun) == 0 {
					return apierrors.NewInternalError(context.DeadlineExceeded)
				}
				return c.Update(ctx, o, opts...)
			},
		},
		usersAndAccounts()...)
	before := []status.AcctUser{h.now(t, "anna"), h.now(t, "ben")}
	fail = true
	code := h.change(
		t,
		h.as("root", directory.Masters),
		status.AcctChange{Account: account1("new", "")},
		join("anna", "new")(h),
		join("ben", "new")(h),
		status.AcctChange{Account: account1("late", "")},
	)
	if code == http.StatusOK {
		t.Error("the changes succeed although one of them fails")
	}
	after := []status.AcctUser{h.now(t, "anna"), h.now(t, "ben")}
	for i := range before {
		before[i].Version, after[i].Version = "", ""
		if !reflect.DeepEqual(before[i], after[i]) {
			t.Errorf("a failed change has left %+v", after[i])
		}
	}
	for _, name := range []string{"new", "late"} {
		if err := h.Cluster.Client.Get(
			t.Context(),
			client.ObjectKey{Name: name},
			&v1alpha1.Account{},
		); !apierrors.IsNotFound(err) {
			t.Errorf("account %s exists: %v", name, err)
		}
	}
	if _, ok := h.Cluster.Accounts.Get("new"); ok {
		t.Error("the store has the account")
	}
}

// A change by sacctmgr leaves the fields of a User that it does not edit alone.
func TestOtherFieldsOfAUserStay(t *testing.T) {
	list := usersAndAccounts()
	anna, most := list[0].(*v1alpha1.User), int64(1<<20) //nolint:forcetypeassert // people begins with users
	anna.Spec.MaxBytes, anna.Spec.SSHKeys, anna.Spec.Disabled = &most, []string{"ssh-ed25519 AAAA"}, true
	h := newFixture(t, interceptor.Funcs{}, list...)
	want := anna.Spec.DeepCopy()
	want.Accounts = append(want.Accounts, "arts")
	if code := h.change(t, h.as("root", directory.Masters), join("anna", "arts")(h)); code != http.StatusOK {
		t.Fatalf("code %d", code)
	}
	got := &v1alpha1.User{}
	if err := h.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: "anna"}, got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Spec, *want) {
		t.Errorf("%+v\nwant %+v", got.Spec, *want)
	}
}

// The types of sacctmgr's API have every field of the objects, by the same name, or a change keeps
// the field as it is.
func TestAccountingTypesHaveFieldsOfObjects(t *testing.T) {
	kept := map[string]bool{
		"gid":        true,
		"groups":     true,
		"home":       true,
		"shell":      true,
		"namespace":  true,
		"identities": true,
		"sshKeys":    true,
		"maxBytes":   true,
		"disabled":   true,
	}
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[v1alpha1.Limits](), reflect.TypeFor[status.Limits]()},
		{reflect.TypeFor[v1alpha1.AccountSpec](), reflect.TypeFor[status.AcctAccount]()},
		{reflect.TypeFor[v1alpha1.UserSpec](), reflect.TypeFor[status.AcctUser]()},
		{reflect.TypeFor[v1alpha1.Association](), reflect.TypeFor[status.AcctAssociation]()},
		{reflect.TypeFor[v1alpha1.QOSSpec](), reflect.TypeFor[status.AcctQOS]()},
	} {
		has := map[string]bool{}
		for i := range pair[1].NumField() {
			has[tag(pair[1].Field(i))] = true
		}
		for i := range pair[0].NumField() {
			if name := tag(pair[0].Field(i)); !has[name] && !kept[name] {
				t.Errorf("%v has no %q of %v: sacctmgr would lose it", pair[1], name, pair[0])
			}
		}
	}
}

func tag(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// Names of accounts and QOS may have what names of objects may not.
func TestNamesThatAreNotValidForObjects(t *testing.T) {
	h := newFixture(t, interceptor.Funcs{}, usersAndAccounts()...)
	root := h.as("root", directory.Masters)
	state := func() (accounts, qos []string) {
		s := h.state(root)
		for _, a := range s.Accounts {
			accounts = append(accounts, a.Name+" "+a.Description)
		}
		for _, q := range s.QOS {
			qos = append(qos, q.Name)
		}
		return accounts, qos
	}
	version := func() string { a, _ := h.Cluster.Accounts.Get("my_Acc"); return a.ResourceVersion }
	if code := h.change(t, root, status.AcctChange{Account: &status.AcctAccount{Name: "my_Acc", Description: "one"}},
		status.AcctChange{QOS: &status.AcctQOS{Name: "very_long"}}); code != http.StatusOK {
		t.Fatalf("adding: %d", code)
	}
	stored := &v1alpha1.Account{}
	if err := h.Cluster.Client.Get(t.Context(), client.ObjectKey{Name: "my-acc"}, stored); err != nil {
		t.Fatal(err)
	}
	if control.Named(stored); stored.Name != "my_Acc" {
		t.Errorf("the object is known as %q", stored.Name)
	}
	if code := h.change(
		t,
		root,
		status.AcctChange{Account: &status.AcctAccount{Name: "my_Acc", Version: version(), Description: "two"}},
	); code != http.StatusOK {
		t.Errorf("changing: %d", code)
	}
	accounts, qos := state()
	if !slices.Contains(accounts, "my_Acc two") || !slices.Equal(qos, []string{"very_long"}) {
		t.Errorf("accounts %q, QOS %q", accounts, qos)
	}
	if code := h.change(
		t,
		root,
		status.AcctChange{Account: &status.AcctAccount{Name: "my_Acc", Version: version()}, Delete: true},
	); code != http.StatusOK {
		t.Errorf("deleting: %d", code)
	}
	if accounts, _ := state(); len(accounts) != 2 {
		t.Errorf("accounts %q", accounts)
	}
}

func TestUnknownUsersAreNamed(t *testing.T) {
	h := newFixture(t, interceptor.Funcs{}, usersAndAccounts()...)
	users, groups := h.unknownOwners(
		&status.RecordQuery{Users: []string{"anna", "nosuch"}, UserIDs: []int64{1002, 77}, GroupIDs: []int64{78}},
	)
	if !slices.Equal(users, []string{"nosuch", "77"}) || !slices.Equal(groups, []string{"78"}) {
		t.Errorf("%q %q", users, groups)
	}
	for name, want := range map[string]string{"": "", "normal": "", "high": "", "nosuch": "nosuch"} {
		h.Cluster.QOS.Apply(&v1alpha1.QOS{ObjectMeta: metav1.ObjectMeta{Name: "high"}})
		var names []string
		if name != "" {
			names = []string{"normal", name}
		}
		if bad, all := h.unknownQOS(names); bad != want || bad != "" && !slices.Equal(all, []string{"high", "normal"}) {
			t.Errorf("%s: %q of %q", name, bad, all)
		}
	}
}
