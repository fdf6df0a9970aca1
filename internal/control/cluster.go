package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
)

// Cluster is the cluster as a server process sees it.
type Cluster struct {
	// RebootProgram is the default of ClusterSpec.RebootProgram. Set it before Start.
	RebootProgram string

	// Config is the connection, with the process's identity.
	Config *rest.Config
	// Client reads and writes the API server directly (no cache). After a write to an
	// object that is in a store, Apply the result to the store.
	Client client.Client

	// Jobs by job id (decimal). The stored objects have no Script, Environment and Labels:
	// read the object with Client for them. They are also indexed by the job from which they
	// were split off (see SplitOff) and by the pods that they represent (see
	// WorkloadOf, WorkloadJobs).
	Jobs *JobStore
	// Pods by job id (label wire.LabelJobID), those of workloads by group (see
	// WorkloadPods); others have no key.
	Pods *Store[*corev1.Pod]
	// Nodes by name, and by the name that a NodePool has for them (see NodesNamed).
	Nodes      *Store[*corev1.Node]
	Partitions *Store[*v1alpha1.Partition] // by name
	Users      *Store[*v1alpha1.User]      // by name
	Settings   *Store[*v1alpha1.Cluster]   // by name
	Namespaces *Store[*corev1.Namespace]   // by name
	Accounts   *Store[*v1alpha1.Account]   // by name
	QOS        *Store[*v1alpha1.QOS]       // by name

	Reservations *Store[*v1alpha1.Reservation] // by name
	NodePools    *Store[*v1alpha1.NodePool]    // by name
	// Devices has what drivers of dynamic resource allocation publish.
	Devices Devices
	// PodGroups that Berth did not create, by namespace/name; others have no key.
	PodGroups *Store[*podgroup.PodGroup]

	// NextID returns a new job id; nil: only admission assigns ids. Set it before use.
	NextID func(context.Context) (int64, error)

	cache   cache.Cache
	arrays  locks
	members memberIndex
	strings sharedStrings
}

// New returns a Cluster; it watches nothing before Start. It uses a copy of cfg without the
// client's rate limit, because the API server limits clients itself (Priority and
// Fairness).
func New(cfg *rest.Config) (*Cluster, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = -1, 0
	scheme := NewScheme()
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("client for the API server: %w", err)
	}
	all := &Cluster{
		Config: cfg, Client: c,
		Jobs:       NewJobs(),
		Pods:       NewPods(),
		PodGroups:  NewPodGroups(),
		Nodes:      NewNodes(),
		Partitions: NewStore(name[*v1alpha1.Partition]),
		Users:      NewStore(name[*v1alpha1.User]),
		Settings:   NewStore(name[*v1alpha1.Cluster]),
		Namespaces: NewStore(name[*corev1.Namespace]),
		Accounts:   NewStore(name[*v1alpha1.Account]),
		QOS:        NewStore(name[*v1alpha1.QOS]),

		Reservations: NewStore(name[*v1alpha1.Reservation]),
		NodePools:    NewStore(name[*v1alpha1.NodePool]),
		Devices:      newDevices(),
	}
	all.cache, err = cache.New(cfg, cache.Options{Scheme: scheme, DefaultTransform: all.dropUnreadFields})
	if err != nil {
		return nil, fmt.Errorf("cache of the API server: %w", err)
	}
	return all, nil
}

func name[T client.Object](o T) string { return o.GetName() }

func jobKey(j *v1alpha1.BatchJob) string {
	if j.Spec.JobID == 0 {
		return ""
	}
	return strconv.FormatInt(j.Spec.JobID, 10)
}

// originKey is the index key of jobs that were split off a job.
func originKey(j *v1alpha1.BatchJob) string {
	if o := j.Spec.Origin; o != nil {
		return "of " + strconv.FormatInt(o.JobID, 10)
	}
	return ""
}

// SplitOff returns the jobs that were split off a job: the tasks of an array, the
// further components of a heterogeneous job. They are in no order.
func (c *Cluster) SplitOff(id int64) []*v1alpha1.BatchJob {
	return c.Jobs.ByIndex("of " + strconv.FormatInt(id, 10))
}

// podsKey is the index key of jobs that run in the pods of another job.
func podsKey(j *v1alpha1.BatchJob) string {
	if p := j.Status.Pods; p != nil {
		return podsOf(p.JobID, p.Attempt)
	}
	return ""
}

