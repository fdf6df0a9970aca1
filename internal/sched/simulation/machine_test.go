package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/berth-hpc/berth/internal/wire"
)

// cpusOfNode is the number of CPUs of each node.
const cpusOfNode = 4

// node returns the object of a node.
func node(i int, ready bool) *corev1.Node {
	status := corev1.ConditionTrue
	if !ready {
		status = corev1.ConditionUnknown // as the node lifecycle controller writes
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), UID: types.UID("uid-" + nodeName(i))},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				"cpu": *resource.NewQuantity(cpusOfNode, resource.DecimalSI), "memory": resource.MustParse("4000Mi"),
			},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Now()},
			},
			NodeInfo: corev1.NodeSystemInfo{BootID: "0"},
		},
	}
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }

// runKey names an attempt of a job.
type runKey struct {
	job     int64
	attempt int32
}

func (k runKey) String() string { return fmt.Sprintf("%d-%d", k.job, k.attempt) }

func (k runKey) labels() map[string]string {
	return map[string]string{
		wire.LabelJobID: strconv.FormatInt(k.job, 10), wire.LabelAttempt: strconv.Itoa(int(k.attempt)),
	}
}

func runOf(o client.Object) runKey {
	id, err := strconv.ParseInt(o.GetLabels()[wire.LabelJobID], 10, 64)
	attempt, err2 := strconv.ParseInt(o.GetLabels()[wire.LabelAttempt], 10, 32)
	if errors.Join(err, err2) != nil {
		panic(err) // build wrote them
	}
	return runKey{id, int32(attempt)}
}

// machine are JobSet's controller, kube-scheduler, the kubelets and the agents.
type machine struct {
	sim     *simulation
	created map[string]bool // names of the pods that were created
	lost    map[string]time.Time
	rented  map[string]*rented   // machines of the pool
	reboots map[string]time.Time // machines that reboot: when they return; zero: never
	boots   map[string]int       // how often a node has rebooted
	clocks  map[string]*clock    // of nodes
	agents  map[runKey]*agents   // by the attempt that they run or ran
	reused  map[runKey]runKey    // by the attempt that pods were created for: the one that they run now, if it is another
}

func newMachine(s *simulation) machine {
	return machine{
		sim: s, created: map[string]bool{}, lost: map[string]time.Time{}, rented: map[string]*rented{}, clocks: map[string]*clock{},
		reboots: map[string]time.Time{}, boots: map[string]int{},
		agents: map[runKey]*agents{}, reused: map[runKey]runKey{},
	}
}

// choices returns what the parts of the cluster can do next.
func (m *machine) choices() (all []choice) {
	add := func(name string, do func()) { all = append(all, choice{name, 5, do}) }
	pods := map[runKey][]*corev1.Pod{}
	sets := map[runKey]bool{}
	for _, o := range m.sim.api.list(kindPod) {
		p := o.(*corev1.Pod) //nolint:forcetypeassert // of that kind
		pods[runOf(p)] = append(pods[runOf(p)], p)
	}
	for _, o := range m.sim.api.list(kindJobSet) {
		k := runOf(o)
		sets[k] = true
		n, err := strconv.Atoi(o.GetAnnotations()[nodesAnnotation])
		if err != nil {
			panic(err) // build wrote it
		}
		for i := range n {
			if name := podName(k, i); !m.created[name] {
				add("create pod "+name, func() { m.createPod(o.(*jobset.JobSet), k, i) })
			}
		}
		if place := m.places(k, pods[k], n); place != nil {
			add("bind "+k.String(), func() { m.bind(pods[k], place) })
		}
		if m.gangComplete(pods[k], n) {
			m.agentChoices(k, pods[k], add)
		}
	}
	for _, o := range m.sim.api.list(kindPod) {
		m.podChoices(o.(*corev1.Pod), sets, add)
	}
	for _, name := range m.lostNodes() {
		if !time.Now().Before(m.lost[name]) {
			add("node "+name+" returns", func() { m.restore(name) })
		}
	}
	m.poolChoices(add)
	m.rebootChoices(add)
	return append(all, m.orphanChoices()...)
}

func podName(k runKey, i int) string { return fmt.Sprintf("job-%s-%d", k, i) }

func indexOf(p *corev1.Pod) int {
	i, err := strconv.Atoi(p.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		panic(err) // createPod wrote it
	}
	return i
}

