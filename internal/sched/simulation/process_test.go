package simulation

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	podgroup "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/berth-hpc/berth/api/v1alpha1"
	"github.com/berth-hpc/berth/internal/acct"
	"github.com/berth-hpc/berth/internal/agentapi"
	"github.com/berth-hpc/berth/internal/control"
	"github.com/berth-hpc/berth/internal/queue/fake"
	"github.com/berth-hpc/berth/internal/sched/keeper"
	"github.com/berth-hpc/berth/internal/sched/planner"
	"github.com/berth-hpc/berth/internal/sched/power"
	"github.com/berth-hpc/berth/internal/sched/reboot"
	"github.com/berth-hpc/berth/internal/sched/starter"
	"github.com/berth-hpc/berth/internal/wire"
	"github.com/berth-hpc/berth/translate/kube"
)

// process is a scheduler process that leads, from its start until it is killed.
type process struct {
	sim        *simulation
	number     int
	clock      *clock // of its machine
	cluster    *control.Cluster
	keep       *keeper.Keeper
	plan       *planner.Planner
	placements starter.Placements
	starter    *starter.Starter
	api        *agentapi.Server // of the agents
	recorder   *acct.Recorder   // nil: there is no database
	ctx        context.Context  //nolint:containedctx // its lifetime is the process's
	kill       context.CancelFunc
	running    sync.WaitGroup

	reservations map[string]reservation // by name: those that it knows

	delivered map[string]int       // by kind: how many events of the API server the process has
	silent    map[string]time.Time // by kind: until then its watch delivers nothing

	transport http.RoundTripper // for requests to the API server

	mu       sync.Mutex
	lease    lease
	requests []*request // not answered yet
	commands []command  // not received by the agents yet
}

// request is a request of a process to the API server.
type request struct {
	process *process
	what    string // for the trace, and the order of requests
	write   bool
	perform func() (client.Object, error)
	answer  chan answer
}

type answer struct {
	object client.Object
	err    error
}

// command is a command to the agent of a job's batch host.
type command struct {
	run  runKey
	kind string
}

// start starts a process that has read the API server's objects.
func (s *simulation) start() *process {
	s.processes++
	ctx, kill := context.WithCancel(s.t.Context())
	p := &process{sim: s, number: s.processes, clock: s.newClock(), ctx: ctx, kill: kill, delivered: map[string]int{},
		silent: map[string]time.Time{}, reservations: map[string]reservation{}}
	p.transport = p.fenced()
	p.cluster = fake.Stores(&apiClient{process: p})
	p.cluster.NextID = p.nextID
	p.placements = starter.Placements{Cluster: p.cluster}
	log := slog.New(slog.DiscardHandler)
	start := starter.New(p.cluster, build, p.clock.now)
	plan := planner.New(p.cluster, start, p.clock.now, log)
	p.keep = keeper.New(keeper.Config{Cluster: p.cluster, Starter: start, Commander: p, Now: p.clock.now, Log: log})
	p.keep.PlanReason = func(id int64) string { x, _ := plan.Planned(id); return x.Reason }
	p.keep.Nodes = plan.NodesView
	// Its agents do not exit at the instant at which the keeper looks at them, because either
	// may be first then.
	start.Pool = agentapi.NewPool(func() time.Time { return p.clock.now().Add(time.Microsecond) })
	p.keep.Pool = start.Pool
	p.api = agentapi.New(agentapi.Options{
		Cluster: p.cluster, Keeper: keeperOf{p}, Pool: start.Pool, Now: p.clock.now, Leads: p.mayWrite,
		Gone: func(err error) bool { return errors.Is(err, keeper.ErrNotCurrent) },
	})
	p.record()
	plan.NeverRunnable, p.keep.Refused = p.keep.Enqueue, plan.Refused
	reboots := reboot.New(p.cluster, p.clock.now, log)
	reboots.Perform, p.cluster.RebootProgram = site{p}.Reboot, "/reboot"
	fake.Feed(p.cluster, policies(s.preemptType)...)
	for _, kind := range watchedKinds {
		for _, o := range s.api.list(kind) {
			p.apply(event{object: o})
		}
		p.delivered[kind] = len(s.api.events[kind])
	}
	nodes := power.New(p.cluster, site{p}, p.clock.now, log)
	plan.UpdatePower = updateNodes(nodes, reboots)
	p.plan, p.starter = plan, start
	p.running.Go(func() { plan.Run(withCaller(ctx, "planner")) })
	p.running.Go(func() { p.keep.Run(ctx, keeperWorkers) })
	p.running.Go(func() { reboots.Run(withCaller(ctx, "reboot")) })
	if s.pool > 0 {
		p.running.Go(func() { nodes.Run(withCaller(ctx, "power")) })
	}
	if p.recorder != nil {
		p.running.Go(func() { p.recorder.Run(ctx) })
	}
	return p
}

