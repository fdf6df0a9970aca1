package usersync

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/eventually"
	"github.com/berth-hpc/berth/internal/exectest"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/usersource/ldaptest"
	"github.com/berth-hpc/berth/internal/wire"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// site is a cluster in memory with a controller.
type site struct {
	*testing.T
	cluster *control.Cluster
	x       *Controller
	log     bytes.Buffer
	now     time.Time
}

// newSite returns a site with a configuration in YAML.
func newSite(t *testing.T, config string, objects ...client.Object) *site {
	t.Helper()
	path := filepath.Join(t.TempDir(), "directory.yaml")
	writeFile(t, path, config)
	cfg, err := ReadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{T: t, cluster: fake.Cluster(interceptor.Funcs{}, objects...), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for _, o := range objects {
		if a, ok := o.(*v1alpha1.Account); ok {
			s.cluster.Accounts.Apply(a)
		}
	}
	s.x, err = New(s.cluster, cfg, func() time.Time { return s.now }, slog.New(slog.NewTextHandler(&s.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pass makes one pass, and returns the number of objects that it has written.
func (s *site) pass() int {
	s.Helper()
	s.now = s.now.Add(time.Minute)
	before := strings.Count(s.log.String(), "user written")
	s.x.pass(s.Context())
	return strings.Count(s.log.String(), "user written") - before
}

// user returns a User as it is in the API server; nil: there is none.
func (s *site) user(name string) *v1alpha1.User {
	u := &v1alpha1.User{}
	if s.cluster.Client.Get(s.Context(), client.ObjectKey{Name: name}, u) != nil {
		return nil
	}
	return u
}

// events returns the reasons of the events.
func (s *site) events() string {
	s.Helper()
	list := &corev1.EventList{}
	if err := s.cluster.Client.List(s.Context(), list); err != nil {
		s.Fatal(err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.FirstTimestamp.Compare(b.FirstTimestamp.Time) })
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Reason)
	}
	return strings.Join(out, " ")
}

// report returns the report that was written.
func (s *site) report() Report {
	s.Helper()
	m := &corev1.ConfigMap{}
	var r Report
	key := client.ObjectKey{Namespace: wire.SystemNamespace, Name: wire.DirectoryConfigMap}
	if err := s.cluster.Client.Get(s.Context(), key, m); err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal([]byte(m.Data[wire.DirectoryReport]), &r); err != nil {
		s.Fatal(err)
	}
	return r
}

// TestDirectory follows a real directory through everything that happens to users.
func TestDirectory(t *testing.T) {
	server := ldaptest.Start(t)
	physics := &v1alpha1.Account{}
	physics.Name, physics.Spec.Coordinators = "physics", []string{"boss"}
	s := newSite(t, server.Sources()+`
accounts: [{group: phys, account: physics}]
coordinators: [{group: pis, account: physics}]
operators: [staff]
`, physics)
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJd0XHzWy2kYjqsyRbUxTnyOWVb2qU0YbCo3Yk5rq8Zn"
	server.AddGroup("users", 3000)
	server.AddGroup("phys", 3001, "ann")
	server.AddGroup("pis", 3002, "ann")
	server.AddGroup("staff", 3003)
	server.AddUser("ann", 2001, 3000, "sshPublicKey: "+key)
	server.AddUser("ben", 2002, 3000)
	server.AddUser("low", 500, 3000)
	if n := s.pass(); n != 2 {
		t.Errorf("%d users were written", n)
	}
	ann := s.user("ann")
	if ann == nil || ann.Spec.UID != 2001 || ann.Spec.DefaultAccount != "physics" || !slices.Equal(ann.Spec.SSHKeys, []string{key}) ||
		len(ann.Spec.Groups) != 3 || ann.Spec.AdminLevel != "None" || ann.Labels[v1alpha1.LabelSource] != "ldap" {
		t.Fatalf("%+v", ann)
	}
	a := &v1alpha1.Account{}
	if err := s.cluster.Client.Get(t.Context(), client.ObjectKey{Name: "physics"}, a); err != nil || !slices.Equal(a.Spec.Coordinators, []string{"ann", "boss"}) {
		t.Errorf("coordinators %q, %v", a.Spec.Coordinators, err)
	}
	s.cluster.Accounts.Apply(a)
	if n := s.pass(); n != 0 {
		t.Errorf("without a change, %d users were written", n)
	}
	if r := s.report(); len(r.Problems) != 1 || !strings.Contains(r.Problems[0], `"low" is refused: the uid 500`) || r.Sources[0].Users != 2 {
		t.Errorf("%+v", r)
	}

	// Changes of users and groups.
	server.Set(ldaptest.UserDN("ann"), "sshPublicKey")
	server.Set(ldaptest.GroupDN("phys"), "memberUid", "ben")
	server.Set(ldaptest.GroupDN("staff"), "memberUid", "ben")
	if n := s.pass(); n != 2 {
		t.Errorf("%d users were written", n)
	}
	if ann, ben := s.user("ann"), s.user("ben"); ann.Spec.SSHKeys != nil || ann.Spec.Accounts != nil || ann.Spec.DefaultAccount != "" ||
		ben.Spec.AdminLevel != "Operator" || ben.Spec.DefaultAccount != "physics" {
		t.Errorf("%+v\n%+v", ann.Spec, ben.Spec)
	}

	// A clash of uids, a disabled user, and one who has left.
	server.AddUser("eve", 2001, 3000)
	server.Set(ldaptest.UserDN("ann"), "shadowExpire", "1")
	server.Delete(ldaptest.UserDN("ben"))
	s.pass()
	if ann, ben := s.user("ann"), s.user("ben"); s.user("eve") != nil || !ann.Spec.Disabled || !ben.Spec.Disabled || ben.Spec.AdminLevel != "None" {
		t.Errorf("%+v\n%+v", ann.Spec, ben.Spec)
	}
	server.Set(ldaptest.UserDN("ann"), "shadowExpire")
	s.pass()
	if ann := s.user("ann"); ann.Spec.Disabled || len(ann.Annotations) != 0 {
		t.Errorf("not enabled again: %+v", ann)
	}

	// The directory is away, and back.
	server.Stop()
	if n := s.pass(); n != 0 || s.user("ann").Spec.Disabled {
		t.Error("users were changed while the directory was away")
	}
	r := s.report()
	if r.Sources[0].Error == "" || !r.Sources[0].Since.Equal(s.now.Add(-time.Minute)) || r.Sources[0].Users != 1 {
		t.Errorf("%+v", r)
	}
	s.pass()
	server.Run()
	s.pass()
	if r = s.report(); r.Sources[0].Error != "" || s.events() != "DirectoryAway DirectoryBack" {
		t.Errorf("%+v, events %s", r, s.events())
	}

	// The bind user's password is wrong.
	writeFile(t, server.PasswordFile, "wrong")
	s.pass()
	if r = s.report(); !strings.Contains(r.Sources[0].Error, "Invalid Credentials") || s.user("ann").Spec.Disabled {
		t.Errorf("%+v", r)
	}
	writeFile(t, server.PasswordFile, ldaptest.Password)

	// An empty answer.
	server.Delete(ldaptest.UserDN("ann"))
	server.Delete(ldaptest.UserDN("eve"))
	server.Delete(ldaptest.UserDN("low"))
	s.pass()
	if r = s.report(); s.user("ann").Spec.Disabled || r.Sources[0].Kept != 1 {
		t.Errorf("%+v", r)
	}
	if got := s.events(); !strings.Contains(got, "DirectoryUsersMissing") {
		t.Errorf("events %s", got)
	}
}

// TestManyUsers: a site of some size is written once. The fake API server is slow; package
// ldapsource reads more users.
func TestManyUsers(t *testing.T) {
	server := ldaptest.Start(t)
	const n = 500
	server.AddUsers(n, 10000, 3000)
	s := newSite(t, server.Sources())
	for _, want := range []int{n, 0} {
		began := time.Now()
		if got := s.pass(); got != want {
			t.Errorf("%d users were written, not %d", got, want)
		}
		t.Logf("%d users written in %v", want, time.Since(began).Round(time.Millisecond))
	}
	if r := s.report(); r.Sources[0].Users != n || len(r.Problems) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestFieldsOfOthersStay: what administrators set beside the fields of the source stays, and
// what they change of those is put right.
func TestFieldsOfOthersStay(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "users.yaml")
	writeFile(t, file, "users: [{name: ann, uid: 2001, gid: 3000, shell: /bin/bash}]")
	s := newSite(t, "sources: [{name: file, file: {path: "+file+"}}]")
	s.pass()
	u := s.user("ann")
	u.Spec.DefaultQOS, u.Spec.UID, u.Spec.MaxBytes = "high", 7, new(int64(5))
	if err := s.cluster.Client.Update(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	s.cluster.Users.Apply(u)
	s.pass()
	// Its uid is not the file's: it may be somebody else's object now.
	if got := s.user("ann").Spec; got.UID != 7 || !got.Disabled || got.DefaultQOS != "high" {
		t.Errorf("%+v", got)
	}
}

// TestFileIsWatched: a change of a file takes effect before the interval is over.
func TestFileIsWatched(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "users.yaml")
	writeFile(t, file, "users: []")
	s := newSite(t, "interval: 1000h\nsources: [{name: file, file: {path: "+file+"}}]")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.x.Run(ctx) }()
	eventually.Holds(t, "the first pass", func() bool { r := s.x.Report(); return r.Sources[0].Since != nil })
	writeFile(t, file, "users: [{name: ann, uid: 2001, gid: 3000}]")
	eventually.Holds(t, "the user is there", func() bool { return s.user("ann") != nil })
	writeFile(t, file, "users: [{name: ann, uid: 2001, gid: 3000, disabled: true}]")
	eventually.Holds(t, "the user is disabled", func() bool { return s.user("ann").Spec.Disabled })
	cancel()
	<-done
}

// TestHomes: the site's program is run once for each enabled user, and again while it fails.
func TestHomes(t *testing.T) {
	dir := t.TempDir()
	file, program := filepath.Join(dir, "users.yaml"), filepath.Join(dir, "mkhome")
	writeFile(t, file, `users:
- {name: ann, uid: 2001, gid: 3000, home: /data/ann}
- {name: ben, uid: 2002, gid: 3000, disabled: true}
- {name: bad, uid: 2003, gid: 3000}
`)
	exectest.Write(t, program, "#!/bin/sh\n[ \"$1\" != bad ] || { echo no quota; exit 3; }\necho \"$@\" >>"+dir+"/made\n")
	s := newSite(t, "homeProgram: "+program+"\nsources: [{name: file, file: {path: "+file+"}}]")
	for range 2 {
		s.pass()
	}
	made, err := os.ReadFile(dir + "/made")
	if err != nil || string(made) != "ann 2001 3000 /data/ann\n" {
		t.Errorf("%q, %v", made, err)
	}
	want := "user bad: the home /home/bad was not made: " + program + " bad 2003 3000 /home/bad: exit status 3: no quota"
	if r := s.report(); !slices.Contains(r.Problems, want) {
		t.Errorf("%q", r.Problems)
	}
	if got := s.user("ann").Annotations[AnnotationHome]; got != "/data/ann" {
		t.Errorf("the home that was made is %q", got)
	}
}