func (m *machine) createPod(set *jobset.JobSet, k runKey, i int) {
	m.created[podName(k, i)] = true
	isController := true
	_, err := m.sim.api.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: podName(k, i), Labels: k.labels(),
			Annotations: map[string]string{
				wire.AnnotationNodeOffset: "0", batchv1.JobCompletionIndexAnnotation: strconv.Itoa(i),
				wire.AnnotationPodTemplateHash: templateHashOf(set),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch/v1", Kind: "Job", Name: set.Name + "-n0-0", Controller: &isController,
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	})
	if err != nil {
		panic(err) // the name is new
	}
}

// places returns the node of each pod if all can be bound now, as Berth's plugin of
// kube-scheduler decides.
func (m *machine) places(k runKey, pods []*corev1.Pod, n int) []string {
	leader := m.sim.leader
	if leader == nil || len(pods) != n {
		return nil
	}
	nodes := make([]string, n)
	for i, p := range pods {
		if p.Spec.NodeName != "" || p.DeletionTimestamp != nil {
			return nil
		}
		name, _, ok := leader.placements.Place(p.Namespace, k.job, k.attempt, indexOf(p))
		if !ok {
			return nil
		}
		nodes[i] = name
	}
	return nodes
}

func (m *machine) bind(pods []*corev1.Pod, nodes []string) {
	for i, p := range pods {
		n := p.DeepCopy()
		n.Spec.NodeName = nodes[i]
		m.sim.api.put(n)
	}
}

// isLost reports whether the node does not respond.
func (m *machine) isLost(name string) bool {
	_, lost := m.lost[name]
	_, reboots := m.reboots[name]
	return lost || reboots || m.isOff(name)
}

// nextDue returns the time until the next script ends, the next node returns, or agents
// repeat a request, at most an hour.
func (m *machine) nextDue() time.Duration {
	d := min(m.poolDue(), m.rebootDue())
	for _, at := range m.lost {
		d = min(d, time.Until(at))
	}
	for _, a := range m.agents {
		if wait := time.Until(a.repeatsAt()); wait > 0 {
			d = min(d, wait)
		}
	}
	for _, x := range m.sim.truth.parts() {
		if a := m.agentsOf(x.run); a.started && !a.ended && time.Until(a.due) > 0 {
			d = min(d, time.Until(a.due))
		}
	}
	return d
}

// podChoices are what the garbage collector and the pod's kubelet can do.
func (m *machine) podChoices(p *corev1.Pod, sets map[runKey]bool, add func(string, func())) {
	k := runOf(p)
	a := m.agentsOf(m.runIn(k))
	deleting := p.DeletionTimestamp != nil
	if !sets[k] && !deleting {
		add("collect "+p.Name, func() { _ = m.sim.api.delete(keyOf(p), client.DeleteOptions{}) })
	}
	if p.Spec.NodeName != "" && m.sim.api.objects[objectKey{kind: kindNode, name: p.Spec.NodeName}] == nil {
		add("collect "+p.Name+", whose node is gone", func() { m.sim.api.remove(keyOf(p)) })
	}
	if p.Spec.NodeName == "" || m.isLost(p.Spec.NodeName) {
		return
	}
	done, refused := a.over()
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	switch {
	case deleting:
		add("end "+p.Name, func() { m.stop(p); m.sim.api.remove(keyOf(p)) })
	case p.Status.Phase == corev1.PodPending:
		add("run "+p.Name, func() { m.setPhase(p, corev1.PodRunning) })
	case over:
	case done:
		add("exit "+p.Name, func() { m.setPhase(p, corev1.PodSucceeded) })
	case refused:
		add("exit "+p.Name, func() { m.setPhase(p, corev1.PodFailed) })
	}
}

func (m *machine) setPhase(p *corev1.Pod, phase corev1.PodPhase) {
	n := p.DeepCopy()
	n.Status.Phase = phase
	m.sim.api.put(n)
}

// stop ends what runs in a pod.
func (m *machine) stop(p *corev1.Pod) {
	k := m.runIn(runOf(p))
	a := m.agentsOf(k)
	if indexOf(p) == 0 && a.started && !a.ended {
		a.ended, a.signal = true, 15
		m.sim.truth.scriptEnded(k)
	}
	m.sim.truth.podEnded(k, p.Spec.NodeName)
}

// commandChoices are the arrivals of commands at their agents.
func (m *machine) commandChoices(p *process, commands []command) (all []choice) {
	for i, c := range commands {
		a := m.agentsOf(c.run)
		if c.kind == wire.CommandTerminate && !a.started && !a.isRefused() && !m.podGone(c.run) {
			continue // it is received when the script runs
		}
		host := m.pod(c.run, 0)
		if host != nil && m.isLost(host.Spec.NodeName) {
			continue
		}
		all = append(all, choice{c.kind + " " + c.run.String(), 5, func() {
			p.mu.Lock()
			p.commands = slices.Delete(p.commands, i, i+1)
			p.mu.Unlock()
			ends := c.kind == wire.CommandTerminate || c.kind == wire.CommandSignal && m.sim.chance(2)
			if ends && host != nil && a.started && !a.ended && !a.terminated {
				a.terminated, a.signal, a.status = true, 15, 0
				a.due = time.Now().Add(m.sim.between(0, 5*time.Second))
			}
		}})
	}
	return all
}