func podsOf(jobID int64, attempt int32) string {
	return "in " + strconv.FormatInt(jobID, 10) + "-" + strconv.Itoa(int(attempt))
}

// InPods returns the jobs that run or ran in the pods of that attempt, in no order.
func (c *Cluster) InPods(jobID int64, attempt int32) []*v1alpha1.BatchJob {
	return c.Jobs.ByIndex(podsOf(jobID, attempt))
}

// Job returns the job with that id; ok is false if there is none.
func (c *Cluster) Job(id int64) (b *v1alpha1.BatchJob, ok bool) {
	return c.Jobs.Get(strconv.FormatInt(id, 10))
}

// JobPods returns the pods with the job's id, of every attempt. Pods in other
// namespaces than the job's do not belong to it, whatever their labels.
func (c *Cluster) JobPods(id int64) []*corev1.Pod {
	b, known := c.Job(id)
	pods := c.Pods.ByIndex(strconv.FormatInt(id, 10))
	if !known {
		return pods
	}
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.Namespace != b.Namespace })
}

// Parameters returns the spec of the Cluster object; the defaults if there is none.
func (c *Cluster) Parameters() v1alpha1.ClusterSpec {
	var spec v1alpha1.ClusterSpec
	if s, ok := c.Settings.Get(v1alpha1.ClusterName); ok {
		spec = s.Spec
	}
	spec.RebootProgram = cmp.Or(spec.RebootProgram, c.RebootProgram)
	return spec
}

// maxOverTime is the value of OverTimeLimit=UNLIMITED in minutes: a year, as in Slurm. A
// larger one could overflow a time.Duration.
const maxOverTime = 365 * 24 * 60

// OverTimeLimit returns how long a job may run beyond its time limit in the partition, at
// most a year.
func (c *Cluster) OverTimeLimit(partition string) time.Duration {
	minutes := c.Parameters().OverTimeLimit
	if p, ok := c.Partitions.Get(partition); ok && p.Spec.OverTimeLimit != nil {
		minutes = *p.Spec.OverTimeLimit
	}
	return time.Duration(min(minutes, maxOverTime)) * time.Minute
}

// dropUnreadFields removes from an object the fields that no server process reads from memory.
func (c *Cluster) dropUnreadFields(o any) (any, error) {
	switch x := o.(type) {
	case *v1alpha1.BatchJob:
		x.ManagedFields, x.Labels = nil, nil // its labels repeat its id and its user
		c.Jobs.dropPayload(x)
		c.strings.compact(x)
		if x.Status.State != "" {
			x.DropInitialStatus()
		}
	case client.Object:
		x.SetManagedFields(nil)
	}
	return o, nil
}

// objectAnnotation keeps, in memory only, the name of a Partition's object.
const objectAnnotation = "berth.hpc/object"

// Named gives an Account, QOS or Partition in memory the name that users know. It may
// differ from that of the object in the API server, which has neither capitals nor "_".
// Stored undoes it.
func Named(o client.Object) {
	if _, ok := o.(*v1alpha1.Partition); !ok {
		o.SetName(v1alpha1.UserName(o.GetName(), o.GetAnnotations()))
		return
	}
	name := v1alpha1.PartitionName(o.GetName(), o.GetAnnotations())
	if name != o.GetName() {
		setAnnotation(o, objectAnnotation, o.GetName())
		o.SetName(name)
	}
}

// Stored returns a copy of o with the name that the object has in the API server. It is
// the inverse of Named.
func Stored(o client.Object) client.Object {
	o = o.DeepCopyObject().(client.Object)
	name := o.GetName()
	object := name
	switch o.(type) {
	case *v1alpha1.Account, *v1alpha1.QOS:
		object = v1alpha1.ObjectNamed(name)
	case *v1alpha1.Partition:
		object = cmp.Or(o.GetAnnotations()[objectAnnotation], v1alpha1.PartitionObject(name))
	}
	if object == name {
		return o
	}
	setAnnotation(o, v1alpha1.NameAnnotation, name)
	delete(o.GetAnnotations(), objectAnnotation)
	o.SetName(object)
	return o
}

