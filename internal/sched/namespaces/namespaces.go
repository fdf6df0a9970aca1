// Package namespaces gives every User the namespace in which its jobs live: the
// Namespace itself, the ServiceAccount of the jobs, and the bindings by which
// the user may submit and both may ask the queue. It makes what is missing and
// deletes nothing.
package namespaces

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// Roles that users have, from the manifests in deploy/rbac.
const (
	roleUser  = "berth-user"
	roleQueue = "berth-queue"
)

// labelPart is the label that the chart's objects have, with the value berth.
const labelPart = "app.kubernetes.io/name"

// Pauses between attempts after a failure, and between looks at all users
// when nothing seems to have happened.
const (
	retryAfter = 5 * time.Second
	lookAgain  = 10 * time.Minute
)

// Maker makes users' namespaces.
type Maker struct {
	cluster *control.Cluster
	labels  map[string]string
	log     *slog.Logger
	wake    chan struct{}
	said    map[string]string // the last complaint about a user
}

// New makes a Maker, before the stores of c are fed. labels go onto namespaces
// that it makes.
func New(c *control.Cluster, labels map[string]string, log *slog.Logger) *Maker {
	m := &Maker{cluster: c, labels: labels, log: log, wake: make(chan struct{}, 1), said: map[string]string{}}
	wake := func() {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	c.Users.Subscribe(func(old, now *v1alpha1.User) {
		if now != nil && (old == nil || old.Generation != now.Generation) {
			wake()
		}
	})
	c.Namespaces.Subscribe(func(_, now *corev1.Namespace) {
		if now == nil { // somebody deleted one
			wake()
		}
	})
	return m
}

// Run makes what is missing until ctx ends. It begins with all users.
func (m *Maker) Run(ctx context.Context) {
	next := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-time.After(next):
		}
		next = lookAgain
		if !m.all(ctx) {
			next = retryAfter
		}
	}
}

// all goes through every user; false: something is to be tried again.
func (m *Maker) all(ctx context.Context) (done bool) {
	done = true
	for _, u := range m.cluster.Users.List() {
		err := m.user(ctx, u)
		text := ""
		if err != nil && ctx.Err() == nil {
			done, text = false, err.Error()
		}
		if text != "" && text != m.said[u.Name] {
			m.log.Warn("namespace of a user", "user", u.Name, "namespace", u.Spec.Namespace, "error", err)
		}
		m.said[u.Name] = text
	}
	return done
}

func (m *Maker) user(ctx context.Context, u *v1alpha1.User) error {
	if u.DeletionTimestamp != nil || u.Spec.Namespace == "" {
		return nil
	}
	if err := m.namespace(ctx, u); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *v1alpha1.User) error{m.account, m.mayJobs, m.mayQueue} {
		if err := step(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// namespace makes the namespace. One that is there must be the user's by its
// label: a User that names kube-system must not get hold of it.
func (m *Maker) namespace(ctx context.Context, u *v1alpha1.User) error {
	n := &corev1.Namespace{}
	err := m.cluster.Client.Get(ctx, client.ObjectKey{Name: u.Spec.Namespace}, n)
	if apierrors.IsNotFound(err) {
		n = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: u.Spec.Namespace, Labels: map[string]string{}}}
		for k, v := range m.labels {
			n.Labels[k] = v
		}
		n.Labels[wire.LabelNamespace] = u.Name
		return m.cluster.Client.Create(ctx, n)
	}
	if err != nil {
		return err
	}
	if owner := n.Labels[wire.LabelNamespace]; owner != u.Name {
		return fmt.Errorf("the namespace %s exists and is not marked as the user's; if it is, label it: kubectl label namespace %s %s=%s",
			n.Name, n.Name, wire.LabelNamespace, u.Name)
	}
	if n.DeletionTimestamp != nil {
		return fmt.Errorf("the namespace %s is being deleted", n.Name)
	}
	return nil
}

func (m *Maker) account(ctx context.Context, u *v1alpha1.User) error {
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: u.Spec.Namespace, Name: v1alpha1.ServiceAccountName}}
	err := m.cluster.Client.Create(ctx, a)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (m *Maker) mayJobs(ctx context.Context, u *v1alpha1.User) error {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: u.Spec.Namespace, Name: roleUser}}
	_, err := controllerutil.CreateOrUpdate(ctx, m.cluster.Client, b, func() error {
		b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleUser}
		b.Subjects = subjects(u)
		return nil
	})
	return err
}

func (m *Maker) mayQueue(ctx context.Context, u *v1alpha1.User) error {
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: roleQueue + "-" + u.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, m.cluster.Client, b, func() error {
		b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleQueue}
		b.Subjects = subjects(u)
		metav1.SetMetaDataLabel(&b.ObjectMeta, labelPart, "berth") // who removes all of Berth finds it
		return nil
	})
	return err
}

// subjects are who acts for the user: its identities, and its jobs.
func subjects(u *v1alpha1.User) []rbacv1.Subject {
	identities := u.Spec.Identities
	if len(identities) == 0 {
		identities = []string{u.Name}
	}
	var out []rbacv1.Subject
	for _, name := range identities {
		if !strings.HasPrefix(name, "system:") {
			out = append(out, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name})
		}
	}
	return append(out, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: u.Spec.Namespace, Name: v1alpha1.ServiceAccountName})
}