func (m *machine) podGone(k runKey) bool {
	return m.created[podName(m.sim.truth.podsOf(k), 0)] && m.pod(k, 0) == nil
}

// pod returns the pod with an index that the attempt runs in, or nil.
func (m *machine) pod(k runKey, i int) *corev1.Pod {
	host := m.sim.truth.podsOf(k)
	name := objectKey{kindPod, m.sim.truth.of(host.job).namespace, podName(host, i)}
	p, _ := m.sim.api.objects[name].(*corev1.Pod)
	return p
}

// orphanChoices end what runs for pods whose object is gone, as kubelets do.
func (m *machine) orphanChoices() (all []choice) {
	for _, part := range m.sim.truth.parts() {
		if !m.isLost(part.node) && m.isOrphan(part) {
			name := "end what is left of " + part.run.String() + " on " + part.node
			all = append(all, choice{name, 5, func() { m.endPart(part) }})
		}
	}
	return all
}

// isOrphan reports whether no pod of the attempt is on the node any more.
func (m *machine) isOrphan(x part) bool {
	for i := range 8 {
		if p := m.pod(x.run, i); p != nil && p.Spec.NodeName == x.node {
			return false
		}
	}
	return true
}

func (m *machine) endPart(x part) {
	a := m.agentsOf(x.run)
	if x.first && a.started && !a.ended {
		a.ended, a.signal = true, 9
		m.sim.truth.scriptEnded(x.run)
	}
	m.sim.truth.podEnded(x.run, x.node)
}

// lose makes a node unreachable for a while; the node lifecycle controller has noticed.
func (m *machine) lose() bool {
	i := m.sim.random.IntN(m.sim.nodes)
	name := nodeName(i)
	if m.isLost(name) {
		return false
	}
	m.lost[name] = time.Now().Add(m.sim.between(time.Second, 5*time.Minute))
	m.sim.truth.nodeFailed = true
	m.writeNode(name, false)
	return true
}

func (m *machine) writeNode(name string, ready bool) {
	old := m.sim.api.objects[objectKey{kind: kindNode, name: name}]
	i, err := strconv.Atoi(name[1:])
	if err != nil {
		panic(err) // nodeName made it
	}
	n := node(i-1, ready)
	n.UID, n.Annotations, n.Status.NodeInfo.BootID = old.GetUID(), old.GetAnnotations(), m.bootID(name)
	n.Spec = copyOf(old.(*corev1.Node)).Spec //nolint:forcetypeassert // of that kind
	m.sim.api.put(n)
}

func (m *machine) lostNodes() []string {
	var all []string
	for i := range m.sim.nodes {
		if _, lost := m.lost[nodeName(i)]; lost {
			all = append(all, nodeName(i))
		}
	}
	return all
}

// restore makes a node respond again. Its kubelet first ends what has no pod any more.
func (m *machine) restore(name string) {
	delete(m.lost, name)
	for _, x := range m.sim.truth.parts() {
		if x.node == name && m.isOrphan(x) {
			m.endPart(x)
		}
	}
	m.writeNode(name, true)
}

// evict deletes a pod in place of its job.
func (m *machine) evict() bool {
	o, ok := pick(m.sim.random, m.sim.api.list(kindPod))
	if !ok || o.GetDeletionTimestamp() != nil {
		return false
	}
	m.sim.truth.nodeFailed = true
	return m.sim.api.delete(keyOf(o), client.DeleteOptions{}) == nil
}

// killAgent kills the agent in a pod, and with it what runs there.
func (m *machine) killAgent() bool {
	o, ok := pick(m.sim.random, m.sim.api.list(kindPod))
	if !ok {
		return false
	}
	p, ok := o.(*corev1.Pod)
	if !ok || p.Status.Phase != corev1.PodRunning || m.isLost(p.Spec.NodeName) {
		return false
	}
	m.sim.truth.nodeFailed = true
	m.stop(p)
	if indexOf(p) == 0 {
		a := m.agentsOf(m.runIn(runOf(p)))
		a.mu.Lock()
		a.refused = true // it reports nothing any more
		a.mu.Unlock()
	}
	n := p.DeepCopy()
	n.Status.Phase = corev1.PodFailed
	n.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "Error"}}}}
	m.sim.api.put(n)
	return true
}