// setAnnotation sets an annotation of o. It replaces the map of annotations, which other
// objects may share.
func setAnnotation(o client.Object, key, value string) {
	notes := maps.Clone(o.GetAnnotations())
	if notes == nil {
		notes = map[string]string{}
	}
	notes[key] = value
	o.SetAnnotations(notes)
}

// ApplyJob applies a job, the result of a write, to the store, without the fields that are
// not kept in memory. It does not change j.
func (c *Cluster) ApplyJob(j *v1alpha1.BatchJob) {
	j = j.DeepCopy()
	_, _ = c.dropUnreadFields(j)
	c.Jobs.Apply(j)
}

// Start begins to watch, until ctx ends. It returns when every store has the objects that
// the API server had at the call. Call it once.
func (c *Cluster) Start(ctx context.Context) error {
	var synced []toolscache.InformerSynced
	add := func(s toolscache.InformerSynced, err error) error {
		synced = append(synced, s)
		return err
	}
	for _, err := range []error{
		add(fillByWatch(ctx, c.cache, &v1alpha1.BatchJob{}, c.Jobs)),
		add(fillByWatch(ctx, c.cache, &corev1.Pod{}, c.Pods)),
		add(fillByWatch(ctx, c.cache, &corev1.Node{}, c.Nodes)),
		add(fillByWatch(ctx, c.cache, &v1alpha1.Partition{}, c.Partitions)),
		add(fillByWatch(ctx, c.cache, &v1alpha1.User{}, c.Users)),
		add(fillByWatch(ctx, c.cache, &v1alpha1.Cluster{}, c.Settings)),
		add(fillByWatch(ctx, c.cache, &corev1.Namespace{}, c.Namespaces)),
		add(fillByWatch(ctx, c.cache, &v1alpha1.Account{}, c.Accounts)),
		add(fillByWatch(ctx, c.cache, &v1alpha1.QOS{}, c.QOS)),
		add(fillByWatch(ctx, c.cache, &v1alpha1.Reservation{}, c.Reservations)),
		add(fillByWatch(ctx, c.cache, &v1alpha1.NodePool{}, c.NodePools)),
		add(fillByWatch(ctx, c.cache, &podgroup.PodGroup{}, c.PodGroups)),
	} {
		if err != nil {
			return err
		}
	}
	more, err := c.Devices.watch(ctx, c.cache, c.Client.RESTMapper())
	if err != nil {
		return err
	}
	synced = append(synced, more...)
	go func() { _ = c.cache.Start(ctx) }() // ends only with ctx
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("reading the cluster's state: %w", ctx.Err())
	}
	return nil
}

// withUserName returns the object with the name that users know (see Named). If that
// differs from the object's own name, it returns a copy, because the cache keeps the
// original under its own name.
func withUserName[T client.Object](o T) T {
	switch any(o).(type) {
	case *v1alpha1.Account, *v1alpha1.QOS, *v1alpha1.Partition:
		if o.GetAnnotations()[v1alpha1.NameAnnotation] != "" {
			o = o.DeepCopyObject().(T)
			Named(o)
		}
	}
	return o
}

// watched is a store that is filled by a watch.
type watched[T client.Object] interface {
	Apply(obj T)
	Remove(obj T, now time.Time)
}

// fillByWatch fills store from a watch of kind.
func fillByWatch[T client.Object](ctx context.Context, k cache.Cache, kind T, store watched[T]) (
	toolscache.InformerSynced, error) {
	inf, err := k.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", kind, err)
	}
	reg, err := inf.AddEventHandler(applyEvents(store))
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", kind, err)
	}
	return reg.HasSynced, nil
}

// applyEvents returns a handler that applies the events of a watch to the store.
func applyEvents[T client.Object](store watched[T]) toolscache.ResourceEventHandlerFuncs {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { store.Apply(withUserName(o.(T))) },
		UpdateFunc: func(old, now any) {
			// After a list, a new object of the same name is an update of the deleted one.
			if was, ok := old.(T); ok && was.GetUID() != now.(T).GetUID() {
				store.Remove(was, time.Now())
			}
			store.Apply(withUserName(now.(T)))
		},
		DeleteFunc: func(o any) {
			if d, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
				o = d.Obj
			}
			if obj, ok := o.(T); ok {
				store.Remove(obj, time.Now())
			}
		},
	}
}
