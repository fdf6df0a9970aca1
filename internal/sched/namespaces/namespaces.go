// Package namespaces creates for every User the namespace of its jobs: the
// Namespace itself, the ServiceAccount of the jobs, and the bindings by which
// the user may submit jobs and both may query the queue. It creates what is missing
// and deletes none of these. In each of these namespaces it can also limit where pods connect
// to, by a NetworkPolicy, and let evictions wait for jobs, by a PodDisruptionBudget.
package namespaces

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/wire"
)

// Roles of users, defined by the manifests in deploy/rbac.
const (
	roleUser  = "berth-user"
	roleQueue = "berth-queue"
)

// labelPart is the label that the chart's objects have, with the value berth.
const labelPart = "app.kubernetes.io/name"

// Intervals until all users are reconciled again: after a failure, and when nothing
// has changed.
const (
	retryInterval  = 5 * time.Second
	resyncInterval = 10 * time.Minute
)

// addressInterval is how often the API server's addresses are read, if policies
// name them.
const addressInterval = time.Minute

// Settings are those of the namespaces.
type Settings struct {
	// Labels are set on namespaces when they are created.
	Labels map[string]string
	// Egress limits where pods connect to; nil: no limit.
	Egress *Egress
	// ProtectJobs: the eviction of a job's pod is refused, so that kubectl drain waits
	// until the job has ended.
	ProtectJobs bool
}

// Controller creates the namespaces of users.
type Controller struct {
	cluster  *control.Cluster
	settings Settings
	log      *slog.Logger
	wake     chan struct{}
	logged   map[string]string // the last error that was logged about a user

	apiServer []networkingv1.NetworkPolicyEgressRule // the API server's addresses
}

// New returns a Controller. It subscribes to the stores of c, which must not be filled
// yet.
func New(c *control.Cluster, s Settings, log *slog.Logger) *Controller {
	out := &Controller{
		cluster: c, settings: s, log: log,
		wake: make(chan struct{}, 1), logged: map[string]string{},
	}
	wake := func() {
		select {
		case out.wake <- struct{}{}:
		default:
		}
	}
	c.Users.Subscribe(func(old, now *v1alpha1.User) {
		if now != nil && (old == nil || old.Generation != now.Generation) {
			wake()
		}
	})
	c.Namespaces.Subscribe(func(_, now *corev1.Namespace) {
		if now == nil { // it was deleted
			wake()
		}
	})
	return out
}

// Run reconciles all users, at once and after each change, until ctx ends. Call it once.
func (c *Controller) Run(ctx context.Context) {
	var next time.Duration // until the next pass
	var due time.Time      // of the next pass through all users, if nothing changes
	for {
		changed := false
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
			changed = true
		case <-time.After(next):
		}
		moved, err := c.prepareEgress(ctx)
		if err != nil {
			c.log.Warn("network policies were not prepared", "error", err)
		}
		if next = c.interval(); changed || moved || !time.Now().Before(due) {
			due = time.Now().Add(resyncInterval)
			if !c.reconcileAll(ctx) {
				due = time.Now()
			}
		}
		if err != nil || !time.Now().Before(due) {
			next = retryInterval
		}
	}
}

// interval returns how long Run waits if nothing happens and nothing failed.
func (c *Controller) interval() time.Duration {
	if c.settings.Egress != nil {
		return addressInterval
	}
	return resyncInterval
}

// reconcileAll reconciles every user and reports whether all succeeded.
func (c *Controller) reconcileAll(ctx context.Context) (done bool) {
	done = true
	if err := c.limitOtherNamespaces(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn("network policies were not applied", "error", err)
		done = false
	}
	if err := c.unprotectJobs(ctx); err != nil && ctx.Err() == nil {
		c.log.Warn("PodDisruptionBudgets of jobs were not deleted", "error", err)
		done = false
	}
	for _, u := range c.cluster.Users.List() {
		err := c.reconcile(ctx, u)
		text := ""
		if err != nil && ctx.Err() == nil {
			done, text = false, err.Error()
		}
		if text != "" && text != c.logged[u.Name] {
			c.log.Warn("namespace of a user is not ready", "user", u.Name, "namespace", u.Spec.Namespace, "error", err)
		}
		c.logged[u.Name] = text
	}
	return done
}

func (c *Controller) reconcile(ctx context.Context, u *v1alpha1.User) error {
	if u.DeletionTimestamp != nil || u.Spec.Namespace == "" {
		return nil
	}
	if err := c.createNamespace(ctx, u); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *v1alpha1.User) error{
		c.createServiceAccount, c.bindUserRole, c.bindQueueRole, c.limitEgress, c.protectJobs,
	} {
		if err := step(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// createNamespace creates the namespace of the user. An existing one must have the user's
// label, so that a User that names kube-system gets no rights there.
func (c *Controller) createNamespace(ctx context.Context, u *v1alpha1.User) error {
	n := &corev1.Namespace{}
	err := c.cluster.Client.Get(ctx, client.ObjectKey{Name: u.Spec.Namespace}, n)
	if apierrors.IsNotFound(err) {
		n = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: u.Spec.Namespace, Labels: map[string]string{}}}
		for k, v := range c.settings.Labels {
			n.Labels[k] = v
		}
		n.Labels[wire.LabelNamespace] = u.Name
		return c.cluster.Client.Create(ctx, n)
	}
	if err != nil {
		return err
	}
	if owner := n.Labels[wire.LabelNamespace]; owner != u.Name {
		return fmt.Errorf(
			"the namespace %s exists and is not marked as the user's; if it is, label it: kubectl label namespace %s %s=%s",
			n.Name,
			n.Name,
			wire.LabelNamespace,
			u.Name,
		)
	}
	if n.DeletionTimestamp != nil {
		return fmt.Errorf("the namespace %s is being deleted", n.Name)
	}
	return nil
}

func (c *Controller) createServiceAccount(ctx context.Context, u *v1alpha1.User) error {
	a := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.Spec.Namespace, Name: v1alpha1.ServiceAccountName},
	}
	err := c.cluster.Client.Create(ctx, a)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// bindUserRole lets the user submit jobs in its namespace.
func (c *Controller) bindUserRole(ctx context.Context, u *v1alpha1.User) error {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: u.Spec.Namespace, Name: roleUser}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.cluster.Client, b, func() error {
		b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleUser}
		b.Subjects = subjects(u)
		return nil
	})
	return err
}

// bindQueueRole lets the user query the queue.
func (c *Controller) bindQueueRole(ctx context.Context, u *v1alpha1.User) error {
	b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: roleQueue + "-" + u.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.cluster.Client, b, func() error {
		b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleQueue}
		b.Subjects = subjects(u)
		metav1.SetMetaDataLabel(&b.ObjectMeta, labelPart, "berth") // by which the chart's objects are found
		return nil
	})
	return err
}

// subjects returns the identities of the user, and the ServiceAccount of its jobs.
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
	return append(
		out,
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: u.Spec.Namespace, Name: v1alpha1.ServiceAccountName},
	)
}
