package namespaces

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// newController returns a controller of a cluster with the objects, and what it logs.
func newController(hooks interceptor.Funcs, objects ...client.Object) (*Controller, *bytes.Buffer) {
	c := &control.Cluster{
		Client: fake.NewClientBuilder().WithScheme(control.NewScheme()).WithObjects(objects...).WithInterceptorFuncs(hooks).Build(),
		Users:  control.NewStore(func(u *v1alpha1.User) string { return u.Name }),
		Namespaces: control.NewStore(func(n *corev1.Namespace) string {
			return n.Name
		}),
	}
	var log bytes.Buffer
	return New(c, Settings{Labels: map[string]string{"level": "restricted"}}, slog.New(slog.NewTextHandler(&log, nil))), &log
}

// user returns a User with a namespace of its own.
func user(name string, identities ...string) *v1alpha1.User {
	return &v1alpha1.User{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"},
		Spec:       v1alpha1.UserSpec{Namespace: "user-" + name, Identities: identities},
	}
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// get reads an object; false: it does not exist.
func get(t *testing.T, c *Controller, namespace, name string, o client.Object) bool {
	t.Helper()
	err := c.cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// subjectsOf returns the subjects of a user's two bindings, which must be the same.
func subjectsOf(t *testing.T, c *Controller, u *v1alpha1.User) []string {
	t.Helper()
	var role rbacv1.RoleBinding
	var queue rbacv1.ClusterRoleBinding
	if !get(t, c, u.Spec.Namespace, "berth-user", &role) || !get(t, c, "", "berth-queue-"+u.Name, &queue) {
		t.Fatalf("%s has no bindings", u.Name)
	}
	if role.RoleRef.Name != "berth-user" || queue.RoleRef.Name != "berth-queue" || role.RoleRef.Kind != "ClusterRole" {
		t.Errorf("roles %+v, %+v", role.RoleRef, queue.RoleRef)
	}
	var out []string
	for _, s := range role.Subjects {
		out = append(out, strings.Join([]string{s.Kind, s.Namespace, s.Name}, "|"))
	}
	if !slices.Equal(role.Subjects, queue.Subjects) {
		t.Errorf("the bindings of %s differ: %v, %v", u.Name, role.Subjects, queue.Subjects)
	}
	return out
}

// TestNamespaceOfAUser: a new User gets a namespace, a ServiceAccount and two bindings, with
// its identities. No User can get rights for an identity of Kubernetes.
func TestNamespaceOfAUser(t *testing.T) {
	for name, tt := range map[string]struct {
		identities, want []string
	}{
		"without identities": {nil, []string{"User||anna"}},
		"with identities":    {[]string{"oidc:anna", "anna@site"}, []string{"User||oidc:anna", "User||anna@site"}},
		"of Kubernetes":      {[]string{"system:admin", "system:serviceaccount:kube-system:x", "me"}, []string{"User||me"}},
		"of Kubernetes only": {[]string{"system:masters"}, nil},
	} {
		c, log := newController(interceptor.Funcs{})
		u := user("anna", tt.identities...)
		c.cluster.Users.Apply(u)
		for range 2 { // what exists stays
			if !c.reconcileAll(t.Context()) {
				t.Fatalf("%s: %s", name, log)
			}
		}
		n := &corev1.Namespace{}
		if !get(t, c, "", "user-anna", n) || n.Labels[wire.LabelNamespace] != "anna" || n.Labels["level"] != "restricted" {
			t.Errorf("%s: labels %v", name, n.Labels)
		}
		if !get(t, c, "user-anna", v1alpha1.ServiceAccountName, &corev1.ServiceAccount{}) {
			t.Errorf("%s: no ServiceAccount", name)
		}
		want := append(slices.Clone(tt.want), "ServiceAccount|user-anna|berth-job")
		if got := subjectsOf(t, c, u); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestIdentitiesAreReplaced: an identity that a User no longer has loses its rights, and
// subjects that were added by hand are removed.
func TestIdentitiesAreReplaced(t *testing.T) {
	c, _ := newController(interceptor.Funcs{})
	c.cluster.Users.Apply(user("anna", "old", "same"))
	c.reconcileAll(t.Context())
	changed := user("anna", "same", "new")
	changed.ResourceVersion = "2"
	c.cluster.Users.Apply(changed)
	var role rbacv1.RoleBinding
	get(t, c, "user-anna", "berth-user", &role)
	role.Subjects = append(role.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "eve"})
	if err := c.cluster.Client.Update(t.Context(), &role); err != nil {
		t.Fatal(err)
	}
	c.reconcileAll(t.Context())
	if got, want := subjectsOf(t, c, changed), []string{"User||same", "User||new", "ServiceAccount|user-anna|berth-job"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestNamespacesOfOthers: a User that names an existing namespace gets no rights in it unless
// it has the User's label. The reason is logged once, and other Users are not affected.
func TestNamespacesOfOthers(t *testing.T) {
	mine := map[string]string{wire.LabelNamespace: "eve"}
	for name, tt := range map[string]struct {
		namespace *corev1.Namespace
		want      bool
	}{
		"of the system":   {namespace("kube-system", nil), false},
		"of another user": {namespace("user-anna", map[string]string{wire.LabelNamespace: "anna"}), false},
		"of no user":      {namespace("plain", map[string]string{wire.LabelNamespace: ""}), false},
		"marked":          {namespace("special", mine), true},
	} {
		c, log := newController(interceptor.Funcs{}, tt.namespace)
		eve := user("eve")
		eve.Spec.Namespace = tt.namespace.Name
		c.cluster.Users.Apply(eve)
		c.cluster.Users.Apply(user("ben"))
		for range 3 {
			if got := c.reconcileAll(t.Context()); got != tt.want {
				t.Errorf("%s: reconciled %v", name, got)
			}
		}
		if got := get(t, c, eve.Spec.Namespace, "berth-user", &rbacv1.RoleBinding{}); got != tt.want {
			t.Errorf("%s: bound %v", name, got)
		}
		if got := get(t, c, "", "berth-queue-eve", &rbacv1.ClusterRoleBinding{}); got != tt.want {
			t.Errorf("%s: may query the queue: %v", name, got)
		}
		if n := strings.Count(log.String(), "kubectl label namespace"); n != 1 && !tt.want || n != 0 && tt.want {
			t.Errorf("%s: the reason was logged %d times: %s", name, n, log)
		}
		if !get(t, c, "user-ben", "berth-user", &rbacv1.RoleBinding{}) {
			t.Errorf("%s: another user has no namespace", name)
		}
	}
}

// TestUsersWithoutANamespace: nothing is created for a User that is being deleted, or names no
// namespace, and nothing in a namespace that is being deleted.
func TestUsersWithoutANamespace(t *testing.T) {
	deleted, nameless := user("anna"), user("ben")
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	nameless.Spec.Namespace = ""
	c, _ := newController(interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
		t.Errorf("%T %s was created", o, o.GetName())
		return nil
	}})
	c.cluster.Users.Apply(deleted)
	c.cluster.Users.Apply(nameless)
	if !c.reconcileAll(t.Context()) {
		t.Error("not reconciled")
	}
	ending := namespace("user-carl", map[string]string{wire.LabelNamespace: "carl"})
	ending.DeletionTimestamp, ending.Finalizers = deleted.DeletionTimestamp, []string{"x"}
	c, log := newController(interceptor.Funcs{}, ending)
	c.cluster.Users.Apply(user("carl"))
	if c.reconcileAll(t.Context()) || get(t, c, "user-carl", v1alpha1.ServiceAccountName, &corev1.ServiceAccount{}) ||
		!strings.Contains(log.String(), "is being deleted") {
		t.Errorf("a namespace that is being deleted: %s", log)
	}
}

// TestRunTriesAgain: after a failure the controller tries again soon, and a new User gets its
// namespace at once.
func TestRunTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 2
		c, _ := newController(interceptor.Funcs{Create: func(ctx context.Context, w client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, ok := o.(*rbacv1.RoleBinding); ok && failures > 0 {
				failures--
				return errors.New("the API server is busy")
			}
			return w.Create(ctx, o, opts...)
		}})
		c.cluster.Users.Apply(user("anna"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.Run(ctx); close(done) }()
		ready := func(name string) bool { return get(t, c, "user-"+name, "berth-user", &rbacv1.RoleBinding{}) }
		synctest.Wait()
		if ready("anna") {
			t.Error("the first attempt did not fail")
		}
		time.Sleep(2*retryInterval + time.Second)
		if !ready("anna") {
			t.Error("not tried again")
		}
		c.cluster.Users.Apply(user("ben"))
		synctest.Wait()
		if !ready("ben") {
			t.Error("a new user has to wait")
		}
		cancel()
		<-done
	})
}