// keeperWorkers is how many jobs a keeper handles at the same time. It is more than there
// are at a time, so that what a process requests does not depend on which of its goroutines
// runs first.
const keeperWorkers = 64

// keeperOf is the keeper of a process for its agents' server.
type keeperOf struct{ process *process }

func (k keeperOf) GangReady(
	ctx context.Context, id int64, attempt int32, agents []wire.AgentInfo,
) (*v1alpha1.BatchJob, error) {
	ctx, cancel := context.WithCancel(withCaller(ctx, "agents"))
	defer cancel()
	defer context.AfterFunc(k.process.ctx, cancel)() // the server's goroutine ends with the process
	b, err := k.process.keep.GangReady(ctx, id, attempt, agents)
	if k.process.ctx.Err() != nil {
		return nil, keeper.ErrNotCurrent
	}
	return b, err
}

func (k keeperOf) Report(ctx context.Context, id int64, attempt int32, r wire.Report) error {
	return k.process.keep.Report(withCaller(ctx, "agents"), id, attempt, r)
}

// crash kills the process: none of its requests is answered.
func (p *process) crash() {
	p.sim.clockRead(p)
	p.kill()
	p.running.Wait()
}

// apply applies an event of a watch to the process's stores.
func (p *process) apply(e event) {
	switch o := e.object.(type) {
	case *v1alpha1.BatchJob:
		if e.deleted {
			p.cluster.Jobs.Remove(copyOf(o), time.Now())
		} else {
			p.cluster.ApplyJob(o)
		}
	case *corev1.Pod:
		applyTo(p.cluster.Pods, o, e.deleted)
	case *corev1.Node:
		applyTo(p.cluster.Nodes, o, e.deleted)
	case *v1alpha1.NodePool:
		applyTo(p.cluster.NodePools, o, e.deleted)
	case *v1alpha1.Reservation:
		applyTo(p.cluster.Reservations, o, e.deleted)
		p.sim.truth.reservationKnown(p, o, e.deleted)
	}
}

func applyTo[T client.Object](s *control.Store[T], o T, deleted bool) {
	if deleted {
		s.Remove(copyOf(o), time.Now())
	} else {
		s.Apply(copyOf(o))
	}
}

// Send sends a command to the agent of a job's batch host. It arrives later, unless the
// process is killed.
func (p *process) Send(jobID int64, attempt int32, c wire.Command) {
	defer p.sim.wakeUp()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.commands = append(p.commands, command{runKey{jobID, attempt}, c.Kind})
	slices.SortStableFunc(p.commands, func(a, b command) int {
		return cmp.Or(cmp.Compare(a.run.job, b.run.job), cmp.Compare(a.run.attempt, b.run.attempt))
	})
}

// pending returns the requests that wait for their answer, in an order that does not
// depend on when goroutines ran.
func (p *process) pending() []*request {
	p.mu.Lock()
	all := slices.Clone(p.requests)
	p.mu.Unlock()
	slices.SortStableFunc(all, compareRequests)
	return all
}

