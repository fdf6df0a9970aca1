// Package fake is a cluster in memory for tests of the API role: stores that tests
// fill, a client that stores what is written, the authority of a front proxy, and
// agents that record commands.
package fake

import (
	"fmt"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/control"
)

// Cluster returns empty stores and a client with the objects; hooks intercept the
// client's calls.
func Cluster(hooks interceptor.Funcs, objects ...client.Object) *control.Cluster {
	return Stores(fake.NewClientBuilder().WithScheme(control.NewScheme()).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.BatchJob{}, &v1alpha1.NodePool{}).WithInterceptorFuncs(hooks).Build())
}

// Stores returns a cluster with empty stores, whose requests to the API server go to c.
func Stores(c client.Client) *control.Cluster {
	byName := func(o client.Object) string { return o.GetName() }
	return &control.Cluster{
		Client:     c,
		Jobs:       control.NewJobs(),
		Pods:       control.NewPods(),
		PodGroups:  control.NewPodGroups(),
		Nodes:      control.NewNodes(),
		Partitions: control.NewStore(func(o *v1alpha1.Partition) string { return byName(o) }),
		Users:      control.NewStore(func(o *v1alpha1.User) string { return byName(o) }),
		Settings:   control.NewStore(func(o *v1alpha1.Cluster) string { return byName(o) }),
		Namespaces: control.NewStore(func(o *corev1.Namespace) string { return byName(o) }),
		Accounts:   control.NewStore(func(o *v1alpha1.Account) string { return byName(o) }),
		QOS:        control.NewStore(func(o *v1alpha1.QOS) string { return byName(o) }),

		Reservations: control.NewStore(func(o *v1alpha1.Reservation) string { return byName(o) }),
		NodePools:    control.NewStore(func(o *v1alpha1.NodePool) string { return byName(o) }),
	}
}

var version atomic.Int64

// Feed puts objects into the stores as a watch would, each newer than all before it.
// Objects without a UID get one.
func Feed(c *control.Cluster, objects ...client.Object) {
	for _, o := range objects {
		o.SetResourceVersion(strconv.FormatInt(version.Add(1)+1_000_000, 10))
		if o.GetUID() == "" {
			o.SetUID(types.UID(fmt.Sprintf("%T/%s/%s", o, o.GetNamespace(), o.GetName())))
		}
		switch x := o.(type) {
		case *v1alpha1.BatchJob:
			c.Jobs.Apply(x)
		case *corev1.Pod:
			c.Pods.Apply(x)
		case *corev1.Node:
			c.Nodes.Apply(x)
		case *v1alpha1.Partition:
			c.Partitions.Apply(x)
		case *v1alpha1.User:
			c.Users.Apply(x)
		case *v1alpha1.Cluster:
			c.Settings.Apply(x)
		case *v1alpha1.Account:
			c.Accounts.Apply(x)
		case *v1alpha1.Reservation:
			c.Reservations.Apply(x)
		case *v1alpha1.NodePool:
			c.NodePools.Apply(x)
		case *v1alpha1.QOS:
			c.QOS.Apply(x)
		case *podgroup.PodGroup:
			c.PodGroups.Apply(x)
		default:
			panic(fmt.Sprintf("fake: no store for %T", o))
		}
	}
}

// User returns a user with the uid and the namespace user-NAME.
func User(name string, uid int64) *v1alpha1.User {
	u := &v1alpha1.User{}
	u.Name = name
	u.Spec = v1alpha1.UserSpec{UID: uid, GID: uid, Namespace: "user-" + name, Home: "/home/" + name,
		Groups: []v1alpha1.Group{{Name: name, GID: uid}, {Name: "staff", GID: 50}}}
	return u
}

// Partition returns a partition with defaults; change may be nil.
func Partition(name string, change func(*v1alpha1.PartitionSpec)) *v1alpha1.Partition {
	p := &v1alpha1.Partition{}
	p.Name = name
	if change != nil {
		change(&p.Spec)
	}
	return p
}

// Settings returns the Cluster object.
func Settings(s v1alpha1.ClusterSpec) *v1alpha1.Cluster {
	c := &v1alpha1.Cluster{Spec: s}
	c.Name = v1alpha1.ClusterName
	return c
}