// take removes a request that is answered now from those that wait.
func (p *process) take(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, o := range p.requests {
		if o == r {
			p.requests = append(p.requests[:i], p.requests[i+1:]...)
			return
		}
	}
}

// nextID draws a job id, as the queue API does.
func (p *process) nextID(ctx context.Context) (int64, error) {
	var id int64
	_, err := p.call(ctx, http.MethodPatch, "draw an id", func() (client.Object, error) {
		id = p.sim.nextID()
		return nil, nil
	})
	return id, err
}

// apiClient is the client of a process.
type apiClient struct {
	client.Client // nil: what is not implemented here is not used
	process       *process
}

// set gives an object of the caller the value that the API server returned.
func set(o, stored client.Object) {
	switch to := o.(type) {
	case *v1alpha1.BatchJob:
		stored.(*v1alpha1.BatchJob).DeepCopyInto(to) //nolint:forcetypeassert // the same key
	case *v1alpha1.NodePool:
		stored.(*v1alpha1.NodePool).DeepCopyInto(to) //nolint:forcetypeassert // the same key
	case *v1alpha1.Reservation:
		stored.(*v1alpha1.Reservation).DeepCopyInto(to) //nolint:forcetypeassert // the same key
	case *corev1.Pod:
		stored.(*corev1.Pod).DeepCopyInto(to) //nolint:forcetypeassert // the same key
	case *corev1.Node:
		stored.(*corev1.Node).DeepCopyInto(to) //nolint:forcetypeassert // the same key
	case *jobset.JobSet, *podgroup.PodGroup: // they are not read
	default:
		panic(fmt.Sprintf("the simulation does not return a %T", o))
	}
}

func (c *apiClient) Get(ctx context.Context, name client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if s, ok := o.(*corev1.Secret); ok { // that of the agents' key
		s.Data = map[string][]byte{"key": make([]byte, 32)}
		return nil
	}
	k := keyOf(o)
	k.namespace, k.name = name.Namespace, name.Name
	stored, err := c.process.call(ctx, http.MethodGet, "get "+k.String(), func() (client.Object, error) { return c.process.sim.api.get(k) })
	if err == nil {
		set(o, stored)
	}
	return err
}

func (c *apiClient) Create(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
	if r, ok := o.(*authv1.TokenReview); ok {
		return review(r)
	}
	created := copyOf(o)
	stored, err := c.process.call(ctx, http.MethodPost, "create "+keyOf(o).String(), func() (client.Object, error) {
		return c.process.sim.api.create(created)
	})
	if err == nil {
		set(o, stored)
	}
	return err
}

// review accepts the token of a pod.
func review(r *authv1.TokenReview) error {
	claims, err := base64.RawURLEncoding.DecodeString(strings.Split(r.Spec.Token, ".")[1])
	if err != nil {
		return err
	}
	var c struct {
		Subject    string `json:"sub"`
		Kubernetes struct {
			Pod struct{ Name, UID string } `json:"pod"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(claims, &c); err != nil {
		return err
	}
	r.Status.Authenticated, r.Status.User.Username = true, c.Subject
	r.Status.User.Extra = map[string]authv1.ExtraValue{
		"authentication.kubernetes.io/pod-name": {c.Kubernetes.Pod.Name},
		"authentication.kubernetes.io/pod-uid":  {c.Kubernetes.Pod.UID},
	}
	return nil
}

// List returns the pods with labels.
func (c *apiClient) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	list, ok := l.(*corev1.PodList)
	if !ok {
		panic(fmt.Sprintf("the simulation does not list %T", l))
	}
	var found []corev1.Pod
	_, err := c.process.call(ctx, http.MethodGet, "list pods "+options.LabelSelector.String(), func() (client.Object, error) {
		for _, o := range c.process.sim.api.list(kindPod) {
			if options.LabelSelector.Matches(labels.Set(o.GetLabels())) {
				found = append(found, *copyOf(o.(*corev1.Pod))) //nolint:forcetypeassert // of that kind
			}
		}
		return nil, nil
	})
	if err == nil {
		list.Items = found
	}
	return err
}

func (c *apiClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	k := keyOf(o)
	_, err := c.process.call(ctx, http.MethodDelete, "delete "+k.String(), func() (client.Object, error) {
		return nil, c.process.sim.api.delete(k, options)
	})
	return err
}

// Update changes a reservation.
func (c *apiClient) Update(ctx context.Context, o client.Object, _ ...client.UpdateOption) error {
	changed := copyOf(o)
	stored, err := c.process.call(ctx, http.MethodPut, "update "+keyOf(o).String(), func() (client.Object, error) {
		return c.process.sim.api.update(copyOf(changed))
	})
	if err == nil {
		set(o, stored)
	}
	return err
}

func (c *apiClient) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return c.patch(ctx, "patch", o, p, false)
}

func (c *apiClient) patch(ctx context.Context, verb string, o client.Object, p client.Patch, status bool) error {
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	k := keyOf(o)
	stored, err := c.process.call(ctx, http.MethodPatch, verb+" "+k.String(), func() (client.Object, error) {
		return c.process.sim.api.patch(k, data, status)
	})
	if err == nil {
		set(o, stored)
	}
	return err
}

func (c *apiClient) Status() client.SubResourceWriter { return &statusClient{api: c} }

// statusClient writes the status of BatchJobs.
type statusClient struct {
	client.SubResourceWriter
	api *apiClient
}

func (c *statusClient) Patch(
	ctx context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption,
) error {
	return c.api.patch(ctx, "patch status of", o, p, true)
}

// Update writes the status of a NodePool.
func (c *statusClient) Update(ctx context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return c.api.Update(ctx, o)
}

// nodesAnnotation has the number of a JobSet's pods.
const nodesAnnotation = "nodes"

// build returns the objects of a placed job, without what the models do not read.
func build(b *v1alpha1.BatchJob) (*podgroup.PodGroup, *jobset.JobSet, error) {
	run := runKey{b.Spec.JobID, b.Status.Attempt}
	m := metav1.ObjectMeta{
		Namespace: b.Namespace, Name: kube.Name(run.job, run.attempt), Labels: run.labels(),
		Annotations: map[string]string{nodesAnnotation: fmt.Sprint(len(b.Status.Allocation.Nodes))},
	}
	set := &jobset.JobSet{ObjectMeta: *m.DeepCopy()}
	set.Spec.ReplicatedJobs = make([]jobset.ReplicatedJob, 1)
	set.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations = map[string]string{
		wire.AnnotationPodTemplateHash: podTemplate(b),
	}
	return &podgroup.PodGroup{ObjectMeta: m}, set, nil
}

// podTemplate returns what distinguishes the pods of jobs, in place of its hash.
func podTemplate(b *v1alpha1.BatchJob) string {
	return fmt.Sprintf("%s in %s with %d CPUs", b.Spec.User, b.Spec.Job.Batch.WorkDir, b.Status.Allocation.Nodes[0].CPUs)
}

// templateHashOf returns the hash of the template of a JobSet's pods.
func templateHashOf(set *jobset.JobSet) string {
	return set.Spec.ReplicatedJobs[0].Template.Spec.Template.Annotations[wire.AnnotationPodTemplateHash]
}

// callerKey is the key of the name of the part of a process that sends requests. It
// distinguishes requests that are the same otherwise.
type callerKey struct{}

func withCaller(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, callerKey{}, name+": ")
}

// compareRequests orders requests independently of when goroutines ran.
func compareRequests(a, b *request) int { return cmp.Compare(a.what, b.what) }
